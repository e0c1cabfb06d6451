"""Measurements in pairs: the interval of their ratios, the verdict, and the order of the two trees."""

from math import comb
from pathlib import Path
from random import Random
from statistics import median

import pytest

from benchmarks.paired.cases import table_of
from benchmarks.paired.ratios import Comparison, comparison, coverage, is_slower, lower_rank
from benchmarks.paired.trial import Side, Trial

HOME = Path("nowhere")


def of(ratio, low, high):
    return Comparison("import", "s", 15, 1, 1, ratio, low, high)


@pytest.mark.parametrize(
    ("pairs", "rank", "expected"), [(6, 1, 0.96875), (15, 4, 0.96484375), (20, 6, 0.958610534), (31, 10, 0.970551)]
)
def test_the_medians_interval_covers_at_least_95_percent(pairs, rank, expected):
    assert lower_rank(pairs) == rank
    assert coverage(pairs, rank) == pytest.approx(expected, abs=1e-6)
    assert coverage(pairs, rank + 1) < 0.95


def test_the_coverage_is_the_binomial_probability():
    between = sum(comb(15, heads) for heads in range(4, 12)) / 2**15  # the ratios below the median, out of 15
    assert coverage(15, 4) == pytest.approx(between)


def test_fewer_than_six_pairs_have_no_interval():
    with pytest.raises(ValueError, match="5 pairs are too few for a 95% confidence interval: measure 6 or more"):
        lower_rank(5)


def test_the_ratio_is_the_median_of_the_pairs_ratios():
    """The machine was busy during some pairs, so both sides took longer by the same factor."""
    busy = [1, 1, 1, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]
    found = comparison("import", "s", [1.1 * times for times in busy], busy)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert (found.ours, found.theirs) == pytest.approx((9.9, 9))


def test_the_interval_spans_the_4th_to_the_12th_of_15_ratios():
    ratios = [1 + number / 100 for number in range(1, 16)]
    Random(1).shuffle(ratios)
    found = comparison("import", "s", ratios, [1] * 15)
    assert (found.low, found.ratio, found.high) == pytest.approx((1.04, 1.08, 1.12))


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict"),
    [
        (1.05, 1.01, 1.2, "slower"),
        (1.049, 1.02, 1.06, "not slower"),
        (1.2, 1.0, 1.4, "not slower"),
        (1.0, 0.9, 1.1, "not slower"),
        (0.9, 0.8, 1.0, "not slower"),
        (0.96, 0.95, 0.97, "not slower"),
        (0.95, 0.8, 0.99, "faster"),
    ],
)
def test_a_verdict_needs_a_clear_interval_and_5_percent(ratio, low, high, verdict):
    assert of(ratio, low, high).verdict == verdict
    assert is_slower([of(1, 0.9, 1.1), of(ratio, low, high)]) == (verdict == "slower")


def test_equal_trees_are_rarely_called_slower():
    random = Random(7)

    def noise():
        return [random.lognormvariate(0, 0.2) for _ in range(15)]

    verdicts = [comparison("import", "s", noise(), noise()).verdict for _ in range(1_000)]
    assert verdicts.count("slower") <= 30  # 1.76 % are expected at most
    assert verdicts.count("faster") <= 30


def test_a_tree_that_takes_a_fifth_longer_is_called_slower():
    random = Random(7)
    ours, theirs = ([factor * random.lognormvariate(0, 0.05) for _ in range(15)] for factor in (1.2, 1))
    assert comparison("import", "s", ours, theirs).verdict == "slower"
    assert comparison("import", "s", theirs, ours).verdict == "faster"


def trial(pairs):
    return Trial(*(Side(name, HOME, HOME) for name in ("ours", "theirs")), HOME, HOME, pairs, lambda _: None)


def measured(pairs, seconds=lambda side, number: len(side.name), times=1):
    """Return the order in which two sides were measured, and the results."""
    order = []

    def measure(side, number):
        order.append((number, side.name))
        return {"slept": seconds(side, number)}

    return order, list(trial(pairs).compare("sleep", "ms", measure, times))


def test_the_sides_take_turns_going_first():
    order, _ = measured(7)
    assert "".join(name[0] for _, name in order) == "ot" + "toot" * 3 + "to"
    assert [number for number, _ in order] == [number for number in range(8) for _ in range(2)]


def test_the_first_pair_does_not_count():
    _, (found,) = measured(6, lambda side, number: 4 if number else len(side.name))
    assert (found.ours, found.theirs, found.low, found.high) == (4_000, 4_000, 1, 1)


def test_quick_measures_get_several_times_as_many_pairs():
    _, (found,) = measured(6, lambda _, number: 1 + number, times=3)
    assert found.pairs == 18
    assert found.ours == 1_000 * median(range(2, 20))


@pytest.mark.parametrize(("milliseconds", "text"), [(1_054.3, "1,054"), (0.0898, "0.0898"), (33.52, "33.5")])
def test_the_table_rounds_to_three_digits_or_whole_numbers(milliseconds, text):
    one = Comparison("dashboard", "ms", 15, milliseconds, milliseconds, 1, 0.9, 1.1)
    cells = [next(column.cells) for column in table_of([one]).columns]
    assert cells == ["dashboard", "ms", "15", text, text, "1.000", "0.900 to 1.100", "not slower"]


@pytest.mark.parametrize(("slow", "verdict"), [(range(7), "not slower"), (range(14), "slower")])
def test_only_a_tree_that_is_slower_twice_is_called_slower(slow, verdict):
    order, (found,) = measured(6, lambda side, number: 2 if side.name == "ours" and number in slow else 1)
    assert found.verdict == verdict
    assert order[-1][0] == 13


def test_only_slower_measures_are_compared_again():
    def measure(side, number):
        return {"slow": 2 if side.name == "ours" else 1, "equal": 1 if number < 7 else 9}

    slow, equal = trial(6).compare("sleep", "s", measure)
    assert (slow.verdict, equal.ours) == ("slower", 1)
