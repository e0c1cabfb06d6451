"""A panel: the answers that it requests, and how it shows their rows in a table, perhaps with a chart and notes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import takewhile
from math import inf
from typing import Any, ClassVar, Final, Self, TypeAlias

from markupsafe import Markup

from data.text import plural
from queries import ENTRIES, Entry, Scope
from service.core.pages.columns import BEFORE, CHANGE, TableColumn, column_of
from service.core.pages.spans import ChartDays
from service.dashboard.comparison import MAX_ROWS, REST, Comparison, compared_pair, compared_rows, names_of
from service.dashboard.evidence import Evidence
from service.dashboard.groups import GROUPS, Group
from service.dashboard.listing import Listing
from service.dashboard.marks import MAX_MARKS
from service.dashboard.tables import CellLinks, Row, Table
from service.dashboard.tiles import FIGURES
from service.jobs.reader import Mark
from service.reports.filters import Filters

Wanted: TypeAlias = tuple[Entry, Scope]
"""The entry and the scope of an answer to fetch."""
_TEXTS: Final = frozenset(("text", "list", "word", "badge"))


class PageAnswers:
    """The answers for a page, by entry and scope."""

    def __init__(self, wanted: Iterable[Wanted], loaded: Iterable[Any]) -> None:
        self._found = {key_of(pair): answer for pair, answer in zip(wanted, loaded, strict=True)}

    def __getitem__(self, wanted: Wanted) -> Any:  # noqa: ANN401  # as JSON has it
        return self._found[key_of(wanted)]


def key_of(wanted: Wanted) -> tuple[str, Scope]:
    """Return the key under which an answer is stored."""
    entry, scope = wanted
    return entry.name, scope


@dataclass(frozen=True)
class Selection:
    """The context for filling a page's panels, in addition to their answers: filters, days, comparison, marks and the
    addresses that cells link to.
    """

    filters: Filters
    days: ChartDays | None = None
    comparison: Comparison | None = None
    """The days that tables compare, if any."""
    whole: Scope | None = None
    """The scope that all answers of a dashboard share; None on other pages."""
    links: CellLinks | None = None
    """The addresses that cells link to; None: there are no links, and no hints to run commands on the server."""
    listing: Listing | None = None
    evidence: Evidence = field(default_factory=dict)
    events: Sequence[Mark] | None = None
    """Events for the marks of the main chart; None: the chart has no marks."""
    marks: Sequence[Sequence[Mark]] = ()
    """The marks of the main chart, grouped by day, earliest first."""
    compares_links: bool = False
    """Whether the list of changes includes links: comparing links costs as much as everything else together."""
    broken: Sequence[Mark] = ()
    """Undecided jobs about failing requests, newest first."""
    job_cells: Callable[[Row], Markup] | None = None
    """Renders the cell about a row's job."""

    def scope_for(self, entry: Entry) -> Scope:
        """Return the scope of an answer on this page."""
        return self.whole or self.filters.scope_for(entry)

    @property
    def with_earlier(self) -> Scope:
        """Return the scope of a dashboard's figures: its days and, if they are compared, the previous period.

        Panels have a different scope, so a visit that arrives between the two queries may be counted in only one.
        """
        scope = self.scope_for(FIGURES)
        return replace(scope, start_date=self.comparison.before.start_date) if self.comparison else scope

    @property
    def group(self) -> Group:
        """Return the group of visits that the page shows."""
        return GROUPS[self.filters.scope.traffic_group]

    @property
    def uncovered(self) -> frozenset[date]:
        """Return the days covered by neither a log nor reported visits."""
        return self.days.uncovered if self.days else frozenset()


@dataclass(frozen=True)
class FilledPanel:
    """A panel with the rows of its answer, ready for the template."""

    panel: "Panel"
    columns: tuple[TableColumn, ...]
    body: Markup
    """The rows of the table, as HTML."""
    chart: Markup
    row_count: int
    shown_count: int
    empty: Mapping[str, str] | None = None
    """Title, text and command to show instead of the table."""
    notes: Sequence[str] = ()
    """The notes below the table, each on its own line."""
    compares: bool = False
    """Whether the table shows the previous period."""
    legend: Sequence[tuple[str, str]] = ()
    """The CSS class and the label of each item in the chart, or in the bars of the table."""
    marks: Sequence[Sequence[Mark]] = ()
    """The events that the chart marks with numbers, grouped by day, earliest first."""
    more_marks: Sequence[Mark] = ()
    """The events on all other days, which the chart does not mark."""


@dataclass(frozen=True)
class Panel:
    """A table of an answer's rows. Other kinds of panels override parts of its behaviour."""

    entry: Entry
    title: str
    fields: tuple[str, ...] = ()  # shown, in this order; empty: all fields of the answer
    part: str = ""  # of an answer with several parts
    color: str = "plain"  # of its bars: people, ai, other or plain
    limit: int = 100  # rows of the table; CSV and API have all
    hint: str = ""
    note: str = ""
    cut: str = ""  # the note if the answer has its maximum number of rows, so that others may be missing
    all_on: str = ""  # the page that shows all rows
    file_of: Entry | None = None  # the answer to export as CSV, if the panel's own lacks some rows
    is_wide: bool = False
    has_split: bool = False  # a column with a bar of people, AI-related and other visits
    has_search: bool = False
    is_compared: bool = True  # with the previous period, if its rows have names and a figure
    is_left_out: bool = False  # whether it is left out of the page if it has no rows
    empty: str = "No visits of this kind in this period."

    chart_name: ClassVar[str] = ""
    """The name of the panel's chart; the table below a chart is collapsed."""
    drawn: ClassVar[frozenset[str]] = frozenset()
    """The columns of the table that the chart draws."""
    figures: ClassVar[tuple[str, ...]] = ("visits", "agent_fetches")
    """The fields by which rows may be compared: the first that the answer has is used."""
    leading: ClassVar[tuple[str, ...]] = ("visits", "percentage")
    """The columns moved to second place, so that phones show them."""
    added: ClassVar[tuple[TableColumn, ...]] = ()
    """Additional columns, which the answer does not have."""
    is_list: ClassVar[bool] = False
    """Whether the panel is a part of the list of all links, which the server searches and sorts."""
    has_jobs: ClassVar[bool] = False
    """Whether the panel has a column with the job about each row, and a button that creates the job."""
    has_lines: ClassVar[bool] = True
    """Whether the panel offers its rows as a CSV file, and commands that print them."""
    is_in_text: ClassVar[bool] = True
    """Whether a plain-text report includes the panel's table."""

    @classmethod
    def of(cls, name: str, title: str, fields: str = "", **more: object) -> Self:
        """Return the panel for the catalog entry `name`; `fields` are separated by spaces."""
        return cls(ENTRIES[name], title, tuple(fields.split()), **more)  # type: ignore[arg-type]

    @property
    def answer(self) -> Entry:
        """Return the entry that the panel shows: its own, or one part of it."""
        return dict(self.entry.members)[self.part] if self.part else self.entry

    @property
    def anchor(self) -> str:
        """Return the id of the panel on its page."""
        return self.part or self.entry.name

    @property
    def figure(self) -> str:
        """Return the field by which rows are compared; "" for rows without names, such as hours."""
        fields = self.answer.fields
        if not self.is_compared or fields[0].kind.sql != "VARCHAR":
            return ""
        return next((name for name in self.figures if any(field.name == name for field in fields)), "")

    def fitted(self, _filters: Filters) -> "Panel":
        """Return the panel fitted to the days of these filters."""
        return self

    def wants(self, selection: Selection) -> list[Wanted]:
        """Return the answers to request: one for the page's days or, if rows are compared, one for each period."""
        if selection.filters.compares and selection.comparison and self.figure:
            return [*compared_pair(self.entry, selection.filters, selection.comparison)]
        return [(self.entry, selection.scope_for(self.entry))]

    def render(self, answers: PageAnswers, selection: Selection) -> FilledPanel:
        """Return the panel with the rows of its answers."""
        loaded = [answers[pair] for pair in self.wants(selection)]
        first, *others = (answer[self.part] if self.part else answer for answer in loaded)
        return self.filled(first, selection, others[0] if others else None)

    def filled(self, answer: Sequence[Row], selection: Selection, before: Sequence[Row] | None = None) -> FilledPanel:
        """Return the panel with the rows of an answer, compared with the rows `before`."""
        rows, columns, compares = self.rows_of(answer), self.columns(), before is not None
        panel: Panel = replace(self, has_split=False) if compares else self
        shown = rows[: self.limit]
        if before is not None:
            shown, columns = self.compared(shown, before), self._compared_columns(columns)
        return panel.drawn_as(columns, rows, shown, selection, compares=compares)

    def drawn_as(
        self,
        columns: tuple[TableColumn, ...],
        rows: Sequence[Row],
        shown: Sequence[Row],
        selection: Selection,
        **more: Any,  # noqa: ANN401  # members of FilledPanel
    ) -> FilledPanel:
        """Return the panel drawn from all of its `rows`, with only the `shown` rows in the table."""
        last, group = selection.job_cells if self.has_jobs else None, selection.group
        legend = self.legend(columns, selection)
        is_mixed = group.has_split and not selection.scope_for(self.entry).traffic_type
        columns, has_split = group.columns(columns), self.has_split and is_mixed
        legend = legend or (group.legend if has_split else ())
        table = Table(columns, self.color, has_split, selection.links, last)
        body = table.body(shown, self.missing(shown, selection))
        nothing = self.nothing(rows, selection)
        chart = Markup("") if nothing else self.chart(columns, rows, selection)
        notes = [] if nothing else [*filter(None, self.notes(rows, selection))]
        marks = [] if nothing else selection.marks
        more_marks = [mark for group in marks[MAX_MARKS:] for mark in group]
        panel: Panel = replace(self, has_split=has_split)
        return FilledPanel(
            panel, columns, body, chart, self.count(rows), len(shown), nothing, notes,
            legend=legend, marks=marks[:MAX_MARKS], more_marks=more_marks, **more,
        )  # fmt: skip

    def legend(self, _columns: Sequence[TableColumn], _selection: Selection) -> Sequence[tuple[str, str]]:
        """Return the CSS class and the label of each item in the chart; empty if it needs no legend."""
        return ()

    def compared(self, rows: Sequence[Row], before: Sequence[Row]) -> list[Row]:
        """Return the rows compared with the rows of the previous period."""
        return compared_rows(self.entry, self.figure, rows, before)

    def columns(self) -> tuple[TableColumn, ...]:
        """Return the columns of the table."""
        columns = {field.name: column_of(field) for field in self.answer.fields}
        columns |= {column.field: column for column in self.added}
        shown = [columns[name] for name in self.fields or columns]
        texts = list(takewhile(lambda column: column.kind in _TEXTS, shown[1:]))
        visits = list(takewhile(lambda column: column.field in self.leading, shown[1 + len(texts) :]))
        return (*shown[:1], *visits, *texts, *shown[1 + len(texts) + len(visits) :]) if visits else tuple(shown)

    def _compared_columns(self, columns: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
        """Return the columns of a comparison: the names of a row, its figure, its previous figure, and the change."""
        first, *others = (column for column in columns if column.field in names_of(self.entry))
        (figure,) = (column for column in columns if column.field == self.figure)
        return (first, figure, BEFORE, CHANGE, *others)

    def text_rows(self, answers: PageAnswers, selection: Selection) -> Sequence[Row]:
        """Return the rows of the panel's table in a plain-text report."""
        return self.rows_of(answers[self.entry, selection.scope_for(self.entry)])

    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows of an answer as the panel shows them, before its limit applies."""
        return answer

    def count(self, rows: Sequence[Row]) -> int:
        """Return the total number of rows."""
        return len(rows)

    def missing(self, _rows: Sequence[Row], _selection: Selection) -> frozenset[int]:
        """Return the positions of the rows that lack all data."""
        return frozenset()

    def chart(self, _columns: Sequence[TableColumn], _rows: Sequence[Row], _selection: Selection) -> Markup:
        """Return the chart; empty if it has none."""
        return Markup("")

    def notes(self, rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return the notes below the table."""
        cut = self.cut if sum(REST not in row.values() for row in rows) >= MAX_ROWS.get(self.entry.name, inf) else ""
        days = selection.days
        if days and any(column.field == "avg_visits" for column in self.columns()):
            missing = f"{plural(days.uncovered_days, 'day')} on which data is missing" if days.uncovered_days else ""
            today = "today, which is not over yet" if days.end >= days.today else ""
            included = " and ".join(filter(None, (missing, today)))
            return [f"Averages include {included}." if included else "", cut, self.note]
        return [cut, self.note]

    def nothing(self, rows: Sequence[Row], _selection: Selection) -> Mapping[str, str] | None:
        """Return the title, text and command to show instead of the table; None if there are rows to show."""
        return None if rows else {"title": "Nothing here", "text": self.empty, "command": ""}
