"""Comparison with the previous period of the same length. Only judged days are compared, so today, which is not over,
is left out.

Tiles compare figures. Tables compare the rows of an answer with the rows of the same names in the previous period.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from data.manifest.statistics import StoredSpan
from queries import Entry, Scope
from service.core.pages.formats import change_in_words, short_day
from service.reports.filters import Filters

REST: Final = "(other)"
"""Name of the last row of a bounded answer, which sums up all others."""
MAX_ROWS: Final = {"top-links": 100, "paths": 100, "source-links": 20, "tags": 1_000}
"""Maximum number of rows of an answer, as in its SQL, without the row for all others; for source-links, per platform.
"""


@dataclass(frozen=True)
class Comparison:
    """Two equally long spans of complete days, one directly before the other."""

    now: Scope
    before: Scope

    @property
    def spans(self) -> str:
        """Return both spans in words: 23 Oct – 21 Nov against 23 Sep – 22 Oct."""
        return f"{_span(self.now)} against {_span(self.before)}"

    def change(self, name: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, str] | None:
        """Return the change in a field of the overview as texts, such as its arrow; None if the field was 0 before."""
        if not before[name]:
            return None
        tenths = change_in_tenths(now[name], before[name])
        sign = "±+−"[(tenths > 0) - (tenths < 0)]
        arrow, words = change_in_words(tenths)
        figures = {"spans": self.spans, "now": f"{now[name]:,}", "before": f"{before[name]:,}"}
        text = f"{sign}{abs(tenths) // 10:,}.{abs(tenths) % 10} %"
        return {"text": text, "arrow": arrow, "words": words, **figures}


def complete_days(scope: Scope, today: date, stored: StoredSpan, missing: frozenset[date]) -> Comparison | None:
    """Return the comparison for a scope, up to the last complete day that is judged and not `missing` (covered by
    neither a log nor reported visits).

    Returns None if there is no such day, if the previous period begins before the first visit, or if any other day is
    missing or not judged: on an unjudged day, bots in disguise count as people.
    """
    unjudged = stored.unjudged | missing
    end = min(scope.end_date, today - timedelta(1))
    while end in unjudged:
        end -= timedelta(1)
    length = (end - scope.start_date).days + 1
    start_before = scope.start_date - timedelta(max(length, 0))
    has_unjudged = any(start_before <= day <= end for day in unjudged)
    if length < 1 or stored.first_day is None or start_before < stored.first_day or has_unjudged:
        return None
    now = replace(scope, end_date=end, traffic_type=None)
    return Comparison(now, replace(now, start_date=start_before, end_date=scope.start_date - timedelta(1)))


def compared_pair(
    entry: Entry, filters: Filters, comparison: Comparison
) -> tuple[tuple[Entry, Scope], tuple[Entry, Scope]]:
    """Return the two requests for comparing an answer: for the compared days, and for the previous period."""
    scope, spans = filters.scope_for(entry), (comparison.now, comparison.before)
    now, before = (replace(scope, start_date=span.start_date, end_date=span.end_date) for span in spans)
    return (entry, now), (entry, before)


def names_of(entry: Entry) -> tuple[str, ...]:
    """Return the fields that identify a row."""
    return tuple(field.name for field in entry.fields if field.kind.sql == "VARCHAR")


def compared_rows(
    entry: Entry, figure: str, rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the rows with `before`, their `figure` in the previous period, and `change`, in percent.

    `before` is 0 for a row without visits then, and None for a row that the earlier answer may have left out or put
    under others. `change` is infinite for a new row, and None if `before` is None or both figures are 0.
    """
    names = names_of(entry)
    found = {tuple(row[name] for name in names): row[figure] for row in before}
    is_cut = len(before) >= MAX_ROWS.get(entry.name, len(before) + 1) or any(REST in key for key in found)
    compared: list[Mapping[str, Any]] = []
    for row in rows:
        key = tuple(row[name] for name in names)
        was = None if REST in key else found.get(key, None if is_cut else 0)
        change = None if was is None or was == row[figure] == 0 else float("inf")
        if was:
            change = change_in_tenths(row[figure], was) / 10
        compared.append({**row, "before": was, "change": change})
    return compared


def change_in_tenths(now: int, before: int) -> int:
    """Return the change in tenths of a percent, rounded half away from zero, but to -1,000 only if `now` is 0.

    `before` must not be 0.
    """
    size = (2_000 * abs(now - before) + before) // (2 * before)
    if now >= before:
        return size
    return -min(size, 999) if now else -size


def _span(scope: Scope) -> str:
    days = dict.fromkeys((short_day(scope.start_date), short_day(scope.end_date)))
    return " – ".join(days)
