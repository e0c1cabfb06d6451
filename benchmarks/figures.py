"""Measures functions in alternating runs, and summarizes the runs as figures."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

RUNS: Final = 5
OURS: Final = "ours"


@dataclass(frozen=True)
class Figure:
    """A line of the table: the median and the extremes of several runs, ours or a peer's."""

    case: str
    unit: str
    median: float
    least: float
    most: float
    who: str = OURS
    ratio: float | None = None
    """For a peer: our value divided by the peer's, usually the median over pairs of runs."""
    visits: int = 0
    """Number of visits; 0 if it does not matter."""


def figure(case: str, unit: str, values: list[float], visits: int = 0) -> Figure:
    """Return the figure of our own runs."""
    return Figure(case, unit, statistics.median(values), min(values), max(values), visits=visits)


def beside(case: str, unit: str, samples: Mapping[str, list[float]], visits: int = 0) -> list[Figure]:
    """Return the figure of our own runs, and the figure of each peer's runs with our ratio to the peer."""
    ours = samples[OURS]
    figures = [figure(case, unit, ours, visits)]
    for who, theirs in samples.items():
        if who != OURS:
            ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
            figures.append(replace(figure(case, unit, theirs, visits), who=who, ratio=ratio))
    return figures


def over_runs(figures: Iterable[Figure]) -> list[Figure]:
    """Combine the figures of several runs into one for each case, peer and number of visits: with the medians of their
    medians and ratios, and the extremes of all runs.
    """
    runs: dict[tuple[str, str, int], list[Figure]] = {}
    for one in figures:
        runs.setdefault((one.case, one.who, one.visits), []).append(one)
    return [_over_runs(one) for one in runs.values()]


def _over_runs(runs: list[Figure]) -> Figure:
    ratios = [run.ratio for run in runs if run.ratio is not None]
    return replace(
        runs[0],
        median=statistics.median(run.median for run in runs),
        least=min(run.least for run in runs),
        most=max(run.most for run in runs),
        ratio=statistics.median(ratios) if ratios else None,
    )


def in_turn(ways: Mapping[str, Callable[[], float]], runs: int = RUNS) -> dict[str, list[float]]:
    """Call the functions in turn, `runs` times each after one warm-up; return their measurements by name."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(runs + 1):
        for name, way in ways.items():
            value = way()
            if run:
                samples[name].append(value)
    return samples


def percentile_99(values: Iterable[float]) -> float:
    """Return the 99th percentile."""
    ascending = sorted(values)
    return ascending[math.ceil(0.99 * len(ascending)) - 1]


def share_of(part: int, whole: int) -> tuple[float, float, float]:
    """Return a share in percent, and the ends of its 95 % confidence interval (Wilson's)."""
    share, z = part / whole, 1.96
    middle = (share + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return 100 * share, 100 * max(middle - half, 0), 100 * min(middle + half, 1)


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def milliseconds(work: Callable[[], Any]) -> float:
    """Return the milliseconds that a call takes."""
    return 1000 * seconds(work)
