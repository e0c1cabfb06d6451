"""The Settings pages for the cache and storage."""

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data.store.status import organization_status
from queries import CACHE_STATS
from service.access.page_context import PageLink
from service.access.sessions import Session
from service.core.encoding import encode
from service.dashboard.context import DashboardContext
from service.dashboard.panel import Panel, Selection
from service.dashboard.tables import CellLinks

_CACHE_FIELDS = tuple(field.name for field in CACHE_STATS.fields if field.name != "ttl_seconds")
"""The columns of the cache's table: all but the lifetime, which is the same in each row."""
TABS = (PageLink("settings/cache", "Cache"), PageLink("settings/storage", "Storage"))


def routes(context: DashboardContext) -> list[Route]:
    """Return the routes of the cache and storage pages."""
    pages, root = _StatePages(context), f"{context.root}/settings"
    return [Route(f"{root}/cache", pages.cache), Route(f"{root}/storage", pages.storage)]


class _StatePages:
    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def cache(self, request: Request) -> Response:
        """Show the cache statistics for this organization's answers."""
        session: Session = request.scope["session"]
        rows = orjson.loads(encode(self._context.answers.statistics(session.organization)))
        filters = await self._context.filters(request)
        selection = Selection(filters, links=CellLinks(self._context.root, request.url.path, filters))
        return await self._context.tab_page(
            request,
            "settings/cache",
            "settings_cache.html",
            totals=rows[0],
            panel=Panel(CACHE_STATS, "Cache by endpoint", fields=_CACHE_FIELDS).filled(rows[1:], selection),
        )

    async def storage(self, request: Request) -> Response:
        """Show the status of this organization's stored data, and changes to the classification rules."""
        organization, services = request.scope["session"].organization, self._context.services
        now = services.clock()
        status = await self._context.in_thread(request, organization_status, services.lake, organization, now)
        rules = await self._context.control.read(self._context.job_reader.rules, organization)
        return await self._context.tab_page(
            request, "settings/storage", "settings_storage.html", stored=status, rules=rules
        )
