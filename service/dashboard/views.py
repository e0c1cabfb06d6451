"""The pages with numbers: their routes, and the variables of their templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import Lake
from data.manifest.statistics import StoredSpan
from data.store.status import large_file_share
from queries import file_hint, single_filters, unknown_value_hint
from service.core.http.errors import NotFound
from service.core.pages import formats
from service.dashboard import panels
from service.dashboard.content import (
    LINK,
    OF_PATHS,
    OVERVIEW,
    OVERVIEW_ROW,
    Page,
    PageContent,
    check_paths,
    newest_visit,
    uncovered,
)
from service.dashboard.context import DashboardContext
from service.dashboard.evidence import evidence_by_day
from service.dashboard.invented_page import INVENTED, claim, job_cells
from service.dashboard.listing import Listing
from service.dashboard.navigation import NAMED
from service.dashboard.run_it_yourself import commands
from service.dashboard.tables import SUBJECT_PATHS, CellLinks
from service.dashboard.tiles import Tile
from service.dashboard.what_changed import MAX_COMPARED
from service.reports.filters import Filters

TRAFFIC_TYPES: Final = (
    ("", "All"), ("ai_assistant", "Assistants"), ("ai_training", "For training"), ("ai_coding_agent", "Coding agents"),
    ("ai_referral", "Sent by AI"), ("search_crawler", "Search engines"), ("other_bot", "Other"),
)  # fmt: skip
"""The traffic types to choose from on the Agents page, each with its label."""
SUBJECTS: Final = {
    "ai_source": Page("ai", "Platform", "Pages read by this platform, and the people it sends.", panels.OF_PLATFORM),
    "operator": Page("ai", "Operator", "Pages read by the agents of this operator.", panels.OF_OPERATOR),
    "agent": Page("agents", "Agent", "Requests by this agent, and their responses.", panels.OF_AGENT),
}
"""The pages of single platforms, operators and agents, by the parameter with their names."""
DETAILS: Final = Page("ai-details", "AI in detail", "", panels.AI_DETAILS, under="ai")
UNNAMED: Final = (INVENTED, DETAILS)
"""The pages that the navigation does not name; other pages link to them."""
LINKS: Final = next(page for page in NAMED if page.path == "links")
LINKS_BY_TAG: Final = replace(LINKS, lead="Visits to all links of each tag.", panels=panels.LINKS_BY_TAG)
PAGES: Final = (*NAMED, *UNNAMED, LINK, LINKS_BY_TAG, *SUBJECTS.values())
"""All pages with panels."""


def routes(context: DashboardContext) -> list[Route]:
    """Return the routes of the pages with numbers."""
    shown = {OVERVIEW.path: overview_page, LINKS.path: links_page, INVENTED.path: invented_page}
    return [
        *(
            Route(
                f"{context.root}/{page.path}", partial(shown.get(page.path) or partial(panels_page, page=page), context)
            )
            for page in (*NAMED, *UNNAMED)
        ),
        Route(f"{context.root}/{INVENTED.path}/claims", partial(claim, context), methods=["POST"]),
        *(
            Route(f"{context.root}/{path}/{{value:path}}", partial(subject_page, context, parameter=name))
            for name, path in SUBJECT_PATHS.items()
        ),
    ]


async def panels_page(context: DashboardContext, request: Request, page: Page) -> Response:
    """Return a page of panels for the session's organization."""
    view = await View.start(context, request, page)
    return await view.instead() or await view.response(page.template, **await view.content())


async def overview_page(context: DashboardContext, request: Request) -> Response:
    """Return the Overview, with the number of jobs to decide."""
    view = await View.start(context, request, OVERVIEW)
    if instead := await view.instead():
        return instead
    scope, reader = view.filters.scope, context.job_reader
    broken = await context.control.read(reader.broken, scope.organization, scope.domain, scope.short_code)
    compares_links = await context.in_thread(request, _may_compare_links, context.services.lake, view.filters)
    content = await view.content(broken=broken, compares_links=compares_links)
    jobs = await context.control.read(reader.undecided, scope.organization)
    content["tiles"].append(Tile("undecided_jobs", "To do", "plain", jobs, False, None, f"{context.root}/jobs"))
    asked = context.services.lake, scope.organization, scope.start_date, scope.end_date, view.filters.today
    return await view.response(
        OVERVIEW.template,
        **content,
        left_out=f"{context.root}/left-out{view.filters.query_string(traffic_type=None, traffic_group=None)}",
        file_share=await context.in_thread(request, large_file_share, *asked),
        may_write=request.scope["session"].caller.may_write,
    )


def _may_compare_links(lake: Lake, filters: Filters) -> bool:
    """Return whether these days and the previous period have few enough visits for a page to compare links."""
    files = lake.live_files(filters.organization, filters.earlier[0], filters.scope.end_date)
    return sum(file.visits for file in files) <= MAX_COMPARED


async def links_page(context: DashboardContext, request: Request) -> Response:
    """Return the list of all links, or visits by tag."""
    view = await View.start(context, request, LINKS)
    view = replace(view, page=LINKS_BY_TAG) if view.filters.by else view
    if instead := await view.instead():
        return instead
    tabs = [
        (label, replace(view.filters, by=by).query_string(), by == view.filters.by)
        for label, by in (("Links", ""), ("By tag", "tag"))
    ]
    return await view.response(view.page.template, **await view.content() | {"tabs": tabs, "tabs_label": "Rows"})


async def invented_page(context: DashboardContext, request: Request) -> Response:
    """Return the page of addresses that AI products made up, each with its job."""
    view = await View.start(context, request, INVENTED)
    if instead := await view.instead():
        return instead
    cells = await job_cells(context, request, view.filters)
    return await view.response(INVENTED.template, **await view.content(job_cells=cells))


async def subject_page(context: DashboardContext, request: Request, parameter: str) -> Response:
    """Return the page of a platform, operator or agent: its visits, paths and links. Raises NotFound without a name."""
    value, page = request.path_params["value"], SUBJECTS[parameter]
    if not value:
        raise NotFound
    view = replace(await View.start(context, request, page), only={parameter: value})
    if view.settled is not None:
        return RedirectResponse(view.settled, 303)
    content = await view.content()
    content["panels"] = [panel for panel in content["panels"] if panel.row_count]
    if not content["panels"]:
        content["notices"] = [("warn", f"No visits by this {page.title.lower()} in this period.")]
    only = view.answer_filters.query_string(traffic_type=None)
    return await view.response("page.html", **content | {"title": value, "only": only})


@dataclass(frozen=True)
class View:
    """A request for a page: its filters, and the days on which the organization has stored visits."""

    context: DashboardContext
    request: Request
    page: Page
    filters: Filters
    stored: StoredSpan
    only: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the page itself, in addition to its filters."""

    @property
    def answer_filters(self) -> Filters:
        """Return the filters for the answers, with the parameters of the page itself."""
        return replace(self.filters, parameters={**self.filters.parameters, **self.only})

    @classmethod
    async def start(cls, context: DashboardContext, request: Request, page: Page) -> "View":
        """Read the filters and the days with stored visits. The filter traffic_type is dropped on dashboards, and on
        pages where no panel applies it. Raises InvalidParameter.
        """
        organization, services = request.scope["session"].organization, context.services
        stored = await context.in_thread(request, services.lake.manifest.statistics.stored_span, organization)
        filters = await context.filters(request, page.group)
        if page.is_dashboard or not any(panel.entry.takes_traffic_type for panel in page.panels):
            applied = {name: value for name, value in filters.parameters.items() if name != "traffic_type"}
            filters = replace(filters, parameters=applied)
        return cls(context, request, page, filters, stored)

    @property
    def settled(self) -> str | None:
        """Return the address to redirect to if the days in the requested address are not in their normal form;
        otherwise None.
        """
        query = self.filters.settled(self.stored.first_day)
        return None if query is None else f"{self.request.url.path}{query}"

    async def instead(self) -> Response | None:
        """Return a response that replaces the page: the guided start if there are no visits, or a redirect to the URL
        with days in their normal form; None if neither is needed.
        """
        if self.stored.is_empty:
            return await self.response("start.html")
        return None if self.settled is None else RedirectResponse(self.settled, 303)

    async def content(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # members of PageContent
        """Return the variables of the template, such as tiles and panels. Raises InvalidParameter."""
        links = CellLinks(self.context.root, self.request.url.path, self.filters)
        hours_begun = self.context.services.hours_begun(self.filters.organization)
        lake = self.context.services.lake
        missing = await self.context.in_thread(self.request, uncovered, lake, self.filters)
        newest = await self.context.in_thread(self.request, newest_visit, lake, self.filters)
        evidence = await self.context.in_thread(self.request, evidence_by_day, lake, self.filters)
        zone = lake.manifest.organizations.zone(self.filters.organization)
        events = await self.context.control.read(self.context.job_reader.events, self.filters, zone)
        has_list = any(panel.is_list for panel in self.page.panels)
        listing = Listing.parse(self.request.scope["query_string"], self.filters) if has_list else None
        content = PageContent(
            self.page, self.answer_filters, self.stored, links, hours_begun,
            missing, newest, evidence, listing, events, **more,
        )  # fmt: skip
        if any(panel.entry in OF_PATHS for panel in self.page.panels):
            for scope in (content.filters.scope, *([content.comparison.before] if content.comparison else ())):
                await self.context.in_thread(self.request, check_paths, lake, scope)
        loaded = await self.context.load(self.request, content.wanted)
        filled = await self.context.in_thread(self.request, content.filled, loaded)
        notices, (many, code) = [], (self.filters.target_codes, self.filters.target_code)
        if many > 1:
            text = f"{many:,} short codes lead to this target; this page counts visits to the newest, {code}."
            notices = [("plain", text)]
        asked = self.answer_filters.scope
        if why_empty := await self.context.in_thread(self.request, file_hint, lake, asked):
            notices.append(("plain", why_empty))
        notices += [("plain", text) for text in await self._unknown_values()]
        chosen = self.filters.scope.traffic_type or ""
        types = () if self.only or self.page.path != "agents" else TRAFFIC_TYPES
        tabs = [(label, self.filters.query_string(traffic_type=name or None), name == chosen) for name, label in types]
        shown = {"notices": notices, "tabs": tabs, "tabs_label": "Traffic type", "listing": listing}
        return {**filled, **shown}

    async def _unknown_values(self) -> list[str]:
        """If no visit passes all filters, return a sentence for each filter that no visit on these days passes."""

        async def is_empty(filters: Filters) -> bool:
            (overview,) = await self.context.load(self.request, [(OVERVIEW_ROW, filters.scope_for(OVERVIEW_ROW))])
            return not overview["total_visits"]

        asked = self.answer_filters
        filters = single_filters(asked.parameters)
        if not filters or not await is_empty(asked):
            return []
        alone = {name: replace(asked, parameters=query) for name, query in filters.items()}
        return [unknown_value_hint(name, filters[name][name]) for name, one in alone.items() if await is_empty(one)]

    async def response(self, template: str, status: int = 200, **content: Any) -> Response:  # noqa: ANN401  # of any template
        """Return the rendered page."""
        base = self.context.services.settings.base_path
        shown = {
            "title": self.page.title,
            "lead": self.page.lead,
            "commands": lambda entry: commands(self.context, self.request, entry, self.answer_filters),
            "presets": self.filters.presets(self.stored.first_day),
            "span": formats.span(self.filters.scope.start_date, self.filters.scope.end_date),
            "visits_url": f"{self.context.origin.origin(self.request)}{base}/visits",
            **self.context.numbers_layout(self.request, self.page.path, self.filters, self.page.under),
            **content,
        }
        return await self.context.renderer.response(self.request, template, shown, status)
