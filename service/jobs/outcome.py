"""Outcomes of jobs: compares the counts before the approval with the counts after shipping.

There are two kinds of verdict. A verdict by the response needs no statistics: nearly all requests failed before, and
since then nearly all succeed or still fail. All other jobs get a verdict by the rate: days are compared (rates.py),
with other findings of the same detector as the control. It shows that a rate changed, not why, so it closes only jobs
of types with few false alarms (a detector's `closes_by_rate`).
"""

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, timedelta
from math import log
from typing import Final, NamedTuple

from msgspec.structs import replace

from queries import JobKind
from service.jobs.rates import DayCount, control, excess, excess_over_control, p_value, period, ratio_interval
from service.jobs.records import JobOutcome
from service.jobs.states import OutcomeStatus

DAYS_BEFORE: Final = 28
"""Days before the approval that are compared: enough that a burst of a few days does not dominate."""
MIN_DAYS_BEFORE: Final = 14
"""Minimum number of covered days before the approval, for a verdict by the rate."""
MIN_REQUESTS: Final = 10
"""Minimum number of requests before the approval and after shipping, for a verdict by the response."""
MIN_ANSWERED_DAYS: Final = 3
MAX_BURST: Final = 7
"""Length of a burst in days: if a job was found on the compared days, its rate must have improved even if the worst run
of this length is left out of the days before the approval."""
CHANGE: Final = 2
"""Minimum factor by which a rate must have risen or fallen."""
CLOSING_CHANGE: Final = 4
"""Minimum factor by which a rate must have fallen to close a job: drifting rates rarely fall so far."""
MIN_OTHERS: Final = 20
"""If the control has at least this many subjects, none of them may have changed as much as the job."""
MIN_EXPECTED: Final = 5
"""Minimum number of expected events for the last look to report no change, if fewer events are better. Also the minimum
number of the control's events before the approval, for an outcome by the rate to resolve a job."""
MIN_VISITS: Final = 20
"""Minimum number of visits for the last look to report no change, if more events are better: there may have been no
events before."""


class Look(NamedTuple):
    """A planned analysis: complete days since shipping, days per block, and the share of false alarms (alpha)."""

    days: int
    block_days: int
    significance: float


LOOKS: Final = (Look(7, 2, 0.001), Look(14, 2, 0.002), Look(28, 4, 0.007))
"""Together, these looks report at most 1 % of untouched jobs as improved, and 1 % as worse."""
LAST_DAY: Final = LOOKS[-1].days


class Dates(NamedTuple):
    """The days on which a job was found, approved and shipped, and today. The 28 days before the approval (or
    before shipping, if that was earlier) are compared with up to 28 complete days after shipping.
    """

    found_on: date
    approved_on: date
    shipped_on: date
    today: date

    @property
    def first(self) -> date:
        """First day of the comparison, before the approval."""
        return min(self.approved_on, self.shipped_on) - timedelta(days=DAYS_BEFORE)

    @property
    def until(self) -> date:
        """Day of the last look."""
        return self.shipped_on + timedelta(days=LAST_DAY + 1)

    @property
    def complete_days(self) -> int:
        """Number of complete days after the day of shipping, within the comparison."""
        return max(0, min((self.today - self.shipped_on).days - 1, LAST_DAY))


def outcome(
    counts: Sequence[DayCount],
    others: Sequence[Sequence[DayCount]],
    dates: Dates,
    covered: Set[date],
    kind: JobKind,
) -> JobOutcome:
    """Judge a job by the response if its events are failed requests and nearly all failed before; otherwise by the
    rate.

    A job whose requests still fail in part after the last day is also judged by the rate. `others` are the counts for
    other subjects. Days without counts had no visits. Rates use only the days in `covered`.
    """
    by_day = {count.day: count for count in counts}
    others_by_day = [{count.day: count for count in other} for other in others]
    first_after = dates.shipped_on + timedelta(days=1)
    before = _days(by_day, others_by_day, dates.first, DAYS_BEFORE)
    after = _days(by_day, others_by_day, first_after, dates.complete_days)
    refused = _longest(before, _is_refused) if kind.counts_refusals else None
    if refused and (found := _by_answer(refused, after, dates.until)):
        return found
    known, since = ([day for day in days if day.day in covered] for days in (before, after))
    return _by_rate(known, since, dates, kind, others_by_day)


_Counts = Mapping[date, DayCount]


def _days(by_day: _Counts, others: Sequence[_Counts], first: date, number: int) -> list[DayCount]:
    """Return the counts of `number` days from `first`, with the sums over the other subjects as the control."""
    found = []
    for day in (first + timedelta(days=one) for one in range(number)):
        own, *rest = [counts.get(day, DayCount(day, 0, 0)) for counts in (by_day, *others)]
        sums = period(rest)
        found.append(own._replace(control_events=sums.events, control_visits=sums.visits))
    return found


def _longest(days: Sequence[DayCount], fits: Callable[[Sequence[DayCount]], bool]) -> Sequence[DayCount] | None:
    """Return the longest run of days that ends on the last day and satisfies `fits`; None if no run does."""
    return next((days[first:] for first in range(len(days)) if fits(days[first:])), None)


def _is_refused(days: Sequence[DayCount]) -> bool:
    found = period(days)
    return found.visits >= MIN_REQUESTS and 20 * found.events >= 19 * found.visits


def _is_answered(days: Sequence[DayCount]) -> bool:
    found = period(days)
    answered_days = sum(day.visits > day.events for day in days)
    return found.visits >= MIN_REQUESTS and 20 * found.events <= found.visits and answered_days >= MIN_ANSWERED_DAYS


def _by_answer(before: Sequence[DayCount], after: Sequence[DayCount], until: date) -> JobOutcome | None:
    """Return the verdict by the response; None if, after the last day, some requests still fail and some succeed."""
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
    since, is_better = period(answered or after), status == "improved"
    return JobOutcome(status, period(before), since, None, None, until, "answer", looks_left=0, resolves=is_better)


def _by_rate(
    before: Sequence[DayCount], after: Sequence[DayCount], dates: Dates, kind: JobKind, others: Sequence[_Counts]
) -> JobOutcome:
    """Return the verdict of the first look that sees a change, otherwise of the last look that is due."""
    since_found = [day for day in before if day.day >= dates.found_on]
    is_chosen = len(since_found) < MIN_DAYS_BEFORE  # the job was found on these very days
    before = before if is_chosen else since_found
    sums, later = (period(before), period(after)), after
    found = JobOutcome("waiting", *sums, None, None, dates.until, "rate", looks_left=len(LOOKS), others=0)
    for number, look in enumerate(LOOKS, 1):
        if found.status != "waiting" or dates.complete_days < look.days:
            break
        later = [day for day in after if day.day <= dates.shipped_on + timedelta(days=look.days)]
        found = _look(_Spans(before, later, others), look, kind, is_chosen)
        found = replace(found, until=dates.until, looks_left=len(LOOKS) - number if found.status == "waiting" else 0)
    others_before, others_since = control(before), control(later)
    if others_before.visits and others_since.visits:
        found = replace(found, others=len(others), control_before=others_before, control_after=others_since)
    is_sure = kind.closes_by_rate and others_before.events >= MIN_EXPECTED
    return replace(found, resolves=found.status == "improved" and is_sure)


class _Spans(NamedTuple):
    """The compared days, and the counts for the other subjects."""

    before: Sequence[DayCount]
    after: Sequence[DayCount]
    others: Sequence[_Counts]


def _look(spans: _Spans, look: Look, kind: JobKind, is_chosen: bool) -> JobOutcome:
    before, after, _ = spans
    early, late = period(before), period(after)
    is_known = early.days >= MIN_DAYS_BEFORE and 7 * late.days >= 5 * look.days
    typical = spans
    if is_known and is_chosen:
        typical = spans._replace(before=_without_burst(before, kind.more_is_better))
    is_known = is_known and bool(period(typical.before).visits and late.visits)
    better = worse = 1.0
    if is_known:
        least = CLOSING_CHANGE if kind.closes_by_rate else CHANGE
        better = _chance(typical, look.block_days, kind.more_is_better, least)
        worse = _chance(spans, look.block_days, not kind.more_is_better, CHANGE)
    status: OutcomeStatus
    if better <= look.significance:
        status = "improved"
    elif worse <= look.significance:
        status = "worse"
    elif look is not LOOKS[-1]:
        status = "waiting"
    else:
        is_enough = early.events * late.visits >= MIN_EXPECTED * early.visits > 0  # enough to detect a change
        is_enough = late.visits >= MIN_VISITS if kind.more_is_better else is_enough
        status = "unchanged" if is_known and is_enough else "not_measurable"
    probability = min(better, worse) if min(better, worse) < 1 else None
    interval = ratio_interval(before, after) if is_known and look is LOOKS[-1] else None
    return JobOutcome(status, early, late, probability, None, None, "rate", interval, others=0)


def _chance(spans: _Spans, block_days: int, up: bool, least: float) -> float:
    """Return the p-value of a rise (`up`) or fall: the higher of the p-values with and without the control.

    It is 1 if the change is less than `least`-fold, with or without the control, or if `_is_outdone` returns True.
    """
    before, after, _ = spans
    early, late = period(before), period(after)
    expected = early.events * late.visits / early.visits
    others_early, others_late = control(before), control(after)
    is_controlled = others_early.events and others_late.visits
    season = 1.0
    if is_controlled:
        season = (others_late.events + 0.5) / others_late.visits * others_early.visits / (others_early.events + 0.5)
    for one in (expected, expected * season):
        has_moved = late.events >= least * one if up else least * late.events <= one
        if not has_moved:
            return 1.0
    if _is_outdone(spans, up):
        return 1.0
    ways = (excess, excess_over_control) if is_controlled else (excess,)
    values = [way([*before, *after]) for way in ways]
    return max(p_value(one[: len(before)], one[len(before) :], block_days, up) for one in values)


def _is_outdone(spans: _Spans, up: bool) -> bool:
    """Return whether there are MIN_OTHERS other subjects, and the rate of any of them changed at least as much."""
    if len(spans.others) < MIN_OTHERS:
        return False
    changes = []
    for counts in ({day.day: day for days in spans[:2] for day in days}, *spans.others):
        early, late = (period([counts[day.day] for day in days if day.day in counts]) for days in spans[:2])
        changes.append(log((late.events + 0.5) * (early.visits + 1) / ((early.events + 0.5) * (late.visits + 1))))
    own, *rest = changes if up else [-change for change in changes]
    return max(rest) >= own


def _without_burst(days: Sequence[DayCount], more_is_better: bool) -> Sequence[DayCount]:
    """Return the days without the worst run of MAX_BURST days: a burst that ended by itself may have caused the job."""
    scores = excess(days) if not more_is_better else [-score for score in excess(days)]
    first = max(range(len(days) - MAX_BURST + 1), key=lambda one: sum(scores[one : one + MAX_BURST]))
    return [*days[:first], *days[first + MAX_BURST :]]
