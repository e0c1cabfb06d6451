"""Tests whether a rate changed between two spans of days. The unit is the day, because requests come in bursts.

Under the null hypothesis, the order of the days does not matter. So the days of both spans are cut into blocks, which
keep multi-day effects together, and every choice of blocks as the later span is compared with the real later span (an
exact permutation test). Changes shared by the control, such as a season, are subtracted from each day first.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import combinations
from math import fsum, sqrt
from typing import Final, NamedTuple

from service.jobs.records import Measure

_QUANTILE: Final = 2.05
"""A little more than the two-sided 95 % quantile of Student's t for 56 days, because small counts vary more than that
distribution assumes."""
_SLACK: Final = 1e-9
"""Tolerance for rounding: sums of the same numbers in another order differ by less."""


class DayCount(NamedTuple):
    """The counts for one day: a job's events, and the visits among which they can happen."""

    day: date
    events: int
    visits: int
    control_events: int = 0
    """Events of the control: other findings of the same detector that were left unchanged."""
    control_visits: int = 0


def summed(subjects: Iterable[Iterable[tuple[date, int, int]]]) -> list[DayCount]:
    """Sum the events and visits of several subjects for each day."""
    sums: dict[date, tuple[int, int]] = {}
    for day, events, visits in (count for subject in subjects for count in subject):
        before = sums.get(day, (0, 0))
        sums[day] = before[0] + events, before[1] + visits
    return [DayCount(day, *sums[day]) for day in sorted(sums)]


def period(days: Sequence[DayCount]) -> Measure:
    """Sum the events and visits over days."""
    return Measure(len(days), sum(day.events for day in days), sum(day.visits for day in days))


def control(days: Sequence[DayCount]) -> Measure:
    """Sum the control's events and visits over days."""
    return Measure(len(days), sum(day.control_events for day in days), sum(day.control_visits for day in days))


def excess(days: Sequence[DayCount]) -> list[float]:
    """Return the events of each day minus the events expected at the overall rate; negative if fewer."""
    sums = period(days)
    return [day.events - sums.events * day.visits / sums.visits if sums.visits else 0.0 for day in days]


def excess_over_control(days: Sequence[DayCount]) -> list[float]:
    """Return each day's excess minus the control's, which is scaled to the same number of events."""
    others = [DayCount(day.day, day.control_events, day.control_visits) for day in days]
    scale = period(days).events / max(1, period(others).events)
    return [own - scale * other for own, other in zip(excess(days), excess(others), strict=True)]


def p_value(before: Sequence[float], after: Sequence[float], block_days: int, up: bool) -> float:
    """Return the p-value of a rise (`up`) or fall in the values.

    It is the share of all permutations of blocks of about `block_days` days that show at least as large a change.
    """
    earlier, later = _blocks(before, block_days), _blocks(after, block_days)
    fewest = min(later, earlier, key=len)
    observed = fsum(fewest)
    sums = [sum(chosen) for chosen in combinations(earlier + later, len(fewest))]
    if up == (fewest is later):
        return sum(one >= observed - _SLACK for one in sums) / len(sums)
    return sum(one <= observed + _SLACK for one in sums) / len(sums)


def ratio_interval(before: Sequence[DayCount], after: Sequence[DayCount]) -> list[float] | None:
    """Return a confidence interval of about 95 % for the ratio of the rate after to the rate before.

    Return None without earlier events or later visits, or if the rates do not vary from day to day. The interval is
    Wilson's, for the share of all events that came later; the number of events is first divided by the dispersion, the
    factor by which days vary more than independent events would.
    """
    early, late = period(before), period(after)
    days, events = early.days + late.days, early.events + late.events
    squares = fsum(value**2 for span in (before, after) for value in excess(span))
    if not early.events or not squares or not late.visits:
        return None
    number = events**2 * (days - 2) / (squares * days)
    share, z = late.events / events, _QUANTILE
    middle, scale = share + z**2 / (2 * number), 1 + z**2 / number
    margin = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    low, high = max(0, middle - margin) / scale, (middle + margin) / scale
    odds = early.visits / late.visits
    return [low / (1 - low) * odds, high / (1 - high) * odds]


def _blocks(values: Sequence[float], days: int) -> list[float]:
    """Return the sums of blocks of consecutive values, of nearly equal length."""
    count = max(1, round(len(values) / days))
    bounds = [len(values) * number // count for number in range(count + 1)]
    return [fsum(values[bounds[number] : bounds[number + 1]]) for number in range(count)]
