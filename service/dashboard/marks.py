"""The marks of the main chart: days with events, and a link for each event."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Final

from service.core.pages import formats
from service.dashboard.evidence import Evidence, evidence_marks
from service.jobs.reader import Mark
from service.reports.filters import Filters

MAX_MARKS: Final = 5
"""Maximum number of days that the chart marks; events on further days are only listed."""
NEW_AFTER: Final = timedelta(7)
"""An agent is new if the page shows at least this many covered days before its first visit."""


def marks_of(
    filters: Filters,
    uncovered: frozenset[date],
    evidence: Evidence,
    agents: Sequence[Mapping[str, Any]],
    events: Sequence[Mark],
) -> list[Mark]:
    """Return the marks in scope, sorted by day; `agents` are the rows of bot-traffic; `events` may be on any day."""
    scope, found = filters.scope, [*evidence_marks(filters, evidence)]
    for first, last in _runs(day for day in uncovered if scope.start_date <= day <= scope.end_date):
        number = (last - first).days + 1
        text = f"{formats.span(first, last)}: data is missing" + (f" on {number:,} days" if number > 1 else "")
        found.append(Mark(first, text, filters.query_string(start_date=str(first), end_date=str(last))))
    seen: dict[str, date] = {}  # an agent has a row for each confidence
    for row in agents:
        if row["operator"] == "unknown":
            continue  # other agents may have the same name
        first = date.fromisoformat(row["first_seen"][:10])
        seen[row["agent"]] = min(first, seen.get(row["agent"], first))
    for agent, first in seen.items():
        before = (first - timedelta(number) for number in range(1, NEW_AFTER.days + 1))
        is_new = first - NEW_AFTER >= scope.start_date and uncovered.isdisjoint(before)
        if is_new and agent not in {"unknown", "(other)"}:
            text = f"{formats.day(first)}: first visit by {agent} in this period"
            found.append(Mark(first, text, f"agents{filters.query_string(agent=agent)}"))
    found += events
    return sorted((mark for mark in found if scope.start_date <= mark.day <= scope.end_date), key=lambda mark: mark.day)


def _runs(days: Iterable[date]) -> list[tuple[date, date]]:
    """Return the first and the last day of each run of consecutive days, the earliest first."""
    runs: list[tuple[date, date]] = []
    for day in sorted(days):
        if runs and runs[-1][1] == day - timedelta(1):
            runs[-1] = runs[-1][0], day
        else:
            runs.append((day, day))
    return runs


def grouped_marks(marks: Sequence[Mark]) -> list[Sequence[Mark]]:
    """Group marks, which must be sorted by day, into one group for each day."""
    return [[*group] for _, group in groupby(marks, key=lambda mark: mark.day)]
