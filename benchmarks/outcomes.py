"""How often an outcome says that something helped when nothing was done, and how often it sees what was.

Days are made by models of how requests come; every setting is named here. Each trial is judged as a job is, on the days
7, 14 and 28.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from math import exp, sqrt
from random import Random
from typing import Final

from benchmarks.figures import Figure
from benchmarks.worlds import Setting
from service.jobs.outcome import DAYS_BEFORE, LAST_DAY, Dates, MeasuredOutcome, outcome
from service.jobs.rates import DayCount, period, ratio_interval

TRIALS: Final = 2_000
VISITS: Final = 50
"""A day, on average."""
SHARE: Final = 0.1
"""Of events among them."""
SUBJECTS: Final = 20
"""Of these, the one that is worst before it is chosen."""
SHIPPED: Final = date(2026, 6, 1)
_COVERED: Final = frozenset(SHIPPED + timedelta(days=number) for number in range(-DAYS_BEFORE, LAST_DAY + 1))

Model = Callable[[Random, int], tuple[int, int]]
"""Makes the events and visits of a day, by its number: negative before it was shipped."""


def outcomes(_: Setting) -> Iterator[Figure]:
    """All of it; no lake is needed."""
    for name, model in NOTHING_DONE.items():
        more_is_better = name in WANTED
        yield from _wrong(name, [_judged(_days(model, Random(trial)), more_is_better) for trial in range(TRIALS)])
    for deviation in (0.3, 0.6):
        yield from _wrong(f"worst of {SUBJECTS}, drift {deviation}", _worst(deviation))
    for name, (model, counts_refusals) in DONE.items():
        found = [_judged(_days(model, Random(trial)), counts_refusals=counts_refusals) for trial in range(TRIALS)]
        yield _share(f"seen: {name}", found, "improved")
    for name in COVERED:
        yield _covering(name, NOTHING_DONE[name])


def binomial(chance: Random, number: int, share: float) -> int:
    """How many of a number of requests are events."""
    return sum(chance.random() < share for _ in range(number))


def poisson(chance: Random, mean: float) -> int:
    """How many come, if each comes by itself."""
    number, product, limit = 0, chance.random(), exp(-mean)
    while product > limit:
        number, product = number + 1, product * chance.random()
    return number


def independent(share: Callable[[int], float], visits: float = VISITS) -> Model:
    """Requests that know nothing of each other, with a share of events for each day."""

    def model(chance: Random, day: int) -> tuple[int, int]:
        number = poisson(chance, visits)
        return binomial(chance, number, share(day)), number

    return model


def clumped(size: int) -> Model:
    """Requests in clumps, all or none of which are events."""

    def model(chance: Random, _: int) -> tuple[int, int]:
        number = poisson(chance, VISITS / size)
        return size * binomial(chance, number, SHARE), size * number

    return model


def restless(concentration: float) -> Model:
    """A share of events of its own each day, from a beta distribution."""

    def model(chance: Random, day: int) -> tuple[int, int]:
        share = chance.betavariate(concentration * SHARE, concentration * (1 - SHARE))
        return independent(lambda _: share)(chance, day)

    return model


def flooded(chance: Random, day: int) -> tuple[int, int]:
    """From the day on which it was shipped, one visitor more, all of whose requests are answered: three count."""
    events, visits = independent(lambda _: SHARE)(chance, day)
    return events, visits + (3 if day > 0 else 0)


def campaign(chance: Random, day: int) -> tuple[int, int]:
    """Two thirds of the visits that are no events end on the day on which it was shipped."""
    events, visits = independent(lambda _: SHARE)(chance, day)
    return events, events + (visits - events if day < 0 else (visits - events) // 3)


NOTHING_DONE: Final[dict[str, Model]] = {
    "independent": independent(lambda _: SHARE),
    "clumps of 5": clumped(5),
    "clumps of 20": clumped(20),
    "beta 10": restless(10),
    "beta 3": restless(3),
    "burst of 7 days ends": independent(lambda day: 0.5 if -7 <= day < 0 else 0.02),
    "season: a third": independent(lambda day: SHARE if day < 0 else SHARE / 3),
    "campaign ends": campaign,
    "flood": flooded,
}
WANTED: Final = ("campaign ends",)
"""Of these, the models whose events are wanted, as people whom an AI product sends; of the others, they are errors."""
COVERED: Final = ("independent", "clumps of 5", "clumps of 20", "beta 10", "beta 3")
DONE: Final[dict[str, tuple[Model, bool]]] = {
    "broken link, 1 a day": (independent(lambda day: 1 if day < 0 else 0, visits=1), True),
    "blocked agent, 1 a day": (independent(lambda day: 1 if day < 0 else 0, visits=1), True),
    "errors 10 % to 1 %, 20 a day": (independent(lambda day: 0.1 if day < 0 else 0.01, visits=20), False),
    "errors 10 % to 1 %, 5 a day": (independent(lambda day: 0.1 if day < 0 else 0.01, visits=5), False),
}


def _days(model: Model, chance: Random) -> list[DayCount]:
    numbers = [*range(-DAYS_BEFORE, 0), *range(1, LAST_DAY + 1)]
    return [DayCount(SHIPPED + timedelta(days=number), *model(chance, number)) for number in numbers]


def _judged(days: list[DayCount], more_is_better: bool = False, counts_refusals: bool = False) -> MeasuredOutcome:
    """What is said of some days, at the latest after day 28."""
    dates = Dates(SHIPPED, SHIPPED, SHIPPED + timedelta(days=LAST_DAY + 1))
    return outcome(days, dates, _COVERED, more_is_better=more_is_better, counts_refusals=counts_refusals)


def _worst(deviation: float) -> list[MeasuredOutcome]:
    """The subject with the most events before, of some whose shares drift: by this deviation of their logarithm."""
    found = []
    for trial in range(TRIALS):
        chance = Random(trial)
        subjects = [_days(_drifting(chance, deviation), chance) for _ in range(SUBJECTS)]
        worst = max(subjects, key=lambda days: period(days[:DAYS_BEFORE]).events)
        found.append(_judged(worst))
    return found


def _drifting(chance: Random, deviation: float) -> Model:
    """A share that wanders: each week's logarithm is half the last one's and half by chance."""
    level, levels = 0.0, dict[int, float]()
    for week in range(-DAYS_BEFORE // 7, LAST_DAY // 7 + 1):
        level = 0.5 * level + sqrt(0.75) * chance.gauss(0, deviation)
        levels[week] = level
    return independent(lambda day: min(1, SHARE * exp(levels[day // 7])))


def _wrong(name: str, found: list[MeasuredOutcome]) -> Iterator[Figure]:
    yield _share(f"wrongly improved: {name}", found, "improved")
    yield _share(f"wrongly worse: {name}", found, "worse")
    yield _share(f"not measurable: {name}", found, "not_measurable")


def _share(case: str, found: list[MeasuredOutcome], status: str) -> Figure:
    return _figure(case, sum(one.status == status for one in found))


def _covering(name: str, model: Model) -> Figure:
    """How often the interval of the ratio of two equal rates holds 1."""
    hits = 0
    for trial in range(TRIALS):
        days = _days(model, Random(trial))
        low, high = ratio_interval(days[:DAYS_BEFORE], days[DAYS_BEFORE:])
        hits += low <= 1 <= high
    return _figure(f"interval holds: {name}", hits)


def _figure(case: str, number: int) -> Figure:
    """The share of the trials in percent, with its interval of 95 % (Wilson)."""
    share, z = number / TRIALS, 1.96
    middle = (share + z * z / (2 * TRIALS)) / (1 + z * z / TRIALS)
    margin = z * sqrt(share * (1 - share) / TRIALS + (z / (2 * TRIALS)) ** 2) / (1 + z * z / TRIALS)
    return Figure(case, "%", 100 * share, max(0, 100 * (middle - margin)), 100 * (middle + margin))
