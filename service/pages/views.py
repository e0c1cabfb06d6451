"""The pages with numbers: which answers each one asks for, and what its template gets."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data.maintenance.status import StoredSpan, stored_span
from queries import ENDPOINTS, Entry, Scope
from service.http.answers import while_connected
from service.pages import formats, panels
from service.pages.comparison import Comparison, complete_days
from service.pages.filters import Filters
from service.pages.panels import Panel
from service.pages.run_it_yourself import commands
from service.pages.tables import CellLinks, FilledPanel, fields_of, fill

if TYPE_CHECKING:
    from service.http.routing import Endpoint
    from service.pages.site import Site

DASHBOARD: Final = ENDPOINTS["dashboard"]
MEMBERS: Final = {part.name: name for name, part in DASHBOARD.members}
"""The members of the dashboard by the names of their own endpoints."""
TILES: Final = (
    ("total_visits", "Visits", "plain", ""),
    ("human_clicks", "People", "people", "people"),
    ("ai_visits", "AI-related", "ai", "ai"),
    ("other_visits", "Other automated", "other", "agents?traffic_type=other"),
    ("ai_assistant_requests", "AI assistants", "ai", "agents?traffic_type=ai_assistant"),
    ("ai_training_requests", "AI training", "ai", "agents?traffic_type=ai_training"),
    ("ai_coding_agent_requests", "Coding agents", "ai", "agents?traffic_type=ai_coding_agent"),
    ("ai_referral_requests", "People sent by AI", "ai", "agents?traffic_type=ai_referral"),
)
"""The tiles: field of the overview, label, color, and the page and query it leads to."""
TRAFFIC_TYPES: Final = (
    ("", "All"), ("ai_assistant", "Assistants"), ("ai_training", "Training"), ("ai_coding_agent", "Coding agents"),
    ("ai_referral", "People sent by AI"), ("search_crawler", "Search crawlers"), ("other_bot", "Other"),
)  # fmt: skip
MAX_SUGGESTIONS: Final = 100


@dataclass(frozen=True)
class Page:
    """A page that shows panels."""

    path: str  # after /app/
    title: str
    lead: str
    panels: tuple[Panel, ...]
    key: str = ""  # the keyboard shortcut that opens it
    is_dashboard: bool = False  # with tiles, and one answer for all panels


OVERVIEW: Final = Page(
    "", "Overview", "People, AI-related and other automated visits.", panels.OVERVIEW, "g o", is_dashboard=True
)
LINK: Final = Page("link", "Link", "Everything about one link.", panels.LINK, is_dashboard=True)
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
        comparison = None
        if self._page.is_dashboard:
            comparison = complete_days(self.filters.scope_for(DASHBOARD), self.filters.today, self.stored.first_day)
        wanted = self._wanted(comparison)
        loaded = await load(self._site, self._request, wanted)
        answers = {entry.name: loaded[number] for number, (entry, _) in enumerate(wanted)}
        if self._page.is_dashboard:
            answers |= {name: answers["dashboard"][member] for name, member in MEMBERS.items()}
        now, before, days_before = loaded[-3:] if comparison else (None, None, None)
        return {
            "tiles": tiles(self, answers["traffic-overview"], comparison, now, before)
            if self._page.is_dashboard
            else [],
            "panels": await self._site.in_thread(self._fill_panels, answers, days_before, source),
            "suggestions": suggestions(answers),
            "elsewhere": self._elsewhere(answers),
            "notices": [],
            "tabs": self._tabs(),
            "comparison": comparison,
            "target_url": self._target_url(answers) if self._page is LINK else "",
        }

    def _wanted(self, comparison: Comparison | None) -> list[tuple[Entry, Scope]]:
        """The answers to ask for, each with its scope; those of a comparison are the last three."""
        if not self._page.is_dashboard:
            names = dict.fromkeys([*(panel.entry.name for panel in self._page.panels), "filter-values"])
            return [(ENDPOINTS[name], self.filters.scope_for(ENDPOINTS[name])) for name in names]
        wanted = [(DASHBOARD, self.filters.scope_for(DASHBOARD))]
        if comparison:
            overview, series = ENDPOINTS["traffic-overview"], ENDPOINTS["time-series"]
            wanted += [(overview, comparison.now), (overview, comparison.before), (series, comparison.before)]
        return wanted

    def _fill_panels(
        self, answers: Mapping[str, Any], days_before: Sequence[Mapping[str, Any]] | None, source: str
    ) -> list[FilledPanel]:
        return [self._filled(panel, answers, days_before, source) for panel in self._page.panels]

    def _filled(
        self, panel: Panel, answers: Mapping[str, Any], days_before: Sequence[Mapping[str, Any]] | None, source: str
    ) -> FilledPanel:
        rows = answers[panel.entry.name]
        rows = rows[panel.part] if panel.part else rows
        if source:
            rows = [row for row in rows if source in {row.get("ai_source"), row.get("tool")}]
        links = CellLinks(self._site.root, self._request.url.path, self.filters)
        map_url = f"{self._site.root}/static/{self._site.assets.hashed_name('map.svg')}"
        return fill(
            panel, rows, links, map_url=map_url, previous=days_before, today=self.filters.today.isoformat()
        )  # fmt: skip

    def _elsewhere(self, answers: Mapping[str, Any]) -> dict[str, str] | None:
        """Where there are visits, if this selection has none: what to say, and the query string that shows them."""
        overview, first, last = answers.get("traffic-overview"), self.stored.first_day, self.stored.last_day
        if not overview or overview["total_visits"] or not first or not last:
            return None
        span = formats.span(first, last)
        days = {"start_date": str(first), "end_date": str(min(last, self.filters.today))}
        query = self.filters.query_string(**days) if self._page is LINK else f"?{urlencode(days)}"
        return {"text": f"This organization has visits of {span}.", "link": f"Show {span}", "query": query}

    def _target_url(self, answers: Mapping[str, Any]) -> str:
        """Where the link of the page leads, if a links file says so."""
        targets = {row["target_url"] for row in answers["top-links"]} - {"unknown"}
        return min(targets) if len(targets) == 1 else ""

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


def tiles(
    view: View,
    overview: Mapping[str, Any],
    comparison: Comparison | None,
    now: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """The tiles of an overview; changes are over complete days."""
    found = []
    for name, label, color, target in TILES:
        path, _, fixed = target.partition("?")
        query = view.filters.query_string(traffic_type=fixed.partition("=")[2] or None)
        change = comparison.change(name, now, before) if comparison and now and before else None
        found.append(
            {"label": label, "value": overview[name], "kind": color, "change": change, "field": name,
             "href": f"{path}{query}" if target else ""}
        )  # fmt: skip
    return found


def suggestions(answers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Domains and links to choose from in the filters."""
    if "filter-values" in answers:
        values = {row["filter"]: row["values"][:MAX_SUGGESTIONS] for row in answers["filter-values"]}
        return {"domains": values["domain"], "links": values["short_code"]}
    links = answers["top-links"]
    return {
        "domains": sorted({row["domain"] for row in links}),
        "links": [row["short_code"] for row in links],
    }


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
