"""The content of a page with numbers: the answers that it requests, and the tiles and panels made from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from data import Lake
from data.manifest.statistics import StoredSpan
from data.text import plural
from queries import ENDPOINTS, ENTRIES, InvalidParameter, Scope
from service.core.pages import formats
from service.core.pages.spans import ChartDays
from service.dashboard import panels
from service.dashboard.comparison import Comparison, complete_days
from service.dashboard.evidence import Evidence, lacking_in_words
from service.dashboard.listing import Listing
from service.dashboard.panel import PageAnswers, Panel, Selection, Wanted, key_of
from service.dashboard.tables import CellLinks
from service.dashboard.tiles import (
    FIGURES,
    TILES,
    Tile,
    disguised_in_words,
    figures_of,
    filled_tiles,
    unidentified_in_words,
)
from service.jobs.reader import Mark
from service.reports.filters import Filters

DASHBOARD: Final = ENDPOINTS["dashboard"]
DISGUISED: Final = ENTRIES["disguised"]
TOP_LINKS: Final = ENTRIES["top-links"]
OVERVIEW_ROW: Final = ENDPOINTS["traffic-overview"]
FILTER_VALUES: Final = ENTRIES["filter-values"]
OF_PATHS: Final = tuple(ENTRIES[name] for name in ("paths", "invented-links", "left-out", "left-out-requests"))
"""Entries that are counted from visits, since rollups contain neither paths nor left-out visits."""
MAX_PATH_VISITS: Final = 20_000_000
"""Maximum number of visits from which a page counts paths, which takes about three seconds."""
MAX_SUGGESTIONS: Final = 100
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Page:
    """A page that shows panels."""

    path: str  # after /app/
    title: str
    lead: str
    panels: tuple[Panel, ...]
    key: str = ""  # the keyboard shortcut that opens it
    is_dashboard: bool = False  # with the figures of an overview; all panels show the same visits
    group: str = ""  # the traffic_group that it shows unless another is chosen
    template: str = "page.html"
    under: str | None = None  # path of the page that the navigation marks, if it does not list this page
    tiles: tuple[tuple[str, str, str, str], ...] = ()  # figures above the panels, if the page is not a dashboard


OVERVIEW: Final = Page(
    "", "Overview", "", panels.OVERVIEW, "g o", is_dashboard=True,
    template="overview.html",
)  # fmt: skip
LINK: Final = Page("link", "Link", "", panels.LINK, is_dashboard=True, under="links")


class Newest(NamedTuple):
    """The time of the newest visit that was logged or reported."""

    at: datetime
    day: date  # in the organization's zone


@dataclass(frozen=True)
class PageContent:
    """The content of a filtered page: the answers to request, and the variables of its template."""

    page: Page
    filters: Filters
    stored: StoredSpan | None
    """The days with stored visits; None: the page has no comparison, and no hint about other days with visits."""
    links: CellLinks | None = None
    """The addresses that cells and tiles link to; None: there are no links."""
    hours_begun: int = 24
    """Number of hours of today that have begun, in the organization's zone."""
    uncovered: frozenset[date] = frozenset()
    """Days covered by neither a log nor reported visits, as returned by `uncovered`."""
    newest: Newest | None = None
    """The newest visit, as returned by `newest_visit`."""
    evidence: Evidence = field(default_factory=dict)
    """The evidence by day, as returned by `evidence_by_day`."""
    listing: Listing | None = None
    """The part of the list of all links to show, on pages that have the list."""
    events: Sequence[Mark] | None = None
    """Events for the marks of the main chart; None: the chart has no marks."""
    compares_links: bool = False
    """Whether the list of changes includes links."""
    broken: Sequence[Mark] = ()
    """Undecided jobs about failing requests, newest first."""
    job_cells: Callable[[Mapping[str, Any]], Markup] | None = None
    """Renders the cell about a row's job, in panels with a column for jobs."""

    @cached_property
    def comparable(self) -> Comparison | None:
        """Return the days that can be compared; None if there are no such days."""
        return self.stored and complete_days(self._scope, self.filters.today, self.stored, self.uncovered)

    @property
    def comparison(self) -> Comparison | None:
        """Return the days that tiles and tables compare; None if there are no such days, or nothing is compared."""
        return self.comparable if self.page.is_dashboard or self.filters.compares else None

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """Return the panels of the page, fitted to its days."""
        return tuple(panel.fitted(self.filters) for panel in self.page.panels)

    @cached_property
    def selection(self) -> Selection:
        """Return the selection that the page's panels show."""
        is_dashboard = self.page.is_dashboard
        return Selection(
            self.filters, self._days, self.comparison, self._scope if is_dashboard else None, self.links, self.listing,
            self.evidence, self.events if is_dashboard else None,
            compares_links=self.compares_links, broken=self.broken, job_cells=self.job_cells,
        )  # fmt: skip

    @cached_property
    def wanted(self) -> list[Wanted]:
        """Return the answers to request, without duplicates."""
        is_dashboard, selection = self.page.is_dashboard, self.selection
        of_page = [TOP_LINKS, DISGUISED] if is_dashboard else [FILTER_VALUES]
        of_page += [OVERVIEW_ROW] if self.page.tiles else []
        wanted = [(entry, selection.scope_for(entry)) for entry in of_page]
        wanted += [(FIGURES, selection.with_earlier)] if is_dashboard else []
        wanted += [pair for panel in self.panels for pair in panel.wants(selection)]
        return [*{key_of(pair): pair for pair in wanted}.values()]

    @cached_property
    def _scope(self) -> Scope:
        """Return the scope of a dashboard's answers."""
        return self.filters.scope_for(DASHBOARD)

    def answers(self, loaded: Sequence[Any]) -> PageAnswers:
        """Return the answers of the page; `loaded` are the decoded `wanted` answers."""
        return PageAnswers(self.wanted, loaded)

    def answer(self, answers: PageAnswers, name: str) -> Any:  # noqa: ANN401  # as JSON has it
        """Return the answer with this name for the days of the page."""
        return answers[ENTRIES[name], self.selection.scope_for(ENTRIES[name])]

    def filled(self, loaded: Sequence[Any]) -> dict[str, Any]:
        """Return the variables of the template, such as tiles and panels."""
        answers, is_dashboard = self.answers(loaded), self.page.is_dashboard
        first, last = self._scope.start_date, min(self._scope.end_date, self.filters.today - timedelta(1))
        filled = [panel.render(answers, self.selection) for panel in self.panels]
        leaves_out = is_dashboard and self.filters.scope.traffic_group and any(one.row_count for one in filled)
        return {
            "tiles": self.tiles(loaded),
            "panels": [one for one in filled if one.row_count or not (one.panel.is_left_out or leaves_out)],
            "can_compare": any(panel.figure for panel in self.page.panels),
            "disguised": disguised_in_words(self.answer(answers, "disguised")) if is_dashboard else "",
            "unidentified": self.unidentified_in_words(answers) if is_dashboard else "",
            "suggestions": self._suggestions(answers),
            "elsewhere": self._elsewhere(answers),
            "unjudged_days": sum(first <= day <= last for day in self.stored.unjudged) if self.stored else 0,
            "missing": self.missing_in_words(),
            "newest": self.newest,
            "lacking_evidence": self.lacking_evidence_in_words(),
            "comparison": self.comparison,
            "is_comparable": self.comparable is not None,
            "compares": self.stored is not None,
            "target_url": self._target(answers),
        }

    def _suggestions(self, answers: PageAnswers) -> dict[str, list[str]]:
        if not self.page.is_dashboard:
            return suggestions(self.answer(answers, "filter-values"))
        links = self.answer(answers, "top-links")
        return {"domains": sorted({row["domain"] for row in links}), "links": [row["short_code"] for row in links]}

    def _target(self, answers: PageAnswers) -> str:
        """Return the target of the page's link; "" if the stored links have none for it, or several."""
        if self.page is not LINK:
            return ""
        targets = {row["target_url"] for row in self.answer(answers, "top-links")} - {"unknown"}
        return min(targets) if len(targets) == 1 else ""

    def missing_in_words(self) -> str:
        """Return a sentence for past days without data, and one for today without data yet; "" if neither applies."""
        days, sentences = self._days, []
        if days.uncovered_days:
            sentences.append(f"Data is missing on {days.uncovered_days:,} of {plural(self.filters.days, 'day')}.")
        if days.lacks_today:
            sentences.append("No data for today yet.")
        return " ".join(sentences)

    def lacking_evidence_in_words(self) -> str:
        """Return a sentence about compared days that lack headers or networks; "" if there are none."""
        return lacking_in_words(self.comparison, self.evidence)

    def unidentified_in_words(self, answers: PageAnswers) -> str:
        """Return a sentence about people's visits without an address; "" if there are none or Visitors is not shown."""
        is_shown = self.filters.scope.traffic_group in {None, "people"}
        rows = answers[FIGURES, self.selection.with_earlier]
        return unidentified_in_words(figures_of(rows, self._scope)) if is_shown else ""

    @property
    def _days(self) -> ChartDays:
        scope = self.filters.scope
        has_today = self.newest is None or self.newest.day >= self.filters.today
        return ChartDays(
            scope.start_date, scope.end_date, self.filters.today, self.hours_begun, self.uncovered, has_today
        )

    def tiles(self, loaded: Sequence[Any]) -> list[Tile]:
        """Return the figures above the panels, with their changes over complete days."""
        answers, has_links = self.answers(loaded), self.links is not None
        if not self.page.is_dashboard:
            figures = self.answer(answers, OVERVIEW_ROW.name) if self.page.tiles else {}
            return filled_tiles(self.page.tiles, figures, None, self.filters, has_links=has_links)
        rows, comparison, compared = answers[FIGURES, self.selection.with_earlier], self.comparison, None
        if comparison:
            compared = comparison, figures_of(rows, comparison.now), figures_of(rows, comparison.before)
        return filled_tiles(TILES, figures_of(rows, self._scope), compared, self.filters, has_links=has_links)

    def _elsewhere(self, answers: PageAnswers) -> dict[str, str] | None:
        """Return the text, link label and query string of a hint about days with visits; None if no hint is needed."""
        if not self.page.is_dashboard or not self.stored:
            return None
        if figures_of(answers[FIGURES, self.selection.with_earlier], self._scope)["total_visits"]:
            return None
        first, last = self.stored.first_day, self.stored.last_day
        if not first or not last:
            return None
        span = formats.span(first, last)
        days = {"start_date": str(first), "end_date": str(min(last, self.filters.today))}
        query = self.filters.query_string(**days) if self.page is LINK else f"?{urlencode(days)}"
        return {"text": f"This organization has visits from {span}.", "link": f"Show {span}", "query": query}


def uncovered(lake: Lake, filters: Filters) -> frozenset[date]:
    """Return the past days in scope, or in the equally long span before it, that no log or reported visit covers."""
    first, last = filters.earlier[0], min(filters.scope.end_date, filters.today - timedelta(1))
    return lake.manifest.coverage.uncovered_days(filters.organization, filters.scope.domain or "", first, last)


def newest_visit(lake: Lake, filters: Filters) -> Newest | None:
    """Return the time of the newest visit that was logged for the filters' domain (without one, for any domain) or
    reported for any domain; None if there are no visits.
    """
    organization = filters.organization
    at = lake.manifest.coverage.newest_at(organization, filters.scope.domain or "")
    return Newest(at, lake.manifest.organizations.today(organization, at)) if at else None


def check_paths(lake: Lake, scope: Scope) -> None:
    """Raise InvalidParameter if paths would be counted from too many visits, unless the scope has a short code."""
    if scope.short_code is not None:
        return
    visits = sum(file.visits for file in lake.live_files(scope.organization, scope.start_date, scope.end_date))
    if visits > MAX_PATH_VISITS:
        raise InvalidParameter(
            "start_date",
            f"begins a span with {visits:,} visits, but paths are listed for at most {MAX_PATH_VISITS:,} visits",
            "Choose fewer days or one link.",
        )


def suggestions(rows: Rows) -> dict[str, list[str]]:
    """Return domains and links to choose from in the filters; `rows` are the rows of filter-values."""
    values = {row["filter"]: row["values"][:MAX_SUGGESTIONS] for row in rows}
    return {"domains": values["domain"], "links": values["short_code"]}
