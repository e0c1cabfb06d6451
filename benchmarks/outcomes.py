"""The share of outcomes that claim an improvement without a repair, and of repairs that are recognized.

Days are made by models of how requests come; every setting is named here. Each trial is judged as a job is, on the days
7, 14 and 28, beside other subjects of the same model.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from math import exp, sqrt
from random import Random
from typing import Final

from benchmarks.figures import Figure, share_of
from benchmarks.worlds import Setting
from queries import DETECTORS, JobKind
from service.jobs.outcome import DAYS_BEFORE, LAST_DAY, Dates, outcome
from service.jobs.rates import DayCount, period, ratio_interval
from service.jobs.records import JobOutcome

TRIALS: Final = 2_000
VISITS: Final = 50
"""A day, on average."""
SHARE: Final = 0.1
"""Rate of events among them."""
OTHERS: Final = 5
"""Number of subjects other than the judged one."""
SUBJECTS: Final = 20
"""Of these, the one that is worst before it is chosen; the rest are beside it."""
SHIPPED: Final = date(2026, 6, 1)
_COVERED: Final = frozenset(SHIPPED + timedelta(days=number) for number in range(-DAYS_BEFORE, LAST_DAY + 1))
_NUMBERS: Final = (*range(-DAYS_BEFORE, 0), *range(1, LAST_DAY + 1))

Model = Callable[[Random, int], tuple[int, int]]
"""Makes the events and visits of a day, by its number: negative before it was shipped."""
CLOSING: Final = DETECTORS["server_errors"]
SAYING: Final = DETECTORS["search_errors"]
WANTED: Final = DETECTORS["referral_drop"]
"""Events are wanted, as people whom an AI product sends."""


def outcomes(_: Setting) -> Iterator[Figure]:
    """All trials; no lake is needed."""
    for name, (model, others, kind) in NOTHING_DONE.items():
        yield from _wrong(name, [_tried(trial, model, others, kind) for trial in range(TRIALS)])
    for deviation in (0.3, 0.6):
        for kind, said in ((CLOSING, ""), (SAYING, ", kinds that never close")):
            yield from _wrong(f"worst of {SUBJECTS}, drift {deviation}{said}", _worst(deviation, kind))
    for name, (model, others, kind) in DONE.items():
        yield _share(f"seen: {name}", [_tried(trial, model, others, kind) for trial in range(TRIALS)], "improved")
    for name, modelled in COVERED.items():
        for ratio in RATIOS:
            yield _covering(f"{name}, ratio {ratio}", modelled, ratio)


def poisson(chance: Random, mean: float) -> int:
    """Number of arrivals, if each is independent."""
    number, product, limit = 0, chance.random(), exp(-mean)
    while product > limit:
        number, product = number + 1, product * chance.random()
    return number


def independent(share: Callable[[int], float], visits: float = VISITS) -> Model:
    """Requests that know nothing of each other, with a share of events for each day."""

    def model(chance: Random, day: int) -> tuple[int, int]:
        events = poisson(chance, visits * share(day))
        return events, events + poisson(chance, visits * (1 - share(day)))

    return model


def steady(_: int) -> float:
    """The share of events on any day."""
    return SHARE


def clumped(size: int, share: Callable[[int], float] = steady) -> Model:
    """Requests in clumps, in which all or none are events."""

    def model(chance: Random, day: int) -> tuple[int, int]:
        events, visits = independent(share, VISITS / size)(chance, day)
        return size * events, size * visits

    return model


def restless(concentration: float, share: Callable[[int], float] = steady) -> Model:
    """A share of events of its own each day, from a beta distribution."""

    def model(chance: Random, day: int) -> tuple[int, int]:
        mean = share(day)
        own = chance.betavariate(concentration * mean, concentration * (1 - mean))
        return independent(lambda _: own)(chance, day)

    return model


def together(number: int, model: Model) -> Model:
    """The subjects of one cause, counted as one."""

    def summed(chance: Random, day: int) -> tuple[int, int]:
        counts = [model(chance, day) for _ in range(number)]
        return sum(events for events, _ in counts), sum(visits for _, visits in counts)

    return summed


def flooded(chance: Random, day: int) -> tuple[int, int]:
    """From the day on which it was shipped, one visitor more, all of whose requests are answered: three count."""
    events, visits = independent(steady)(chance, day)
    return events, visits + (3 if day > 0 else 0)


def campaign(chance: Random, day: int) -> tuple[int, int]:
    """Until it was shipped, a campaign brought as many people again; AI products sent one in ten, who count."""
    events, visits = independent(steady)(chance, day)
    return events, visits + (poisson(chance, VISITS / 10) if day < 0 else 0)


def _season(day: int) -> float:
    return SHARE if day < 0 else SHARE / 3


def _grown(day: int) -> float:
    return SHARE if day < 0 else 3 * SHARE


def _burst(day: int) -> float:
    return 0.5 if -7 <= day < 0 else 0.02


def _repaired(day: int) -> float:
    return 0.1 if day < 0 else 0.01


STEADY: Final = independent(steady)
NOTHING_DONE: Final[dict[str, tuple[Model, Model, JobKind]]] = {
    "independent": (STEADY, STEADY, CLOSING),
    "clumps of 5": (clumped(5), clumped(5), CLOSING),
    "clumps of 20": (clumped(20), clumped(20), CLOSING),
    "beta 10": (restless(10), restless(10), CLOSING),
    "beta 3": (restless(3), restless(3), CLOSING),
    "burst of 7 days ends": (independent(_burst), independent(lambda _: 0.02), CLOSING),
    "season: a third": (independent(_season), independent(_season), CLOSING),
    "flood": (flooded, STEADY, CLOSING),
    "5 of one cause": (together(5, STEADY), STEADY, CLOSING),
    "5 of one cause, clumps of 20": (together(5, clumped(20)), clumped(20), CLOSING),
    "5 of one cause, beta 3": (together(5, restless(3)), restless(3), CLOSING),
    "5 of one cause, burst of 7 days ends": (
        together(5, independent(_burst)),
        independent(lambda _: 0.02),
        CLOSING,
    ),
    "5 of one cause, season: a third": (together(5, independent(_season)), independent(_season), CLOSING),
    "independent, kinds that never close": (STEADY, STEADY, SAYING),
    "clumps of 20, kinds that never close": (clumped(20), clumped(20), SAYING),
    "beta 3, kinds that never close": (restless(3), restless(3), SAYING),
    "season: a third, kinds that never close": (independent(_season), independent(_season), SAYING),
    "season: threefold, referrals": (independent(_grown), independent(_grown), WANTED),
    "campaign ends, referrals": (campaign, campaign, WANTED),
}
"""The behaviour of the subject, and of each of the others."""
COVERED: Final[dict[str, Callable[[Callable[[int], float]], Model]]] = {
    "independent": independent,
    "clumps of 5": lambda share: clumped(5, share),
    "clumps of 20": lambda share: clumped(20, share),
    "beta 10": lambda share: restless(10, share),
    "beta 3": lambda share: restless(3, share),
}
RATIOS: Final = (1, 0.5, 0.2)
"""Planted: the rate after in times the rate before."""
DONE: Final[dict[str, tuple[Model, Model, JobKind]]] = {
    "broken link, 1 a day": (independent(lambda day: day < 0, visits=1), STEADY, DETECTORS["broken_link"]),
    "blocked agent, 1 a day": (independent(lambda day: day < 0, visits=1), STEADY, DETECTORS["blocked_agent"]),
    "errors 10 % to 1 %, 20 a day": (independent(_repaired, visits=20), independent(steady, visits=20), CLOSING),
    "errors 10 % to 1 %, 5 a day": (independent(_repaired, visits=5), independent(steady, visits=5), CLOSING),
}


def _tried(trial: int, model: Model, others: Model, kind: JobKind) -> JobOutcome:
    chance = Random(trial)
    return _judged(_days(model, chance), [_days(others, chance) for _ in range(OTHERS)], kind)


def _days(model: Model, chance: Random) -> list[DayCount]:
    return [DayCount(SHIPPED + timedelta(days=number), *model(chance, number)) for number in _NUMBERS]


def _judged(days: list[DayCount], others: list[list[DayCount]], kind: JobKind) -> JobOutcome:
    """Return the outcome for some days, at the latest after day 28, if found, approved and shipped on one day."""
    return outcome(
        days, others, Dates(SHIPPED, SHIPPED, SHIPPED, SHIPPED + timedelta(days=LAST_DAY + 1)), _COVERED, kind
    )


def _worst(deviation: float, kind: JobKind) -> list[JobOutcome]:
    """The subject with the most events before, of some whose shares drift: by this deviation of their logarithm."""
    found = []
    for trial in range(TRIALS):
        chance = Random(trial)
        subjects = [_days(_drifting(chance, deviation), chance) for _ in range(SUBJECTS)]
        worst = max(range(SUBJECTS), key=lambda one: period(subjects[one][:DAYS_BEFORE]).events)
        found.append(_judged(subjects.pop(worst), subjects, kind))
    return found


def _drifting(chance: Random, deviation: float) -> Model:
    """A share that wanders: each week's logarithm is half the last one's and half by chance."""
    level, levels = 0.0, dict[int, float]()
    for week in range(-DAYS_BEFORE // 7, LAST_DAY // 7 + 1):
        level = 0.5 * level + sqrt(0.75) * chance.gauss(0, deviation)
        levels[week] = level
    return independent(lambda day: min(1, SHARE * exp(levels[day // 7])))


def _wrong(name: str, found: list[JobOutcome]) -> Iterator[Figure]:
    yield _share(f"wrongly improved: {name}", found, "improved")
    yield _share(f"wrongly worse: {name}", found, "worse")
    yield _share(f"not measurable: {name}", found, "not_measurable")


def _share(case: str, found: list[JobOutcome], status: str) -> Figure:
    return _figure(case, sum(one.status == status for one in found))


def _covering(name: str, model: Callable[[Callable[[int], float]], Model], ratio: float) -> Figure:
    """The share of intervals of the ratio of two rates that contain the planted ratio."""
    hits, planted = 0, model(lambda day: SHARE if day < 0 else SHARE * ratio)
    for trial in range(TRIALS):
        days = _days(planted, Random(trial))
        found = ratio_interval(days[:DAYS_BEFORE], days[DAYS_BEFORE:])
        hits += found is not None and found[0] <= ratio <= found[1]
    return _figure(f"interval holds: {name}", hits)


def _figure(case: str, number: int) -> Figure:
    """The share of the trials in percent, with its interval of 95 % (Wilson)."""
    return Figure(case, "%", *share_of(number, TRIALS))
