"""Panels filled with rows: the table, the chart above it, and the ways to get the same rows elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import takewhile
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from data.text import plural
from queries import MAX_VALUE_LENGTH, PARAMETERS
from service.core.pages.charts import split_bar
from service.core.pages.columns import (
    BEFORE,
    CHANGE,
    OTHER,
    PREVIOUS,
    PROOF,
    SHARE_OF_PEOPLE,
    TableColumn,
    cell,
    column_of,
)
from service.core.pages.markup import joined
from service.core.pages.spans import ChartDays, last_day_of
from service.dashboard.comparison import REST, compared_rows, figure_of, names_of
from service.dashboard.marks import grouped_marks
from service.dashboard.panel_charts import chart_of
from service.dashboard.panels import Panel
from service.jobs.reader import Mark
from service.reports.filters import Filters

Row = Mapping[str, Any]
_ANY_DOMAIN: Final = "(any)"
"""The domain of a link that works on all and was not visited."""
_NO_DOMAIN: Final = frozenset((None, "", "unknown", REST, _ANY_DOMAIN))
"""Of a link whose page is not filtered by a domain."""
_CSS_CLASSES: Final = ("text", "number", "change", "day", "time", "badge", "share", "split")
_ROW_HEADS: Final = {css: Markup('<th scope="row" class="%s">') % css for css in _CSS_CLASSES}
_CELLS: Final = {css: Markup('<td class="%s">') % css for css in _CSS_CLASSES}
_END_ROW_HEAD, _END_CELL, _END_ROW = Markup("</th>"), Markup("</td>"), Markup("</tr>")
_ROW, _REST_ROW = Markup("<tr>"), Markup('<tr class="rest">')
_NOT_COVERED: Final = Markup(' <span class="badge">not covered</span>')
_SHOWN_BY: Final = {"country": "country_name"}
"""The fields whose words another field shows."""
LINKED_FIELDS: Final = {
    **{name: name for name in ("short_code", "domain", "date", "week", "month")},
    **{_SHOWN_BY.get(row.name, row.name): row.name for row in PARAMETERS.values() if row.kind == "word"},
    "tool": "ai_source",
}
"""The fields whose cells lead to a page of their own, or filter this one, and what each is a value of."""
_LINK_UNKNOWN: Final = frozenset(
    row.name for row in PARAMETERS.values() if row.links_unknown and (row.kind == "word" or row.name == "domain")
)
_TEXTS: Final = frozenset(("text", "list", "word", "badge"))
_PER_ANSWER: Final = "visits_per_answer"
_JUDGED_BY_ADDRESS: Final = frozenset(("verified", "contradicted"))


@dataclass(frozen=True)
class FilledPanel:
    """A panel with the rows of its answer, ready for the template."""

    panel: Panel
    columns: tuple[TableColumn, ...]
    body: Markup
    """The rows of the table, as HTML."""
    chart: Markup
    row_count: int
    shown_count: int
    empty: Mapping[str, str] | None = None
    """What to say instead of the table: title, text and command."""
    note: str = ""
    """What to say below the table."""
    compares: bool = False
    """Whether the table shows the period before."""
    has_previous: bool = False
    """Whether the chart shows the period before as well."""
    marks: Sequence[Sequence[Mark]] = ()
    """What the numbers in the chart stand for, in their order; the last may be several."""


class CellLinks:
    """The addresses that cells link to, which keep the filters of the page."""

    def __init__(self, root: str, path: str, filters: Filters) -> None:
        """`root` is the path of the pages without a final slash, `path` that of this page."""
        self._root = root
        self._path = path
        self._filters = filters
        self._here = f"{path}{filters.query_string()}"

    def of(self, field: str, row: Row) -> str:
        """The address for one of LINKED_FIELDS of a row; "" for none: no value of its own, or this page as it is."""
        name = LINKED_FIELDS[field]
        value = str(row.get(name, row[field]) or "")
        is_unlinked = value in {"", REST, _ANY_DOMAIN} or (value == "unknown" and name not in _LINK_UNKNOWN)
        if is_unlinked or len(value) > MAX_VALUE_LENGTH:
            return ""
        changed = self._filters.query_string
        match name:
            case "short_code":
                domain = row.get("domain")
                changes = {"domain": None if domain in _NO_DOMAIN else domain, "short_code": value}
                address = f"{self._root}/link{changed(**changes, target_url=None, traffic_type=None)}"
            case "ai_source":
                address = f"{self._root}/ai/{quote(value, safe='')}{changed(ai_source=None, traffic_type=None)}"
            case "agent" if row.get("agent_kind") is not None:
                address = f"{self._root}/agents/{quote(value, safe='')}{changed(agent=None, traffic_type=None)}"
            case "date":
                address = f"{self._path}{changed(start_date=value, end_date=value)}"
            case "week" | "month":
                end = min(last_day_of(name, date.fromisoformat(value)), self._filters.today)
                address = f"{self._path}{changed(start_date=value, end_date=str(end))}"
            case _:
                address = f"{self._path}{changed(**{name: value})}"
        return "" if address == self._here else address


def fill(
    panel: Panel,
    answer: Sequence[Row],
    links: CellLinks | None,
    *,
    previous: Sequence[Row] | None = None,
    before: Sequence[Row] | None = None,
    days: ChartDays | None = None,
    marks: Sequence[Mark] = (),
    job_cells: Callable[[Row], Markup] | None = None,
) -> FilledPanel:
    """The panel with its rows; without `links`, cells have no links, and hints for the operator are left out.

    `previous` are the days of the period before, for the chart of a time series; charts of days and weeks need `days`.
    `before` is the answer for the period before, which the table compares with. `marks` are those of the main chart.
    `job_cells` writes the last cell of each row, if the panel has jobs.
    """
    compares = before is not None
    if _PER_ANSWER in panel.fields and days and days.uncovered_days:  # else unlike days would be compared
        answer = [{**row, _PER_ANSWER: None} for row in answer]
    rows, shown = rows_of(panel, answer, previous), columns_of(panel, has_previous=bool(previous), compares=compares)
    limited = compared_rows(panel, rows[: panel.limit], before) if before is not None else rows[: panel.limit]
    panel = replace(panel, has_split=panel.has_split and not compares)
    is_series = panel.chart == "series"
    missing = {number for number, row in enumerate(limited) if days and is_series and days.is_missing(panel.unit, row)}
    last = job_cells if panel.has_jobs else None
    body = joined(*(_row(panel, shown, row, links, number in missing, last) for number, row in enumerate(limited)))
    empty = _empty(panel, rows, is_for_operators=links is not None)
    grouped = [] if empty else grouped_marks(marks)
    chart = Markup("") if empty else chart_of(panel, shown, rows, previous, days, marks=grouped)
    notes = [_missing_days(panel, shown, days), panel.note]
    if links and panel.entry.name == "bot-traffic" and not any(row["confidence"] in _JUDGED_BY_ADDRESS for row in rows):
        notes.append("No agent is verified: fetch the addresses that operators publish with `traffic agents refresh`.")
    note = "" if empty else " ".join(filter(None, notes))
    count = rows[0]["links_found"] if panel.is_list and rows else len(rows)
    return FilledPanel(panel, shown, body, chart, count, len(limited), empty, note, compares, bool(previous), grouped)


def columns_of(panel: Panel, *, has_previous: bool = False, compares: bool = False) -> tuple[TableColumn, ...]:
    """The columns of a panel's table; visits come second, so that a phone shows them.

    A table that compares has only what names its rows, the figure, and what it was before.
    """
    columns = {field.name: column_of(field) for field in panel.answer.fields}
    if panel.is_of_people:
        columns[SHARE_OF_PEOPLE.field] = SHARE_OF_PEOPLE
    if PROOF.field in panel.fields:
        columns[PROOF.field] = PROOF
    if panel.chart == "series":
        columns.setdefault(OTHER.field, OTHER)
        columns |= {PREVIOUS.field: PREVIOUS} if has_previous else {}
    shown = [columns[name] for name in panel.fields or columns]
    if compares:
        first, *others = (column for column in shown if column.field in names_of(panel.entry))
        return (first, columns[figure_of(panel)], BEFORE, CHANGE, *others)
    if panel.chart not in {"", "map"}:
        return tuple(shown)
    texts = list(takewhile(lambda column: column.kind in _TEXTS, shown[1:]))
    leading = ("human_clicks", SHARE_OF_PEOPLE.field) if panel.is_of_people else ("visits", "percentage")
    visits = list(takewhile(lambda column: column.field in leading, shown[1 + len(texts) :]))
    return (*shown[:1], *visits, *texts, *shown[1 + len(texts) + len(visits) :]) if visits else tuple(shown)


def rows_of(panel: Panel, answer: Sequence[Row], previous: Sequence[Row] | None = None) -> Sequence[Row]:
    """The rows of an answer that a panel shows, before they are cut to its limit; `previous` is that of `fill`."""
    if panel.chart == "series":
        before = [row["total_visits"] for row in previous or ()]
        shown = []
        for number, row in enumerate(answer):
            more = {PREVIOUS.field: before[number] if number < len(before) else None}
            if OTHER.field not in row:
                more[OTHER.field] = row["total_visits"] - row["human_clicks"] - row["ai_visits"]
            shown.append({**row, **more})
        return shown
    if PROOF.field in panel.fields:
        return [{**row, PROOF.field: _proof(row)} for row in answer]
    if not panel.is_of_people:
        return answer
    whole = sum(int(row["human_clicks"]) for row in answer)
    by_people = [row for row in answer if row["human_clicks"]]
    ranked = sorted(by_people, key=lambda row: (REST in row.values(), -int(row["human_clicks"])))
    return [  # the share is rounded half up to two decimals, as in answers
        {**row, SHARE_OF_PEOPLE.field: (20_000 * int(row["human_clicks"]) + whole) // (2 * whole) / 100}
        for row in ranked
    ]


def _proof(row: Row) -> str:
    """Say how many fetches of a row are verified, signed and merely claimed, and how many visits are contradicted."""
    counts = {name: int(row[name]) for name in ("verified", "signed")}
    counts["claimed"] = int(row["agent_fetches"]) - sum(counts.values())
    counts["contradicted"] = int(row["contradicted"])
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def _row(  # noqa: PLR0917  # one row of the table of a panel
    panel: Panel,
    columns: Sequence[TableColumn],
    row: Row,
    links: CellLinks | None,
    is_missing: bool,
    last: Callable[[Row], Markup] | None,
) -> Markup:
    is_rest = row.get(columns[0].field) == REST
    parts = [_REST_ROW if is_rest else _ROW]
    for number, column in enumerate(columns):
        href = links.of(column.field, row) if links and column.field in LINKED_FIELDS else ""
        content = cell(column, row[column.field], panel.color, href)
        if number:
            parts += (_CELLS[column.css], content, _END_CELL)
        else:
            parts += (_ROW_HEADS[column.css], content, _NOT_COVERED if is_missing else Markup(""), _END_ROW_HEAD)
    if panel.has_split:
        people, ai, other = (int(row[name]) for name in ("human_clicks", "ai_visits", "other_visits"))
        parts += (_CELLS["split"], split_bar(people, ai, other), _END_CELL)
    if last:
        parts += (_CELLS["text"], last(row), _END_CELL)
    return joined(*parts, _END_ROW)


def _empty(panel: Panel, rows: Sequence[Row], is_for_operators: bool) -> Mapping[str, str] | None:
    if not rows:
        return {"title": "Nothing here", "text": panel.empty, "command": ""}
    if panel.chart == "map" and all(row["country"] == "unknown" for row in rows):
        text, command = "These visits have none.", ""
        if is_for_operators:
            text = "Addresses are not kept, so past visits stay without countries. For new ones:"
            command = "traffic countries"
        return {"title": "Countries are unknown", "text": text, "command": command}
    return None


def _missing_days(panel: Panel, columns: Sequence[TableColumn], days: ChartDays | None) -> str:
    """What the chart of a panel does not show in full, and averages count that was not read."""
    if not days:
        return ""
    notes = []
    if panel.chart == "series" and panel.unit != "week" and days.end == days.today:
        notes.append(f"Hatched: the {panel.unit} is not over, or has not begun.")
    if panel.chart == "series" and days.uncovered_days:
        notes.append("Hatched from top to bottom: no log and no report covers it.")
    if panel.chart == "lines" and not days.whole_weeks:
        notes.append("No complete week in this period.")
    if any(column.field == _PER_ANSWER for column in columns) and days.uncovered_days:
        notes.append(f"Per answer: not told, as {plural(days.uncovered_days, 'day')} are not covered.")
    if any(column.field == "avg_visits" for column in columns) and days.uncovered_days:
        notes.append(f"Averages count {plural(days.uncovered_days, 'day')} that no log and no report covers as 0.")
    return " ".join(notes)
