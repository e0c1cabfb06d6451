"""What a page with numbers shows: the answers that it asks for, and its tiles and panels made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from data import Lake
from data.manifest.statistics import StoredSpan
from data.text import plural
from queries import ENDPOINTS, ENTRIES, Entry, InvalidParameter, Scope
from service.core.pages import formats
from service.core.pages.spans import ChartDays, unit_for
from service.dashboard import listing as lists
from service.dashboard import panels
from service.dashboard.comparison import Comparison, complete_days, figure_of
from service.dashboard.evidence import Evidence, lacking_in_words
from service.dashboard.marks import marks_of
from service.dashboard.panels import Panel
from service.dashboard.tables import CellLinks, FilledPanel, fill
from service.dashboard.tiles import Figures, Tile, disguised_in_words, filled_tiles
from service.jobs.reader import Mark
from service.reports.filters import Filters

DASHBOARD: Final = ENDPOINTS["dashboard"]
MEMBERS: Final = {part.name: name for name, part in DASHBOARD.members}
"""The members of the dashboard by the names of their own endpoints."""
PEOPLE: Final = ENTRIES["people"]
DISGUISED: Final = ENTRIES["disguised"]
OVERVIEW_ROW: Final = ENDPOINTS["traffic-overview"]
SERIES: Final = ENDPOINTS["time-series"]
OF_PATHS: Final = tuple(ENTRIES[name] for name in ("paths", "invented-links", "left-out", "left-out-requests"))
"""The answers that are counted from visits, as no rollup keeps paths, nor what is left out."""
MAX_PATH_VISITS: Final = 20_000_000
"""Visits in the days of which paths are counted while a page waits: about three seconds."""
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
    is_dashboard: bool = False  # with tiles, and one answer for all panels


OVERVIEW: Final = Page(
    "", "Overview", "People, AI-related and other automated visits.", panels.OVERVIEW, "g o", is_dashboard=True
)
LINK: Final = Page("link", "Link", "Everything about one link.", panels.LINK, is_dashboard=True)


@dataclass(frozen=True)
class PageContent:
    """A page of panels for some filters: first the answers that it needs, then what its template shows."""

    page: Page
    filters: Filters
    stored: StoredSpan | None
    """None: the page shows nothing of other days than its own, neither a comparison nor where else there are visits."""
    links: CellLinks | None = None
    """The addresses that cells and tiles link to; None: they lead nowhere."""
    hours_begun: int = 24
    """Of today, in the organization's zone."""
    uncovered: frozenset[date] = frozenset()
    """Days that no log and no report covers, as `uncovered` finds them."""
    evidence: Evidence = field(default_factory=dict)
    """As `evidence_by_day` finds them."""
    listing: lists.Listing | None = None
    """Which of all links it shows, where it shows them."""
    events: Sequence[Mark] | None = None
    """For the marks of the main chart; None: it has none."""
    job_cells: Callable[[Mapping[str, Any]], Markup] | None = None
    """Writes the cell of a row that is about its job, where a panel has that column."""

    @cached_property
    def comparison(self) -> Comparison | None:
        """The days that tiles and tables are compared with; None where there are none, or nothing to compare."""
        if not self.stored or not (self.page.is_dashboard or self.filters.compares):
            return None
        return complete_days(self._scope, self.filters.today, self.stored, self.uncovered)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The panels of the page; visits over time are in the unit that suits the days."""
        unit = self._unit
        return tuple(panels.in_unit(panel, unit) if panel.entry is SERIES else panel for panel in self.page.panels)

    @property
    def _unit(self) -> str:
        return unit_for(self.filters.days)

    @cached_property
    def wanted(self) -> list[tuple[Entry, Scope]]:
        """The answers to ask for, each with its scope."""
        compared = self._compared
        if not self.page.is_dashboard:
            names = dict.fromkeys([*(panel.entry.name for panel in self.page.panels), "filter-values"])
            others = [(ENTRIES[name], self._scope_for(ENTRIES[name])) for name in names if name not in compared]
            return [*(pair for pairs in compared.values() for pair in pairs), *others]
        series = panels.in_unit(panels.TIME_SERIES, self._unit).entry
        wanted = [(DASHBOARD, self._scope), (PEOPLE, self._scope), (DISGUISED, self._scope)]
        if series is not SERIES:
            wanted.append((series, self._scope))
        more = [panel.entry for panel in self.page.panels if panel.entry.name not in MEMBERS]
        wanted += [(entry, self._scope) for entry in more]
        if self.comparison:
            now, before = self.comparison.now, self.comparison.before
            wanted += [(OVERVIEW_ROW, now), (PEOPLE, now), (OVERVIEW_ROW, before), (PEOPLE, before)]
            wanted += [pair for pairs in compared.values() for pair in pairs]
            if self._unit != "month":  # months of two spans do not begin alike
                wanted.append((series, before))
        return wanted

    @cached_property
    def _compared(self) -> dict[str, tuple[tuple[Entry, Scope], tuple[Entry, Scope]]]:
        """Of the tables that compare, by the name of their entry: what to ask for the days and for those before."""
        if not self.filters.compares or not self.comparison:
            return {}
        entries = {panel.entry.name: panel.entry for panel in self.page.panels if figure_of(panel)}
        return {name: compared_pair(entry, self.filters, self.comparison) for name, entry in entries.items()}

    def _scope_for(self, entry: Entry) -> Scope:
        scope = self.filters.scope_for(entry)
        return self.listing.scope(scope) if self.listing and entry is lists.ENTRY else scope

    @cached_property
    def _scope(self) -> Scope:
        """The scope of a dashboard's answers."""
        return self.filters.scope_for(DASHBOARD)

    def answers(self, loaded: Sequence[Any]) -> dict[str, Any]:
        """The answers by the name of their endpoint; `loaded` are those that were wanted, as decoded JSON."""
        answers: dict[str, Any] = {}
        for (entry, _), answer in zip(self.wanted, loaded, strict=True):
            answers.setdefault(entry.name, answer)  # those of a comparison come later
        if self.page.is_dashboard:
            answers |= {name: answers["dashboard"][member] for name, member in MEMBERS.items()}
        return answers

    def _by_scope(self, loaded: Sequence[Any]) -> dict[tuple[str, Scope], Any]:
        return {(entry.name, scope): answer for (entry, scope), answer in zip(self.wanted, loaded, strict=True)}

    def filled(self, loaded: Sequence[Any], source: str = "") -> dict[str, Any]:
        """What the template shows: tiles and panels; with `source`, only the rows of this AI platform."""
        answers, found = self.answers(loaded), self._by_scope(loaded)
        has_before = self.page.is_dashboard and self.comparison and self._unit != "month"
        before = loaded[-1] if has_before else None
        spans = {name: (found[name, now[1]], found[name, then[1]]) for name, (now, then) in self._compared.items()}
        first, last = self._scope.start_date, min(self._scope.end_date, self.filters.today - timedelta(1))
        targets = {row["target_url"] for row in answers.get("top-links", ())} - {"unknown"}  # by links files
        filled = [
            self._fill_panel(panel, answers, before, source, spans.get(panel.entry.name)) for panel in self.panels
        ]
        return {
            "tiles": self.tiles(loaded),
            "panels": [one for one in filled if one.row_count or not one.panel.is_left_out],
            "can_compare": any(figure_of(panel) for panel in self.page.panels),
            "disguised": disguised_in_words(answers["disguised"]) if self.page.is_dashboard else "",
            "suggestions": suggestions(answers),
            "elsewhere": self._elsewhere(answers),
            "unjudged_days": sum(first <= day <= last for day in self.stored.unjudged) if self.stored else 0,
            "missing": self.missing_in_words(),
            "lacking_evidence": self.lacking_evidence_in_words(),
            "comparison": self.comparison,
            "compares": self.stored is not None,
            "target_url": min(targets) if self.page is LINK and len(targets) == 1 else "",
        }

    def missing_in_words(self) -> str:
        """How many days of the page are not covered; "" if all are."""
        missing = self._days.uncovered_days
        if not missing:
            return ""
        verb = "is" if missing == 1 else "are"
        days = plural(self.filters.days, "day")
        return f"{missing:,} of {days} {verb} covered by no log and no report: not zero, but missing."

    def lacking_evidence_in_words(self) -> str:
        """How many days of the comparison lack evidence which others have; "" if all have it, or none."""
        return lacking_in_words(self.comparison, self.evidence)

    @property
    def _days(self) -> ChartDays:
        scope = self.filters.scope
        return ChartDays(scope.start_date, scope.end_date, self.filters.today, self.hours_begun, self.uncovered)

    def tiles(self, loaded: Sequence[Any]) -> list[Tile]:
        """The tiles of an overview, none on other pages; changes are over complete days."""
        if not self.page.is_dashboard:
            return []
        found = self._by_scope(loaded)
        found[OVERVIEW_ROW.name, self._scope] = found[DASHBOARD.name, self._scope]["overview"]

        def figures(scope: Scope) -> Figures:
            return {**found[PEOPLE.name, scope], **found[OVERVIEW_ROW.name, scope]}

        comparison = self.comparison
        compared = (comparison, figures(comparison.now), figures(comparison.before)) if comparison else None
        return filled_tiles(figures(self._scope), compared, self.filters, has_links=self.links is not None)

    def _fill_panel(
        self, panel: Panel, answers: Mapping[str, Any], previous: Rows | None, source: str, spans: Sequence[Rows] | None
    ) -> FilledPanel:
        rows = answers[panel.entry.name]
        rows, before = spans or (rows[panel.part] if panel.part else rows, None)
        if source:
            rows, before = (
                answer and [row for row in answer if source in {row.get("ai_source"), row.get("tool")}]
                for answer in (rows, before)
            )
        marks: Sequence[Mark] = ()
        if self.events is not None and self.page.is_dashboard and panel.chart == "series":
            marks = marks_of(self.filters, self.uncovered, self.evidence, answers["bot-traffic"], self.events)
        return fill(
            panel, rows, self.links, previous=previous, before=before, days=self._days, marks=marks,
            job_cells=self.job_cells,
        )  # fmt: skip

    def _elsewhere(self, answers: Mapping[str, Any]) -> dict[str, str] | None:
        """Where there are visits, if this selection has none: what to say, and the query string that shows them."""
        overview = answers.get("traffic-overview")
        if not overview or overview["total_visits"] or not self.stored:
            return None
        first, last = self.stored.first_day, self.stored.last_day
        if not first or not last:
            return None
        span = formats.span(first, last)
        days = {"start_date": str(first), "end_date": str(min(last, self.filters.today))}
        query = self.filters.query_string(**days) if self.page is LINK else f"?{urlencode(days)}"
        return {"text": f"This organization has visits of {span}.", "link": f"Show {span}", "query": query}


def compared_pair(
    entry: Entry, filters: Filters, comparison: Comparison
) -> tuple[tuple[Entry, Scope], tuple[Entry, Scope]]:
    """What to ask for to compare an answer: for the days, and for those before."""
    scope, spans = filters.scope_for(entry), (comparison.now, comparison.before)
    now, before = (replace(scope, start_date=span.start_date, end_date=span.end_date) for span in spans)
    return (entry, now), (entry, before)


def uncovered(lake: Lake, filters: Filters) -> frozenset[date]:
    """The days of these filters, and as many before, that are over and that no log and no report covers."""
    first, last = filters.earlier[0], min(filters.scope.end_date, filters.today - timedelta(1))
    return lake.manifest.coverage.uncovered_days(filters.organization, filters.scope.domain or "", first, last)


def check_paths(lake: Lake, scope: Scope) -> None:
    """Raise InvalidParameter if paths of these days would have to be counted from too many visits."""
    if scope.short_code is not None:
        return
    visits = sum(file.visits for file in lake.live_files(scope.organization, scope.start_date, scope.end_date))
    if visits > MAX_PATH_VISITS:
        raise InvalidParameter(
            "start_date",
            f"asks for days with {visits:,} visits, and paths are counted from at most {MAX_PATH_VISITS:,}",
            "Ask for fewer days or for one link.",
        )


def suggestions(answers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Domains and links to choose from in the filters."""
    if "filter-values" in answers:
        values = {row["filter"]: row["values"][:MAX_SUGGESTIONS] for row in answers["filter-values"]}
        return {"domains": values["domain"], "links": values["short_code"]}
    links = answers["top-links"]
    return {"domains": sorted({row["domain"] for row in links}), "links": [row["short_code"] for row in links]}
