"""Commands that print a panel's rows without the page, by curl or on the server, and the page with an answer's SQL."""

import shlex
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from queries import ENDPOINTS, ENTRIES, Entry, template, template_entries, validate
from service.core.http.errors import NotFound
from service.dashboard.content import OVERVIEW
from service.dashboard.context import DashboardContext
from service.dashboard.navigation import NAMED
from service.reports.filters import Filters, query_of


def commands(context: DashboardContext, request: Request, entry: Entry, filters: Filters) -> dict[str, str]:
    """Return the commands that print an answer (`query`, and `curl`, which is "" if no endpoint returns the answer) and
    the URLs of its CSV file (`csv`) and of the page with its SQL (`sql`).
    """
    base, parameters = context.services.settings.base_path, validate(filters.parameters.items(), entry)
    ignored = {name: None for name in filters.parameters if name not in parameters}
    query = filters.query_string(**{"traffic_group": parameters.get("traffic_group"), **ignored})
    url = f"{context.origin.origin(request)}{base}/analytics/{entry.name}{query_of(parameters)}"
    flags = [word for name, value in parameters.items() for word in (f"--{name.replace('_', '-')}", value)]
    curl = f'curl -H "Authorization: Bearer $KEY" {shlex.quote(url)}'
    return {
        "curl": curl if entry.name in ENDPOINTS else "",
        "query": context.command("query", entry.name, "--org", filters.organization, *flags),
        "csv": f"{context.root}/export/{entry.name}.csv{query}",
        "sql": f"{context.root}/run/{entry.name}{query}",
    }


async def run(context: DashboardContext, request: Request) -> Response:
    """Return the page with the SQL of one answer. Raises NotFound for an unknown answer, and InvalidParameter."""
    entry = ENTRIES.get(request.path_params["name"])
    if entry is None:
        raise NotFound
    filters = await context.filters(request)
    shown_on = next(((page, panel) for page in NAMED for panel in page.panels if panel.entry is entry), None)
    page, panel = shown_on or (OVERVIEW, None)
    anchor = f"#{panel.anchor}" if panel else ""
    shown: dict[str, Any] = {
        "entry": entry,
        "title": panel.title if panel else entry.name.replace("-", " ").capitalize(),
        "back": (page.title, f"{context.root}/{page.path}{filters.query_string()}{anchor}"),
        "templates": [(leaf.name, template(leaf.name)) for leaf in template_entries(entry)],
        "lines": commands(context, request, entry, filters),
        **context.numbers_layout(request, "run", filters),
    }
    return await context.renderer.response(request, "run.html", shown)
