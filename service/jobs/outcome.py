"""Whether it helped: a job's numbers before and after its implementation was shipped, compared by an exact test.

The conditional test of two Poisson rates: given all events of both periods, those after are binomial if nothing has
changed, with the share of visits after as the probability (Przyborowski and Wilenski, Biometrika 31, 1940). It says
that the rate changed, not why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import exp, fsum, lgamma, log, log1p
from typing import Final, NamedTuple

from service.jobs.states import OutcomeStatus

DAYS_BEFORE: Final = 14
FIRST_CHECK: Final = 3
"""Complete days after the one on which it was shipped, before the first check."""
LAST_CHECK: Final = 28
SIGNIFICANCE: Final = 0.01
CHECKS: Final = LAST_CHECK - FIRST_CHECK + 1
"""One check a day: each may be wrong with SIGNIFICANCE / CHECKS only (Bonferroni)."""
MIN_EXPECTED: Final = 5
"""Events that must have been expected for the last check to say that nothing changed, where fewer are better."""
MIN_VISITS: Final = 20
"""Visits that there must have been for it, where more events are better: before, there may have been none."""

WAITING: Final = "waiting"
IMPROVED: Final = "improved"
UNCHANGED: Final = "unchanged"
WORSE: Final = "worse"
NOT_MEASURABLE: Final = "not_measurable"


class DayCount(NamedTuple):
    """What a measure counts on one day: the events of a job, and the visits among which they can happen."""

    day: date
    events: int
    visits: int


class Period(NamedTuple):
    """The sums of some complete days."""

    days: int
    events: int
    visits: int


@dataclass(frozen=True)
class MeasuredOutcome:
    """The comparison of two periods, and what it says."""

    status: OutcomeStatus
    before: Period
    after: Period
    probability: float | None  # of so few events after, or so many, if nothing has changed; None without visits
    until: date  # the day of the last check


def outcome(counts: Sequence[DayCount], shipped_on: date, today: date, more_is_better: bool) -> MeasuredOutcome:
    """Compare the 14 complete days before `shipped_on` with the complete days after it, 3 to 28.

    Days that `counts` lacks had no visits. The day itself belongs to neither period, nor does `today`.
    """
    checked = min((today - shipped_on).days - 1, LAST_CHECK)
    before = _period(counts, shipped_on - timedelta(days=DAYS_BEFORE), DAYS_BEFORE)
    after = _period(counts, shipped_on + timedelta(days=1), max(checked, 0))
    fewer, more = _tails(before, after)
    better, worse = (more, fewer) if more_is_better else (fewer, more)
    limit = SIGNIFICANCE if checked == LAST_CHECK else SIGNIFICANCE / CHECKS
    status: OutcomeStatus
    if checked < FIRST_CHECK:
        status = WAITING
    elif better <= limit and _has_moved(before, after, up=more_is_better):
        status = IMPROVED
    elif worse <= limit and _has_moved(before, after, up=not more_is_better):
        status = WORSE
    elif checked < LAST_CHECK:
        status = WAITING
    elif more_is_better:
        status = UNCHANGED if after.visits >= MIN_VISITS else NOT_MEASURABLE
    else:
        is_expected = before.events * after.visits >= MIN_EXPECTED * before.visits > 0
        status = UNCHANGED if is_expected else NOT_MEASURABLE
    is_measured = before.visits > 0 and after.visits > 0
    until = shipped_on + timedelta(days=LAST_CHECK + 1)
    return MeasuredOutcome(status, before, after, min(better, worse) if is_measured else None, until)


def _period(counts: Sequence[DayCount], first: date, days: int) -> Period:
    inside = [count for count in counts if first <= count.day < first + timedelta(days=days)]
    return Period(days, sum(count.events for count in inside), sum(count.visits for count in inside))


def _has_moved(before: Period, after: Period, up: bool) -> bool:
    """Whether the rate has at least doubled, or at least halved."""
    if up:
        return after.events * before.visits >= 2 * before.events * after.visits
    return 2 * after.events * before.visits <= before.events * after.visits


def _tails(before: Period, after: Period) -> tuple[float, float]:
    """The probabilities of at most, and of at least, the events after, if the rate has not changed."""
    events, visits = before.events + after.events, before.visits + after.visits
    if not events or not before.visits or not after.visits:
        return 1.0, 1.0
    share = after.visits / visits
    equal = _binomial(after.events, events, share)
    fewer = fsum(_binomial(k, events, share) for k in range(after.events))
    more = fsum(_binomial(k, events, share) for k in range(after.events + 1, events + 1))
    return min(fewer + equal, 1.0), min(more + equal, 1.0)


def _binomial(k: int, n: int, p: float) -> float:
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p))
