"""Whether a rate changed between two spans of days. The unit is the day: requests come in clumps, so they are no units.

If nothing has changed, the days may as well have come in another order. So the days of both spans are cut into blocks,
which keep what lasts for some days together, and every choice of blocks as the later span is compared with the real one
(an exact permutation test).
"""

from collections.abc import Sequence
from datetime import date
from itertools import combinations
from math import exp, fsum, log, sqrt
from typing import Final, NamedTuple

_QUANTILE: Final = 2.05
"""Of Student's t, two-sided 95 %, with 27 degrees of freedom: those of 28 days."""
_SLACK: Final = 1e-9
"""Sums of the same numbers in another order differ by less."""


class DayCount(NamedTuple):
    """What a measure counts on one day: the events of a job, and the visits among which they can happen."""

    day: date
    events: int
    visits: int


class Period(NamedTuple):
    """The sums of some days."""

    days: int
    events: int
    visits: int


class Chances(NamedTuple):
    """The probabilities of so few events after, and of so many, if nothing has changed."""

    fewer: float
    more: float


def period(days: Sequence[DayCount]) -> Period:
    """The sums of some days."""
    return Period(len(days), sum(day.events for day in days), sum(day.visits for day in days))


def chances(before: Sequence[DayCount], after: Sequence[DayCount], block_days: int) -> Chances:
    """Compare two spans of days by all orders of blocks of about `block_days`; 1 if one has no visits."""
    early, late = period(before), period(after)
    if not early.visits or not late.visits:
        return Chances(1.0, 1.0)
    rate = (early.events + late.events) / (early.visits + late.visits)
    earlier, later = (_blocks([day.events - rate * day.visits for day in days], block_days) for days in (before, after))
    fewest = min(later, earlier, key=len)
    observed = fsum(fewest)
    sums = [sum(chosen) for chosen in combinations(earlier + later, len(fewest))]
    lower = sum(one <= observed + _SLACK for one in sums) / len(sums)
    upper = sum(one >= observed - _SLACK for one in sums) / len(sums)
    return Chances(lower, upper) if fewest is later else Chances(upper, lower)


def ratio_interval(before: Sequence[DayCount], after: Sequence[DayCount]) -> tuple[float, float]:
    """The rate after in times the rate before, from and to: about 95 %, by leaving out each day in turn."""
    (early, early_variance), (late, late_variance) = _log_rate(before), _log_rate(after)
    margin = _QUANTILE * sqrt(early_variance + late_variance)
    return exp(late - early - margin), exp(late - early + margin)


def _blocks(values: Sequence[float], days: int) -> list[float]:
    """The sums of blocks of consecutive values, as equal in length as can be."""
    count = max(1, round(len(values) / days))
    bounds = [len(values) * number // count for number in range(count + 1)]
    return [fsum(values[bounds[number] : bounds[number + 1]]) for number in range(count)]


def _log_rate(days: Sequence[DayCount]) -> tuple[float, float]:
    """The logarithm of the rate of some days, and its variance by the jackknife."""
    total = period(days)
    rates = [log((total.events - day.events + 0.5) / (total.visits - day.visits + 1)) for day in days]
    mean = fsum(rates) / len(rates)
    variance = fsum((rate - mean) ** 2 for rate in rates) * (len(rates) - 1) / len(rates)
    return log((total.events + 0.5) / (total.visits + 1)), variance
