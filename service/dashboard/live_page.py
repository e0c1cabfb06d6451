"""The page for the last 30 minutes, which refreshes itself while visits arrive."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from queries import ENTRIES
from service.core.pages.charts import time_series
from service.core.pages.formats import time_of_day
from service.dashboard.content import Page, newest_visit
from service.dashboard.context import DashboardContext
from service.dashboard.groups import GROUPS
from service.dashboard.views import View

LIVE: Final = Page("now", "Last 30 minutes", "", ())
MINUTES: Final = 30
_COUNTED: Final = ("total_visits", "human_clicks", "ai_visits", "other_visits")
_BY_MINUTE: Final = ENTRIES["visits-by-minute"]


async def live_page(context: DashboardContext, request: Request) -> Response:
    """Return the page with the visits of the last 30 minutes, minute by minute."""
    view = await View.start(context, request, LIVE)
    if view.stored.is_empty:
        return await view.response("start.html")
    days = {"start_date": str(view.filters.today - timedelta(1)), "end_date": str(view.filters.today)}
    filters = replace(view.filters, parameters={**view.filters.parameters, **days})
    (answer,) = await context.load(request, [(_BY_MINUTE, filters.scope_for(_BY_MINUTE))])
    newest = await context.in_thread(request, newest_visit, context.services.lake, filters)
    now = context.services.clock()
    rows, legend = minutes_until(now, answer), GROUPS[None].legend
    labels = [(number, time_of_day(row["minute"]), number % 10 == 0) for number, row in enumerate(rows)][::5]
    return await view.response(
        "live.html",
        rows=rows,
        totals=[(name, sum(row[name] for row in rows), *kind) for name, kind in zip(_COUNTED[1:], legend, strict=True)],
        chart=time_series(rows, None, labels) if any(row["total_visits"] for row in rows) else "",
        legend=legend,
        newest=newest,
        follows=newest is not None and newest.at > now - timedelta(minutes=MINUTES),
        here=f"{request.url.path}{view.filters.query_string()}",
    )


def minutes_until(now: datetime, answer: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each of the last 30 minutes, the earliest first, with zeros for minutes without visits."""
    found = {f"{row['first_seen'][:17]}00Z": row for row in answer}
    last = now.replace(second=0, microsecond=0)
    minutes = [f"{last - timedelta(minutes=before):%Y-%m-%dT%H:%M:%SZ}" for before in reversed(range(MINUTES))]
    return [{"minute": minute} | {name: found.get(minute, {}).get(name, 0) for name in _COUNTED} for minute in minutes]
