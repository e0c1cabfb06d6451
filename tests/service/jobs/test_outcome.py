"""Whether it helped, by hand and by exact fractions."""

from datetime import date, timedelta
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jobs.outcome import DayCount, outcome

SHIPPED = date(2026, 3, 10)


def counts(before, after, days=7):
    """Events and visits of each period, on the first day of each."""
    return [
        DayCount(SHIPPED - timedelta(days=14), *before),
        DayCount(SHIPPED, 999, 999),  # the day itself
        DayCount(SHIPPED + timedelta(days=1), *after),
        DayCount(SHIPPED + timedelta(days=days + 1), 999, 999),  # today
    ]


def status_of(before, after, days, more_is_better=False):
    today = SHIPPED + timedelta(days=days + 1)
    return outcome(counts(before, after, days), SHIPPED, today, more_is_better).status


@pytest.mark.parametrize(
    ("before", "after", "days", "more_is_better", "status"),
    [
        ((40, 60), (3, 30), 7, False, "improved"),
        ((40, 60), (18, 30), 7, False, "waiting"),
        ((10, 14), (0, 7), 7, False, "waiting"),  # p = 0.017: not enough, on one of 26 days
        ((40, 60), (0, 30), 2, False, "waiting"),  # too early
        ((40, 60), (18, 30), 28, False, "unchanged"),
        ((40, 60), (0, 3), 28, False, "not_measurable"),  # 2 were to be expected
        ((40, 60), (0, 0), 28, False, "not_measurable"),  # nobody asked any more: no success
        ((3, 60), (28, 30), 7, False, "worse"),
        ((0, 60), (20, 60), 7, True, "improved"),
        ((0, 60), (0, 60), 28, True, "unchanged"),
        ((0, 60), (0, 10), 28, True, "not_measurable"),
        ((40, 60), (3, 60), 7, True, "worse"),
        ((0, 0), (0, 0), 28, False, "not_measurable"),
    ],
)
def test_an_outcome_says_only_what_the_numbers_bear(before, after, days, more_is_better, status):
    assert status_of(before, after, days, more_is_better) == status


def test_the_day_it_was_shipped_and_today_count_in_neither_period():
    found = outcome(counts((4, 10), (1, 5)), SHIPPED, SHIPPED + timedelta(days=8), more_is_better=False)
    assert (found.before, found.after, found.until) == ((14, 4, 10), (7, 1, 5), SHIPPED + timedelta(days=29))


@given(
    st.tuples(st.integers(0, 40), st.integers(1, 40)), st.tuples(st.integers(0, 40), st.integers(1, 40)), st.booleans()
)
def test_the_probability_is_that_of_exact_fractions(before, after, more_is_better):
    events, share = before[0] + after[0], Fraction(after[1], before[1] + after[1])
    terms = [comb(events, k) * share**k * (1 - share) ** (events - k) for k in range(events + 1)]
    exact = min(sum(terms[: after[0] + 1]), sum(terms[after[0] :]))
    found = outcome(counts(before, after), SHIPPED, SHIPPED + timedelta(days=8), more_is_better)
    assert found.probability == pytest.approx(float(exact), rel=1e-9)
