"""The page of a share: the overview and the links within its fixed filters, for whoever has its address.

It needs no session and reads no cookie. No parameter changes what it shows, and no link leads from it.
"""

from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from queries import InvalidParameter
from service.http.authentication import Caller
from service.http.errors import NotFound
from service.http.routing import Endpoint
from service.pages import formats
from service.pages.context import PageContext
from service.pages.filters import Filters
from service.pages.numbers import panels
from service.pages.numbers.content import OVERVIEW, PageContent, uncovered

_LINKS: Final = replace(
    panels.TOP_LINKS, title="Links with most visits", limit=100, fields=(), is_wide=True, has_search=True, all_on=""
)
PAGE: Final = replace(
    OVERVIEW, panels=(*(panel for panel in OVERVIEW.panels if panel.entry is not _LINKS.entry), _LINKS)
)
"""The overview with all links instead of the first ones. It needs one answer, the dashboard, and shows no other."""


def endpoint(context: PageContext) -> Endpoint:
    """The page of a share. A secret that is wrong, expired or revoked is NotFound, as any unknown path."""

    async def shared(request: Request) -> Response:
        share = await context.control.read(context.shares.share, request.path_params["secret"])
        if share is None:
            raise NotFound
        request.scope["caller"] = Caller(share.organization, "viewer", f"share {share.id}", is_key=False, is_share=True)
        request.scope["embedders"] = share.embedders.split()
        if request.scope["query_string"]:
            name = next(iter(request.query_params), "?")
            raise InvalidParameter(name, "changes nothing on a shared page", "Remove the question mark and the rest.")
        context.control.write_later(context.shares.record_use, share)
        today = context.services.today(share.organization)
        filters = Filters.parse(share.filters.encode(), share.organization, today, context.services.targets)
        hours_begun, lake = context.services.hours_begun(share.organization), context.services.lake
        missing = await context.in_thread(request, uncovered, lake, filters)
        content = PageContent(PAGE, filters, None, hours_begun=hours_begun, uncovered=missing)
        loaded = await context.load(request, content.wanted)
        shown = {
            **await context.in_thread(request, content.filled, loaded),
            "name": share.name,
            "zone": context.services.lake.manifest.zone(share.organization),
            "span": formats.span(filters.scope.start_date, filters.scope.end_date),
            "chosen": [(label, value) for label, value in share.described() if label != "Days"],
        }
        return await context.renderer.response(request, "shared.html", shown)

    return shared
