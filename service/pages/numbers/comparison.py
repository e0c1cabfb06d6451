"""Comparison with the period before, over judged days only: today is not over, so it is left out on both sides."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from queries import Scope
from service.pages.formats import short_day


@dataclass(frozen=True)
class Comparison:
    """Two equally long spans of complete days, one directly before the other."""

    now: Scope
    before: Scope

    @property
    def spans(self) -> str:
        """Both spans in words: 23 Oct – 21 Nov against 23 Sep – 22 Oct."""
        return f"{_span(self.now)} against {_span(self.before)}"

    def change(self, name: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, str] | None:
        """The change of a field of the overview, with an arrow and a word; None where there was nothing before."""
        if not before[name]:
            return None
        tenths = change_in_tenths(now[name], before[name])
        direction = (tenths > 0) - (tenths < 0)
        size = f"{abs(tenths) // 10:,}.{abs(tenths) % 10} %"
        return {
            "text": f"{'±+−'[direction]}{size}",
            "arrow": "→↑↓"[direction],
            "words": f"{size} {('more', 'fewer')[direction < 0]}" if direction else "unchanged",
            "spans": self.spans,
            "now": f"{now[name]:,}",
            "before": f"{before[name]:,}",
        }


def complete_days(
    scope: Scope, today: date, first_day: date | None, unjudged: Collection[date] = ()
) -> Comparison | None:
    """The comparison for a scope, up to the last complete day that is judged.

    None without such a day, if the days before precede the first visit, or if another of the days is not judged: bots
    in disguise would count as people on one side only.
    """
    end = min(scope.end_date, today - timedelta(1))
    while end in unjudged:
        end -= timedelta(1)
    length = (end - scope.start_date).days + 1
    start_before = scope.start_date - timedelta(max(length, 0))
    if (
        length < 1
        or first_day is None
        or start_before < first_day
        or any(start_before <= day <= end for day in unjudged)
    ):
        return None
    now = replace(scope, end_date=end, traffic_type=None)
    return Comparison(now, replace(now, start_date=start_before, end_date=scope.start_date - timedelta(1)))


def change_in_tenths(now: int, before: int) -> int:
    """The change in tenths of a percent, rounded half away from zero; `before` is not 0."""
    size = (2_000 * abs(now - before) + before) // (2 * before)
    return size if now >= before else -size


def _span(scope: Scope) -> str:
    return f"{short_day(scope.start_date)} – {short_day(scope.end_date)}"
