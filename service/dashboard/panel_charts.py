"""The chart of a panel: which one it is, of which rows, and which of its columns are hatched or marked."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from service.core.pages.charts import columns as column_chart
from service.core.pages.charts import multiples, time_series
from service.core.pages.columns import TableColumn
from service.core.pages.spans import FIELD_OF, ChartDays, day_labels, hour_labels, month_labels
from service.dashboard.panels import Panel
from service.dashboard.world_map import world_map
from service.jobs.reader import Mark

Row = Mapping[str, Any]


def chart_of(
    panel: Panel,
    columns: Sequence[TableColumn],
    rows: Sequence[Row],
    previous: Sequence[Row] | None,
    days: ChartDays | None,
    *,
    marks: Sequence[Sequence[Mark]],
) -> Markup:
    """The chart of a panel; empty if it has none."""
    chart = Markup("")
    match panel.chart:
        case "series" if days:
            chart = _series(panel.unit, rows, previous, days, marks)
        case "lines" if days and (weeks := days.whole_weeks):
            counts: dict[str, dict[str, int]] = {}  # by AI platform, or coding agent, and week
            for row in rows:
                counts.setdefault(str(row.get("ai_source") or row["tool"]), {})[str(row["week"])] = int(row["visits"])
            chart = multiples({name: [found.get(week, 0) for week in weeks] for name, found in counts.items()})
        case "purposes" if days:
            counted = [column for column in columns if column.kind == "number"]
            drawn = [  # the days, or the weeks, that are whole and were read
                row
                for row in rows
                if days.is_whole(panel.unit, row)
                and not days.is_missing(panel.unit, {**row, "total_visits": sum(row[one.field] for one in counted)})
            ]
            chart = multiples({one.label: [row[one.field] for row in drawn] for one in counted if drawn})
        case "map":
            people = {str(row["country"]): int(row["human_clicks"]) for row in rows}
            chart = world_map(people, {str(row["country"]): str(row["country_name"]) for row in rows})
        case "hours":
            chart = column_chart([(f"{row['hour']:02}", int(row["visits"])) for row in rows], "plain")
        case "weekdays":
            chart = column_chart([(str(row["day_name"])[:3], row["avg_visits"] or 0) for row in rows], "plain")
    return chart


def _series(
    unit: str, rows: Sequence[Row], previous: Sequence[Row] | None, days: ChartDays, marks: Sequence[Sequence[Mark]]
) -> Markup:
    """Visits over time; `unit` is what a row counts: an hour, a day, a week or a month."""
    starts = [str(row[FIELD_OF[unit]]) for row in rows]
    numbered = list(enumerate(rows))
    ahead = [number for number, row in numbered if days.is_ahead(unit, row)]
    missing = [number for number, row in numbered if days.is_missing(unit, row)]
    empty = {*ahead, *missing}
    partial = [number for number, row in numbered if not days.is_whole(unit, row) and number not in empty]
    if unit == "week":
        rows = [{**row, "human_clicks": row["human_visits"]} for row in rows]
    numbers: dict[int, str] = {}
    for number, group in enumerate(marks, start=1):
        column = bisect_left(starts, starts[bisect_right(starts, group[0].day.isoformat()) - 1])
        numbers[column] = f"{numbers[column]},{number}" if column in numbers else str(number)
    labels = {"hour": hour_labels, "month": month_labels}.get(unit, day_labels)
    texts = labels(starts[::24] if unit == "hour" else starts)
    return time_series(rows, previous, texts, partial=partial, ahead=ahead, missing=missing, marks=numbers)
