"""The page of a share, for anyone who has its address: the overview and the top links under the share's fixed filters.

The page needs no session, reads no cookie, rejects every query parameter, and links to no other page.
"""

from dataclasses import replace
from typing import Final

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from queries import InvalidParameter
from service.core.http.caller import Caller
from service.core.http.compression import GZIP, VARY, compress, wants_gzip
from service.core.http.errors import NotFound
from service.core.http.routing import Endpoint
from service.core.pages import formats
from service.dashboard import panels
from service.dashboard.content import OVERVIEW, PageContent, newest_visit, uncovered
from service.dashboard.context import DashboardContext, decoded
from service.dashboard.report import ROWS
from service.dashboard.shares import Share
from service.reports.filters import Filters

MAX_KEPT: Final = 64
"""Maximum number of shares with a cached page, of about 100 kB each."""
_LINKS: Final = replace(
    panels.TOP_LINKS, title="Top links", limit=100, is_wide=True, has_search=True, all_on="",
    fields=(
        "short_code", "domain", "target_url", "visits", "percentage", "human_clicks", "ai_visits", "other_visits",
        "last_visit",
    ),
)  # fmt: skip
PAGE: Final = replace(
    OVERVIEW,
    panels=(
        *(
            replace(one, limit=max(one.limit, ROWS))
            for one in OVERVIEW.panels
            if one.entry is not _LINKS.entry and one is not panels.CHANGED
        ),
        _LINKS,
    ),
)
"""The overview without the list of changes, with a longer list of links, and with more rows, since a shared page
cannot link to further rows."""


_MadeOf = tuple[Share, str, PageContent, list[bytes]]
"""Everything that a page depends on; the second item is the organization's time zone."""


def endpoint(context: DashboardContext) -> Endpoint:
    """Return the endpoint for the page of a share. It raises NotFound for a wrong, expired or revoked secret, as for
    any unknown path, and InvalidParameter for any query parameter.

    A page is rendered again only if something that it depends on has changed, since the address may be public.
    """
    kept: LRUCache[str, tuple[_MadeOf, bytes, bytes]] = LRUCache(MAX_KEPT)
    """Everything that a page depends on, the page, and the compressed page, by the share's id."""

    async def shared(request: Request) -> Response:
        share = await context.control.read(context.shares.share, request.path_params["secret"])
        if share is None:
            raise NotFound
        request.scope["caller"] = Caller(share.organization, "viewer", f"share {share.id}", is_key=False, is_share=True)
        request.scope["embedders"] = share.embedders.split()
        if request.scope["query_string"]:
            name = next(iter(request.query_params), "?")
            raise InvalidParameter(
                name, "has no effect on a shared page", "Remove the question mark and everything after it."
            )
        context.control.write_later(context.shares.record_use, share)
        today = context.services.today(share.organization)
        filters = Filters.parse(share.filters.encode(), share.organization, today, context.targets)
        hours_begun, lake = context.services.hours_begun(share.organization), context.services.lake
        missing = await context.in_thread(request, uncovered, lake, filters)
        newest = await context.in_thread(request, newest_visit, lake, filters)
        content = PageContent(PAGE, filters, None, hours_begun=hours_begun, uncovered=missing, newest=newest)
        bodies = await context.bodies(request, content.wanted)
        made_of = (
            replace(share, last_used_at=None),
            lake.manifest.organizations.zone(share.organization),
            content,
            bodies,
        )
        rendered = kept.get(share.id)
        if rendered is None or rendered[0] != made_of:
            page = await context.in_thread(request, _render, context, *made_of)
            rendered = kept[share.id] = (made_of, *page)
        _, plain, compressed = rendered
        body, headers = (compressed, GZIP) if wants_gzip(request.scope["headers"], plain) else (plain, VARY)
        return Response(body, 200, headers, "text/html")

    return shared


def _render(
    context: DashboardContext, share: Share, zone: str, content: PageContent, bodies: list[bytes]
) -> tuple[bytes, bytes]:
    scope, newest = content.filters.scope, content.newest
    is_inside = newest is not None and scope.start_date <= newest.day <= scope.end_date and scope.short_code is None
    page = context.renderer.render("shared.html", {
        **content.filled(decoded(bodies)),
        "newest": newest if is_inside else None,
        "name": share.name,
        "zone": zone,
        "span": formats.span(scope.start_date, scope.end_date),
        "chosen": [(label, value) for label, value in share.described() if label != "Days"],
    })  # fmt: skip
    return page, compress(page)
