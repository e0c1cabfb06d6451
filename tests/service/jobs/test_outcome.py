"""Outcomes: verdicts by the response, verdicts by the rate, and the days that each counts."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import CRAWLER_PLAN
from service.jobs.outcome import Dates, outcome
from service.jobs.rates import DayCount, excess, p_value, ratio_interval
from service.jobs.records import Measure
from service.jobs.verdicts import verdict

SHIPPED = date(2026, 3, 31)
ALL_DAYS = {SHIPPED + timedelta(number) for number in range(-60, 60)}


def counts(before, after, approved_on=SHIPPED):
    """Return the events and visits on the days before the approval, on the days after shipping, and on the shipping
    day, which must not count."""
    first = approved_on - timedelta(len(before))
    rows = [(first + timedelta(number), *one) for number, one in enumerate(before)]
    rows += [(SHIPPED + timedelta(number), *one) for number, one in enumerate(after, 1)]
    return [DayCount(*row) for row in rows] + [DayCount(SHIPPED, 999, 999)]


def judged(before, after, others=(), *, covered=ALL_DAYS, approved_on=SHIPPED, found_on=None, **kind):
    """Return the outcome after as many complete days as `after` has; each of `others` has days before and after."""
    dates = Dates(found_on or approved_on, approved_on, SHIPPED, SHIPPED + timedelta(len(after) + 1))
    beside = [counts(*other, approved_on) for other in others]
    return outcome(counts(before, after, approved_on), beside, dates, covered, replace(CRAWLER_PLAN, **kind))


BAD, GOOD = [(9, 30), (12, 30)] * 14, [(0, 30), (1, 30)] * 14
SEASON = [(BAD, GOOD)] * 3  # what changed for them as well
STEADY = [(BAD, BAD)] * 3
REFUSALS, WANTED, SAYING, CLOSING = {"counts_refusals": True}, {"more_is_better": True}, {}, {"closes_by_rate": True}
JUDGED = [
    # By the response, if requests failed before and succeed now; anything in between by the rate.
    ([(1, 1)] * 10, [(0, 4)] * 3, [], REFUSALS, "improved by answer, resolved"),
    ([(1, 1)] * 10, [(0, 9)] * 2, [], REFUSALS, "waiting by answer"),  # on two days only
    ([(1, 1)] * 10, [(0, 3)] * 3, [], REFUSALS, "waiting by answer"),  # nine requests
    ([(1, 1)] * 10, [(4, 4)] * 5 + [(0, 4)] * 3, [], REFUSALS, "improved by answer, resolved"),  # it took some days
    (
        [(0, 9)] * 14 + [(1, 1)] * 10,
        [(0, 4)] * 3,
        [],
        REFUSALS,
        "improved by answer, resolved",
    ),  # it broke ten days before
    ([(1, 1)] * 10, [(1, 1)] * 28, [], REFUSALS, "unchanged by answer"),
    ([(1, 1)] * 10, [(0, 0)] * 28, [], REFUSALS, "not_measurable by answer"),  # no more requests: not a success
    ([(1, 1)] * 10, [(1, 2)] * 27, [], REFUSALS, "waiting by answer"),
    ([(1, 1)] * 28, [(3, 9)] * 28, [], REFUSALS, "improved by rate"),  # most of them are answered
    ([(1, 1)] * 9, [(0, 4)] * 3, [], REFUSALS, "waiting by rate"),  # too few requests before
    ([(9, 10)] * 28, [(0, 10)] * 7, [], REFUSALS, "improved by rate"),
    # By the rate, which is compared on days 7, 14 and 28.
    (BAD, GOOD[:6], [], SAYING, "waiting by rate"),  # the first look is on day 7
    (BAD, GOOD[:7], [], SAYING, "improved by rate"),
    (GOOD, BAD[:7], [], SAYING, "worse by rate"),
    (GOOD, BAD[:7], [], WANTED, "improved by rate"),
    (BAD, BAD[:7], [], SAYING, "waiting by rate"),
    (BAD, BAD, [], SAYING, "unchanged by rate"),
    (BAD, [(6, 30)] * 28, [], SAYING, "unchanged by rate"),  # certainly fewer, but not half as many
    (GOOD[:18] + [(30, 30)] * 10, GOOD, [], SAYING, "unchanged by rate"),  # a burst that ended by itself
    (GOOD[:21] + [(30, 30)] * 7, GOOD, [], SAYING, "unchanged by rate"),
    ([(3, 9)] * 22 + [(0, 9)] * 6, [(3, 9)] * 28, [], WANTED, "unchanged by rate"),  # a dip
    ([*GOOD[:27], (900, 900)], GOOD, [], SAYING, "unchanged by rate"),  # all on one day
    ([(0, 5)] * 28, [(0, 5)] * 28, [], WANTED, "unchanged by rate"),
    ([(0, 1)] * 28, [(0, 0)] * 27 + [(0, 9)], [], WANTED, "not_measurable by rate"),
    ([(1, 1)] * 28, [(0, 0)] * 28, [], SAYING, "not_measurable by rate"),
    ([], GOOD, [], SAYING, "not_measurable by rate"),
    # A rate closes a job only if the rates of other findings did not change.
    (BAD, GOOD, STEADY, CLOSING, "improved by rate, resolved"),
    (BAD, GOOD, STEADY, SAYING, "improved by rate"),
    (BAD, GOOD, [], CLOSING, "improved by rate"),  # nothing to compare it with
    (BAD, GOOD, [(GOOD[:2] + [(0, 30)] * 26, GOOD)], CLOSING, "improved by rate"),  # one event
    (BAD, GOOD, SEASON, CLOSING, "unchanged by rate"),
    (GOOD, BAD, [(GOOD, BAD)] * 3, SAYING, "unchanged by rate"),
    (BAD, [(4, 30)] * 28, STEADY, CLOSING, "unchanged by rate"),  # a third is not a quarter
    (BAD, [(4, 30)] * 28, STEADY, SAYING, "improved by rate"),
    (BAD, GOOD, [*STEADY * 7, (BAD, [(0, 30)] * 28)], CLOSING, "unchanged by rate"),  # another improved more
    (BAD, GOOD, [*STEADY, (BAD, [(0, 30)] * 28)], CLOSING, "improved by rate, resolved"),  # one of few others may
]


@pytest.mark.parametrize(("before", "after", "others", "kind", "told"), JUDGED)
def test_an_outcome_is_judged_by_the_response_or_by_the_rate(before, after, others, kind, told):
    found = judged(before, after, others, **kind)
    assert f"{found.status} by {found.judged_by}{', resolved' * found.resolves}" == told


def test_a_baseline_excludes_the_detected_burst():
    burst = [(30, 30)] * 7 + [(3, 30)] * 21
    long_ago, just_now = SHIPPED - timedelta(20), SHIPPED - timedelta(13)
    assert judged(burst, [(3, 30)] * 28, found_on=long_ago).before == Measure(20, 60, 600)
    assert judged(burst, [(3, 30)] * 28, found_on=just_now).before == Measure(28, 273, 840)
    assert judged([(9, 30)] * 28, GOOD, STEADY, found_on=long_ago, closes_by_rate=True).resolves


def test_only_covered_days_count_and_too_few_are_not_measured():
    gap = ALL_DAYS - {SHIPPED + timedelta(number) for number in (-3, -2, 2)}
    found = judged(BAD, [(1, 30), (99, 99), *[(0, 30)] * 12], covered=gap)
    assert (found.status, found.before.days, found.after) == ("improved", 26, Measure(13, 1, 390))
    for few in (
        {day for day in ALL_DAYS if day < SHIPPED or day.day % 2},
        {day for day in ALL_DAYS if day.day % 15 > 7},
    ):
        assert judged(BAD, GOOD, covered=few).status == "not_measurable"


def test_days_from_approval_to_shipping_do_not_count():
    found = judged(BAD, GOOD[:7], approved_on=SHIPPED - timedelta(20))
    assert (found.status, found.before, found.after) == ("improved", Measure(28, 294, 840), Measure(7, 3, 210))
    assert found.until == SHIPPED + timedelta(29)


HELPED = "It helped: 10 of 10 requests failed in the 28 days before, 0 of 12 in the 3 days since."
EARLY = (
    "It is too early to tell: 294 of 840 in the 28 days before, 147 of 420 in the 14 days since; there "
    "is no other finding to compare it with; 1 check left."
)
EQUAL = (
    "The rate did not change significantly: 294 of 840 in the 28 days before, 294 of 840 in the "
    "28 days since; for 2 others, 588 of 1,680 before, 588 of 1,680 since; the rate is 0.92 to 1.1 times what it was."
)
BETTER = (
    "The rate got better, and more than for others: 294 of 840 in the 28 days before, 3 of 210 in the 7 "
    "days since; for 1 other, 294 of 840 before, 72 of 210 since."
)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (judged([(1, 1)] * 10, [(0, 4)] * 3, counts_refusals=True), HELPED),
        (judged(BAD, BAD[:14]), EARLY),
        (judged(BAD, BAD, [(BAD, BAD)] * 2), EQUAL),
        (judged(BAD, GOOD[:7], [(BAD, BAD[:7])], closes_by_rate=True), BETTER),
    ],
)
def test_a_verdict_is_one_sentence_with_its_numbers(found, sentence):
    assert verdict(found) == sentence


DAYS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5)


@given(DAYS, DAYS)
def test_p_values_match_all_permutations_of_the_days(before, after):
    days = [DayCount(SHIPPED, min(pair), max(pair)) for pair in before + after]
    values = excess(days)
    found = [p_value(values[: len(before)], values[len(before) :], 1, up) for up in (False, True)]
    events, visits = sum(day.events for day in days), sum(day.visits for day in days)
    scores = [day.events * visits - events * day.visits for day in days]  # whole numbers
    seen = sum(scores[len(before) :])
    sums = [sum(chosen) for chosen in combinations(scores, len(after))]
    fewer, more = sum(one <= seen for one in sums), sum(one >= seen for one in sums)
    assert found == [fewer / len(sums), more / len(sums)]


RATES = st.sampled_from([(0, 0), (0, 0), (0, 9), (1, 1), (9, 9), (40, 90)])
RUNS = st.lists(st.tuples(st.sampled_from([1, 2, 7, 14, 28]), RATES), min_size=1, max_size=4)
"""Runs of equal days: without visits, or with visits of which none, some or all are events."""


@given(RUNS, RUNS, st.lists(st.tuples(RUNS, RUNS), max_size=2), st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_any_daily_counts_have_a_verdict(before, after, others, kind):
    before, after, *beside = (
        [day for number, day in runs for _ in range(number)][:28]
        for runs in (before, after, *(runs for other in others for runs in other))
    )
    names = "counts_refusals", "more_is_better", "closes_by_rate"
    found = judged(before, after, zip(beside[::2], beside[1::2], strict=True), **dict(zip(names, kind, strict=True)))
    assert verdict(found)


def test_a_burst_containing_all_earlier_visits_is_unmeasurable():
    assert judged([(9, 9)] * 7 + [(0, 0)] * 21, [(0, 9)] * 28).status == "not_measurable"


def test_an_interval_narrows_with_more_days():
    steady = [DayCount(SHIPPED, *one) for one in [(10, 100), (12, 100), (8, 100)] * 10]
    half = [DayCount(SHIPPED, day.events // 2, day.visits) for day in steady]
    (low, high), (wide_low, wide_high) = ratio_interval(steady, half), ratio_interval(steady[:6], half[:6])
    assert wide_low < low < 0.5 < high < wide_high
