"""Visits over time as columns of a chart: hours, days, weeks or months."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import zip_longest
from typing import ClassVar, Final

from markupsafe import Markup

from queries import ENTRIES
from service.core.pages.charts import time_series
from service.core.pages.columns import OTHER, PREVIOUS, TableColumn, column_of
from service.core.pages.spans import FIELD_OF, ChartDays, day_labels, hour_labels, last_day_of, month_labels, unit_for
from service.dashboard.marks import MAX_MARKS, grouped_marks, marks_of
from service.dashboard.panel import FilledPanel, PageAnswers, Panel, Selection, Wanted
from service.dashboard.tables import Row
from service.dashboard.tiles import FIGURES
from service.reports.filters import Filters

_AGENTS: Final = ENTRIES["bot-traffic"]
_PLACES: Final = 10
"""Number of marks that fit side by side on a phone."""


def apart(columns: Sequence[int], count: int) -> dict[int, str]:
    """Return marks' labels by column; marks too close together share a label, such as 2–4, at their first column."""
    groups: list[list[int]] = []
    for number, column in enumerate(columns):
        if groups and column - columns[groups[-1][0]] < count / _PLACES:
            groups[-1].append(number)
        else:
            groups.append([number])
    return {columns[one[0]]: str(one[0] + 1) + (f"–{one[-1] + 1}" if one[1:] else "") for one in groups}


@dataclass(frozen=True)
class TimeSeries(Panel):
    """A chart and a table of visits by people, AI-related and other visits, for each unit of time."""

    limit: int = 400
    is_wide: bool = True
    is_compared: bool = False
    unit: str = "day"  # hour, day, week or month
    chart_name: ClassVar[str] = "series"
    drawn: ClassVar[frozenset[str]] = frozenset(
        ("total_visits", "human_clicks", "human_visits", "ai_visits", "other_visits", PREVIOUS.field)
    )
    is_in_text: ClassVar[bool] = False

    def columns(self) -> tuple[TableColumn, ...]:
        """Return the columns of the answer, and a column for visits by neither people nor AI."""
        columns = {field.name: column_of(field) for field in self.answer.fields}
        columns.setdefault(OTHER.field, OTHER)
        return tuple(columns[name] for name in self.fields or columns)

    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows, with the number of visits by neither people nor AI added to any row that lacks it."""
        return [
            row
            if OTHER.field in row
            else {**row, OTHER.field: row["total_visits"] - row["human_clicks"] - row["ai_visits"]}
            for row in answer
        ]

    def legend(self, columns: Sequence[TableColumn], selection: Selection) -> Sequence[tuple[str, str]]:
        """Return the legend of the chosen group, with the previous period if the chart shows it."""
        before = [("previous", "Period before")] if PREVIOUS in columns else []
        return [*selection.group.legend, *before]

    def missing(self, rows: Sequence[Row], selection: Selection) -> frozenset[int]:
        """Return the positions of the rows that count nothing because none of their shown days has data."""
        days = selection.days
        return frozenset(number for number, row in enumerate(rows) if days and days.is_missing(self.unit, row))

    def partial(self, rows: Sequence[Row], days: ChartDays) -> list[int]:
        """Return the positions of the rows that count only a part of their unit."""
        unit = self.unit
        return [
            number
            for number, row in enumerate(rows)
            if not (days.is_whole(unit, row) or days.is_ahead(unit, row) or days.is_missing(unit, row))
        ]

    def chart(self, _columns: Sequence[TableColumn], rows: Sequence[Row], selection: Selection) -> Markup:
        """Return the columns, hatched where they are incomplete, with the numbers of the marks."""
        days, unit = selection.days, self.unit
        if days is None:
            return Markup("")
        starts = [str(row[FIELD_OF[unit]]) for row in rows]
        ahead = [number for number, row in enumerate(rows) if days.is_ahead(unit, row)]
        missing, partial = self.missing(rows, selection), self.partial(rows, days)
        columns = [
            bisect_left(starts, starts[bisect_right(starts, group[0].day.isoformat()) - 1])
            for group in selection.marks[:MAX_MARKS]
        ]
        labels = {"hour": hour_labels, "month": month_labels}.get(unit, day_labels)
        texts = labels(starts[::24] if unit == "hour" else starts)
        drawn = [row if "human_clicks" in row else {**row, "human_clicks": row["human_visits"]} for row in rows]
        before = [row.get(PREVIOUS.field) for row in rows]
        previous = [{"total_visits": total} for total in before if total is not None]
        return time_series(
            drawn, previous, texts, partial=partial, ahead=ahead, missing=missing, marks=apart(columns, len(rows))
        )

    def notes(self, rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return the notes, including an explanation of hatched columns."""
        reasons, notes, days, unit = [], [], selection.days, self.unit
        if days:
            drawn = [row for number in self.partial(rows, days) if (row := rows[number])["total_visits"]]
            lasts = [last_day_of(unit, date.fromisoformat(row[FIELD_OF[unit]])) for row in drawn]
            if unit != "week" and any(last >= days.today for last in lasts):
                reasons.append(f"the {unit} is not over")
            if any(days.lacks_part(unit, row) for row in drawn):
                reasons.append("data is missing")
        if reasons:
            notes.append(f"Hatched: {', or '.join(reasons)}.")
        if self.missing(rows, selection):
            notes.append("Hatched from top to bottom: no data.")
        return [*notes, self.note]


@dataclass(frozen=True)
class MainSeries(TimeSeries):
    """Visits by hour, day or month, depending on the number of days, with the previous period and marks."""

    def fitted(self, filters: Filters) -> Panel:
        """Return the panel with visits by hour, day or month, depending on the number of days."""
        unit = unit_for(filters.days)
        name = "time-series" if unit == "day" else f"visits-by-{unit}"
        return replace(self, entry=ENTRIES[name], title=f"Visits by {unit}", unit=unit)

    def wants(self, selection: Selection) -> list[Wanted]:
        """Return the requests for the visits, the previous period (by hour or day), and the agents that marks need."""
        wanted = [(self.entry, selection.scope_for(self.entry))]
        if selection.comparison and self.unit == "day":
            wanted.append((FIGURES, selection.with_earlier))
        elif selection.comparison and self.unit == "hour":  # months in two spans do not begin on corresponding days
            wanted.append((self.entry, selection.comparison.before))
        return wanted if selection.events is None else [*wanted, (_AGENTS, selection.scope_for(_AGENTS))]

    def render(self, answers: PageAnswers, selection: Selection) -> FilledPanel:
        """Return the panel with its marks, and with a line for the previous period if it is compared."""
        found = [answers[pair] for pair in self.wants(selection)]
        if selection.events is not None:
            filters, agents = selection.filters, found.pop()
            marks = marks_of(filters, selection.uncovered, selection.evidence, agents, selection.events)
            selection = replace(selection, marks=grouped_marks(marks))
        answer, previous = found if len(found) > 1 else (*found, ())
        rows, columns = self.rows_of(answer), self.columns()
        if previous and self.unit == "day":
            previous = [row for row in previous if row["date"] < rows[0]["date"]]
        if previous:
            pairs = zip_longest(rows, previous[: len(rows)], fillvalue={"total_visits": None})
            rows, columns = (
                [{**row, PREVIOUS.field: before["total_visits"]} for row, before in pairs],
                (*columns, PREVIOUS),
            )
        return self.drawn_as(columns, rows, rows[: self.limit], selection)
