"""Answers as CSV files that are safe to open in a spreadsheet."""

from math import inf
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from queries import ENTRIES, InvalidParameter
from service.core.csv_files import csv_of
from service.core.http.compression import negotiated
from service.core.http.errors import NotFound
from service.core.pages.columns import BEFORE, CHANGE
from service.dashboard import listing
from service.dashboard.comparison import compared_pair, complete_days
from service.dashboard.content import DASHBOARD, OF_PATHS, check_paths, uncovered
from service.dashboard.context import DashboardContext
from service.dashboard.views import PAGES

COMPARED: Final = {one.entry.name: one for page in PAGES for one in page.panels if one.figure}
"""Panels with comparable rows, by the name of their entry."""


async def export(context: DashboardContext, request: Request) -> Response:
    """Return an answer's rows as a CSV file, with columns in the declared order. For an answer with several parts, the
    parameter `part` names the part. The parameter `compare` adds the columns `before` and `change` if the rows can be
    compared. Raises NotFound for an unknown answer, and InvalidParameter.
    """
    entry = ENTRIES.get(request.path_params["name"])
    if entry is None:
        raise NotFound
    organization = request.scope["session"].organization
    filters = await context.filters(request)
    part = request.query_params.get("part", "")
    members = dict(entry.members)
    if entry.members and part not in members:
        raise InvalidParameter("part", "does not name a part of this answer", f"Use one of {', '.join(members)}.")
    scope = filters.scope_for(entry)
    if entry in OF_PATHS:
        await context.in_thread(request, check_paths, context.services.lake, scope)
    if entry is listing.ENTRY:
        scope = listing.Listing.parse(request.scope["query_string"], filters).whole(scope)
    wanted, compared = [(entry, scope)], COMPARED.get(entry.name)
    if compared and filters.compares:
        lake = context.services.lake
        stored = await context.in_thread(request, lake.manifest.statistics.stored_span, organization)
        missing = await context.in_thread(request, uncovered, lake, filters)
        comparison = complete_days(filters.scope_for(DASHBOARD), filters.today, stored, missing)
        wanted = list(compared_pair(entry, filters, comparison)) if comparison else wanted
        scope = wanted[0][1]
    answer, *before = await context.load(request, wanted)
    shown = members.get(part, entry)
    answer = answer[part] if entry.members else answer
    if shown.members:
        raise InvalidParameter("part", "has several parts of its own", f"Export {shown.name} instead.")
    rows = answer if isinstance(answer, list) else [answer]
    name = "-".join(filter(None, (organization, entry.name, part, str(scope.start_date), str(scope.end_date))))
    names = [field.name for field in shown.fields]
    if compared and before:
        rows, names = compared.compared(rows, before[0]), [*names, BEFORE.field, CHANGE.field]
        rows = [{**row, "change": "new" if row["change"] == inf else row["change"]} for row in rows]
    body, how = await context.in_thread(request, lambda: negotiated(request.scope["headers"], csv_of(names, rows)))
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', **how}
    return Response(body, headers=headers, media_type="text/csv")
