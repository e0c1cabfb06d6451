"""Ratios of paired measurements: their median, its confidence interval, and the verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from typing import Final

LEAST_PAIRS: Final = 15
MATTERS: Final = 1.05
"""Minimum ratio of a relevant difference. A smaller difference may be real, but does not block a change."""
_LEVEL: Final = 0.95

SLOWER: Final = "slower"
FASTER: Final = "faster"
NOT_SLOWER: Final = "not slower"


@dataclass(frozen=True)
class Comparison:
    """A measure in a case: the medians of both trees, and the ratio of this tree to the other."""

    measure: str
    unit: str
    pairs: int
    ours: float
    theirs: float
    ratio: float
    """The median of the pairs' ratios; more than 1 if this tree takes longer."""
    low: float
    high: float
    """The ends of the 95 % confidence interval of `ratio`."""

    @property
    def verdict(self) -> str:
        """SLOWER or FASTER if the interval excludes 1 and the ratio differs by the factor MATTERS; else NOT_SLOWER."""
        if self.low > 1 and self.ratio >= MATTERS:
            return SLOWER
        return FASTER if self.high < 1 and self.ratio <= 1 / MATTERS else NOT_SLOWER


def comparison(measure: str, unit: str, ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    """Compare measurements pair by pair; lower is better."""
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    rank = lower_rank(len(ratios))
    return Comparison(
        measure,
        unit,
        len(ratios),
        median(ours),
        median(theirs),
        median(ratios),
        ratios[rank - 1],
        ratios[len(ratios) - rank],
    )


def is_slower(comparisons: Iterable[Comparison]) -> bool:
    """Return whether this tree is slower in any of the comparisons."""
    return any(one.verdict == SLOWER for one in comparisons)


def lower_rank(pairs: int) -> int:
    """Return the rank, from below, of the ratio that begins the median's confidence interval, which ends at the same
    rank from above.

    The interval is the narrowest that covers the median with a probability of at least 95 %, for any distribution: each
    ratio is below the median with a probability of one half. Raises ValueError if there are too few pairs.
    """
    rank = 0
    while coverage(pairs, rank + 1) >= _LEVEL:
        rank += 1
    if not rank:
        raise ValueError(f"{pairs} pairs are too few for a {_LEVEL:.0%} confidence interval: measure 6 or more.")
    return rank


def coverage(pairs: int, rank: int) -> float:
    """Return the probability that the median lies between the ratios of this rank from below and from above."""
    return 1 - 2 * sum(comb(pairs, below) for below in range(rank)) / 2.0**pairs
