"""Whether it helped: what a job counts before it was approved, and after it was shipped. A verdict is of two kinds.

By the answer: nearly all requests were refused or missing before, and nearly all are answered since, or still refused.
That is what the log says, not statistics. By the rate: everything else is a comparison of days (rates.py), which says
that a rate changed, not why. It can be wrong, so it says what it saw and never closes a job.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, NamedTuple

from service.jobs.rates import DayCount, Period, chances, period, ratio_interval
from service.jobs.states import JudgedBy, OutcomeStatus

DAYS_BEFORE: Final = 28
"""The days before the approval with which those since are compared: a burst of some days is not the rule in them."""
MIN_DAYS_BEFORE: Final = 14
"""As many of them must be covered for a verdict by the rate."""
MIN_REQUESTS: Final = 10
"""As many are needed before, and after, for a verdict by the answer."""
MIN_ANSWERED_DAYS: Final = 3
MAX_BURST: Final = 7
"""The worst days in a row before: a rate got better only if it did without them, too."""
MIN_EXPECTED: Final = 5
"""Events that must have been expected for the last look to say that nothing changed, where fewer are better."""
MIN_VISITS: Final = 20
"""Visits that there must have been for it, where more events are better: before, there may have been none."""


class Look(NamedTuple):
    """When a rate is looked at: complete days after it was shipped, days of a block, and the share of wrong alarms."""

    days: int
    block_days: int
    significance: float


LOOKS: Final = (Look(7, 2, 0.001), Look(14, 2, 0.002), Look(28, 3, 0.007))
"""Together, 1 % of the jobs of which nothing became may be called improved, and 1 % worse."""
LAST_DAY: Final = LOOKS[-1].days


class Dates(NamedTuple):
    """The days on which a job was approved and shipped, and the present one: none of them is counted."""

    approved_on: date
    shipped_on: date
    today: date

    @property
    def first(self) -> date:
        """The first day that is read."""
        return self.end_before - timedelta(days=DAYS_BEFORE)

    @property
    def end_before(self) -> date:
        """The day after the last one that counts as before."""
        return min(self.approved_on, self.shipped_on)

    @property
    def until(self) -> date:
        """The day of the last look."""
        return self.shipped_on + timedelta(days=LAST_DAY + 1)

    @property
    def complete_days(self) -> int:
        """How many days after the one on which it was shipped are over, of those that are read."""
        return max(0, min((self.today - self.shipped_on).days - 1, LAST_DAY))


@dataclass(frozen=True)
class MeasuredOutcome:
    """The comparison of two periods, and what it says."""

    status: OutcomeStatus
    before: Period
    after: Period
    until: date  # the day of the last look
    judged_by: JudgedBy = "rate"
    probability: float | None = None  # of such a change by chance; None unless the rate halved or doubled
    interval: tuple[float, float] | None = None  # of the rate after in times the rate before, after the last look
    looks_left: int = 0


def outcome(
    counts: Sequence[DayCount], dates: Dates, covered: Set[date], *, more_is_better: bool, counts_refusals: bool
) -> MeasuredOutcome:
    """Judge a job by the answer if its events are requests without one and nearly all were; otherwise by the rate.

    Days that `counts` lacks had no visits. Rates are of the days in `covered` only.
    """
    by_day = {count.day: count for count in counts}
    before = _days(by_day, dates.first, DAYS_BEFORE)
    after = _days(by_day, dates.shipped_on + timedelta(days=1), dates.complete_days)
    refused = _longest(before, _is_refused) if counts_refusals else None
    if refused and (found := _by_answer(refused, after, dates.until)):
        return found
    known, since = ([day for day in days if day.day in covered] for days in (before, after))
    return _by_rate(known, since, dates, more_is_better)


def verdict(found: MeasuredOutcome) -> str:
    """What an outcome says, in one sentence with its numbers."""
    if found.judged_by == "answer":
        numbers = (
            f"{_share(found.before)} requests were refused or missing in the {found.before.days} days before, "
            f"{_share(found.after)} in the {found.after.days} days since"
        )
    else:
        numbers = (
            f"{_share(found.before)} on {found.before.days} days before, {_share(found.after)} on {found.after.days} "
            "days since"
        )
    if found.interval:
        low, high = found.interval
        numbers += f"; the rate is {low:.2g} to {high:.2g} times what it was"
    left = f"; looks left: {found.looks_left}" if found.looks_left else ""
    return f"{_LEADS[found.status, found.judged_by]}: {numbers}{left}."


_LEADS: Final[dict[tuple[OutcomeStatus, JudgedBy], str]] = {
    ("waiting", "answer"): "It is too early to tell",
    ("waiting", "rate"): "It is too early to tell",
    ("improved", "answer"): "It helped",
    ("improved", "rate"): "The rate got better, whatever the cause",
    ("unchanged", "answer"): "It changed nothing",
    ("unchanged", "rate"): "The rate changed no more than days do by themselves",
    ("worse", "rate"): "The rate got worse, whatever the cause",
    ("not_measurable", "answer"): "Too few requests came since",
    ("not_measurable", "rate"): "It cannot be measured, since too few days or requests are known",
}


def _days(by_day: dict[date, DayCount], first: date, number: int) -> list[DayCount]:
    days = (first + timedelta(days=one) for one in range(number))
    return [by_day.get(day, DayCount(day, 0, 0)) for day in days]


def _longest(days: Sequence[DayCount], fits: Callable[[Sequence[DayCount]], bool]) -> Sequence[DayCount] | None:
    """The longest run of the latest days that fits."""
    return next((days[first:] for first in range(len(days)) if fits(days[first:])), None)


def _is_refused(days: Sequence[DayCount]) -> bool:
    _, refused, requests = period(days)
    return requests >= MIN_REQUESTS and 20 * refused >= 19 * requests


def _is_answered(days: Sequence[DayCount]) -> bool:
    _, refused, requests = period(days)
    answered_days = sum(day.visits > day.events for day in days)
    return requests >= MIN_REQUESTS and 20 * refused <= requests and answered_days >= MIN_ANSWERED_DAYS


def _by_answer(before: Sequence[DayCount], after: Sequence[DayCount], until: date) -> MeasuredOutcome | None:
    """The verdict by the answer; None if after the last day some are answered and some are not."""
    answered, is_over = _longest(after, _is_answered), len(after) == LAST_DAY
    status: OutcomeStatus
    if answered:
        status = "improved"
    elif not is_over:
        status = "waiting"
    elif period(after).visits < MIN_REQUESTS:
        status = "not_measurable"
    elif _is_refused(after):
        status = "unchanged"
    else:
        return None
    return MeasuredOutcome(status, period(before), period(answered or after), until, "answer")


def _by_rate(
    before: Sequence[DayCount], after: Sequence[DayCount], dates: Dates, more_is_better: bool
) -> MeasuredOutcome:
    """The verdict of the first look that sees a change, or else of the last one that is due."""
    found = MeasuredOutcome("waiting", period(before), period(after), dates.until, looks_left=len(LOOKS))
    for number, look in enumerate(LOOKS, 1):
        if found.status != "waiting" or dates.complete_days < look.days:
            break
        later = [day for day in after if day.day <= dates.shipped_on + timedelta(days=look.days)]
        found = _look(before, later, look, dates.until, more_is_better, len(LOOKS) - number)
    return found


def _look(  # noqa: PLR0917  # two spans of days, and what is said of them
    before: Sequence[DayCount], after: Sequence[DayCount], look: Look, until: date, more_is_better: bool, left: int
) -> MeasuredOutcome:
    early, late = period(before), period(after)
    is_known = early.days >= MIN_DAYS_BEFORE and 7 * late.days >= 5 * look.days and early.visits and late.visits
    better = worse = 1.0
    if is_known:
        better = _chance(_without_burst(before, more_is_better), after, look.block_days, up=more_is_better)
        worse = _chance(before, after, look.block_days, up=not more_is_better)
    status: OutcomeStatus
    if better <= look.significance:
        status = "improved"
    elif worse <= look.significance:
        status = "worse"
    elif left:
        status = "waiting"
    else:
        status = "unchanged" if is_known and _is_enough(early, late, more_is_better) else "not_measurable"
    chance = min(better, worse)
    interval = ratio_interval(before, after) if is_known and not left else None
    return MeasuredOutcome(
        status, early, late, until, probability=chance if chance < 1 else None, interval=interval,
        looks_left=left if status == "waiting" else 0,
    )  # fmt: skip


def _chance(before: Sequence[DayCount], after: Sequence[DayCount], block_days: int, up: bool) -> float:
    """The probability of such a change by chance; 1 unless the rate has at least doubled, or at least halved."""
    if not _has_moved(period(before), period(after), up):
        return 1.0
    found = chances(before, after, block_days)
    return found.more if up else found.fewer


def _without_burst(days: Sequence[DayCount], more_is_better: bool) -> Sequence[DayCount]:
    """The days without the worst ones in a row: they may be what made the job, and have ended by themselves."""
    _, events, visits = period(days)
    rate, sign = events / visits, -1 if more_is_better else 1
    scores = [sign * (day.events - rate * day.visits) for day in days]
    first = max(range(len(days) - MAX_BURST + 1), key=lambda one: sum(scores[one : one + MAX_BURST]))
    return [*days[:first], *days[first + MAX_BURST :]]


def _is_enough(before: Period, after: Period, more_is_better: bool) -> bool:
    """Whether a change could have been seen."""
    if more_is_better:
        return after.visits >= MIN_VISITS
    return before.events * after.visits >= MIN_EXPECTED * before.visits > 0


def _has_moved(before: Period, after: Period, up: bool) -> bool:
    """Whether the rate has at least doubled, or at least halved."""
    if up:
        return after.events * before.visits >= 2 * before.events * after.visits
    return 2 * after.events * before.visits <= before.events * after.visits


def _share(found: Period) -> str:
    return f"{found.events:,} of {found.visits:,}"
