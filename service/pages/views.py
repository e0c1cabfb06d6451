"""The pages with numbers: their routes, and what their templates get."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data.maintenance.status import StoredSpan, stored_span
from queries import Entry, Scope
from service.http.answers import while_connected
from service.pages import formats, panels
from service.pages.content import LINK, OVERVIEW, Page, PageContent
from service.pages.filters import Filters
from service.pages.run_it_yourself import commands
from service.pages.tables import CellLinks, fields_of

if TYPE_CHECKING:
    from service.http.routing import Endpoint
    from service.pages.site import Site

TRAFFIC_TYPES: Final = (
    ("", "All"), ("ai_assistant", "Assistants"), ("ai_training", "Training"), ("ai_coding_agent", "Coding agents"),
    ("ai_referral", "People sent by AI"), ("search_crawler", "Search crawlers"), ("other_bot", "Other"),
)  # fmt: skip
NAVIGATION: Final = (
    OVERVIEW,
    Page("ai", "AI", "What AI platforms fetch, and whom they send.", panels.AI, "g a"),
    Page("agents", "Agents", "Every automated visitor, and how sure we are who it is.", panels.AGENTS_PAGE, "g n"),
    Page("people", "People", "Where people come from, and what they use.", panels.PEOPLE, "g e"),
    Page("times", "Times", "When visits happen. All times are UTC.", panels.TIMES, "g t"),
    Page("links", "Links", "The links with most visits.", panels.LINKS, "g l"),
    Page("domains", "Domains", "Visits by domain, and their estimated value.", panels.DOMAINS, "g d"),
)


def routes(site: "Site") -> list[Route]:
    """The routes of the pages with numbers."""
    return [
        *(Route(f"{site.root}/{page.path}", page_endpoint(site, page)) for page in (*NAVIGATION, LINK)),
        Route(f"{site.root}/ai/{{source}}", source_endpoint(site)),
    ]


def page_endpoint(site: "Site", page: Page) -> "Endpoint":
    """A page of panels for the organization of the session."""

    async def endpoint(request: Request) -> Response:
        view = await View.start(site, request, page)
        if view.stored.is_empty:
            return await view.response("start.html")
        if page is LINK and not view.filters.scope.short_code:
            return RedirectResponse(f"{site.root}/links{view.filters.query_string(target_url=None)}", 303)
        content = await view.content()
        if page is LINK:
            content["title"] = view.filters.scope.short_code
        return await view.response("page.html", **content)

    return endpoint


def source_endpoint(site: "Site") -> "Endpoint":
    """The page of one AI platform: the rows of the AI page's answers that are about it."""
    about_sources = tuple(one for one in panels.AI if {"ai_source", "tool"} & {f.name for f in fields_of(one)})
    page = Page("ai", "AI", "What this platform fetches, and whom it sends.", about_sources)

    async def endpoint(request: Request) -> Response:
        view = await View.start(site, request, page)
        source = request.path_params["source"]
        content = await view.content(source)
        if not any(panel.row_count for panel in content["panels"]):
            content["notices"] = [("warn", "This platform has no visits in these days.")]
        return await view.response("page.html", **content | {"title": source})

    return endpoint


class View:
    """One request for a page: its filters, and what has been loaded for it."""

    def __init__(self, site: "Site", request: Request, page: Page, filters: Filters, stored: StoredSpan) -> None:
        self.filters = filters
        self.stored = stored
        self._site = site
        self._request = request
        self._page = page

    @classmethod
    async def start(cls, site: "Site", request: Request, page: Page) -> "View":
        """Read the filters. Raises InvalidParameter."""
        organization, services = request.scope["session"].organization, site.services
        stored = await site.in_thread(stored_span, services.lake, organization)
        return cls(site, request, page, await site.filters(request), stored)

    async def content(self, source: str = "") -> dict[str, Any]:
        """What the template shows: tiles and panels; with `source`, only the rows of this AI platform."""
        links = CellLinks(self._site.root, self._request.url.path, self.filters)
        map_url = f"{self._site.root}/static/{self._site.assets.hashed_name('map.svg')}"
        content = PageContent(self._page, self.filters, self.stored, links, map_url)
        loaded = await load(self._site, self._request, content.wanted)
        filled = await self._site.in_thread(content.filled, loaded, source)
        return {**filled, "notices": [], "tabs": self._tabs()}

    def _tabs(self) -> list[tuple[str, str, bool]]:
        """On the agents page, a tab for each traffic type: label, query string, and whether it is chosen."""
        if self._page.path != "agents":
            return []
        chosen = self.filters.parameters.get("traffic_type", "").lower()
        return [
            (label, self.filters.query_string(traffic_type=name or None), name == chosen)
            for name, label in TRAFFIC_TYPES
        ]

    async def response(self, template: str, **content: Any) -> Response:  # noqa: ANN401  # of any template
        """The rendered page."""
        context = {
            "title": self._page.title,
            "lead": self._page.lead,
            "commands": lambda entry: commands(self._site, self._request, entry, self.filters),
            "stored": self.stored,
            "span": formats.span(self.filters.scope.start_date, self.filters.scope.end_date),
            "visits_url": f"{self._site.origin.origin(self._request)}{self._site.services.settings.base_path}/visits",
            **shell(self._site, self._request, self._page.path, self.filters),
            **content,
        }
        return await self._site.renderer.response(self._request, template, context)


async def load(site: "Site", request: Request, wanted: Iterable[tuple[Entry, Scope]]) -> list[Any]:
    """The decoded answers, in the order asked for; those of one scope are computed as one batch."""
    pairs = list(wanted)
    scopes = list(dict.fromkeys(scope for _, scope in pairs))
    entries = [[entry for entry, asked in pairs if asked == scope] for scope in scopes]
    loading = asyncio.gather(
        *(site.services.answers.bodies(group, scope) for group, scope in zip(entries, scopes, strict=True))
    )

    async def loaded() -> list[list[bytes]]:
        return list(await loading)

    found = await while_connected(loaded(), request.receive)
    bodies = {
        (entry.name, scope): body
        for group, scope, answers in zip(entries, scopes, found, strict=True)
        for entry, body in zip(group, answers, strict=True)
    }
    return [orjson.loads(bodies[entry.name, scope]) for entry, scope in pairs]


def shell(site: "Site", request: Request, path: str, filters: Filters | None) -> dict[str, Any]:
    """What the frame of every signed-in page shows: navigation, organization, filters."""
    query = filters.query_string(traffic_type=None, short_code=None, target_url=None) if filters else ""
    navigation = [(page.title, f"{site.root}/{page.path}{query}", page.path == path, page.key) for page in NAVIGATION]
    settings = (
        "Settings", f"{site.root}/settings/api-keys", path.startswith("settings"), "g s"
    )  # fmt: skip
    session = request.scope["session"]
    return {
        "navigation": [*navigation, settings],
        "organization": session.organization,
        "role": session.role,
        "is_exposed": site.origin.is_exposed(request),
        "filters": filters,
        "path": request.url.path,
        "body_class": f"page-{path.replace('/', '-') or 'overview'}",
    }
