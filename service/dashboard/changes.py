"""The list of changes: new names, and the names that rose and fell most since the previous period.

A rise or fall must be significant by the permutation test that job outcomes also use (service/jobs/rates.py): the days
of both periods are cut into blocks, and the change is compared with the change in every permutation of the blocks. The
error rate applies to the whole list.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import sqrt
from typing import Any, Final, NamedTuple

from service.dashboard.comparison import Comparison
from service.jobs.rates import p_value

MAX_NAMED: Final = 3
"""Maximum number of names for each kind of change."""
MAX_TESTED: Final = 10
"""Maximum number of names to test for each subject (agents, links, referrers): those with the most visits in total."""
MAX_BLOCKS: Final = 7
"""Maximum number of blocks of days in each period; the test goes through all permutations of both periods' blocks."""
MIN_VISITS: Final = 20
"""Minimum number of visits in both periods together for a name to be tested."""
MIN_NEW: Final = 5
"""Minimum number of visits for a name to be called new."""
WRONG: Final = 0.1
"""Error rate of a whole list: maximum share of lists that name a rise or fall although nothing changed."""
_LEAST_DEVIATIONS: Final = 1.5
"""Minimum difference, in standard deviations, for a permutation test; smaller differences often arise by chance."""


class NamedChange(NamedTuple):
    """A name with its visits in both periods."""

    kind: str  # new, rose or fell
    subject: str  # agent, link or referrer
    name: str
    domain: str
    before: int
    now: int


def changes_of(rows: Sequence[Mapping[str, Any]], comparison: Comparison) -> list[NamedChange]:
    """Return the changes between the two periods, from the rows of visits-by-name and visits-by-link: at most MAX_NAMED
    of each kind, the largest first.
    """
    before, now = (_days(scope.start_date, scope.end_date) for scope in (comparison.before, comparison.now))
    counts: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for row in rows:
        is_link = "short_code" in row
        key = ("link", row["short_code"], row["domain"]) if is_link else (row["subject"], row["name"], "")
        counts[key][row["date"]] = row["visits"]
    found: dict[str, list[NamedChange]] = {"new": [], "rose": [], "fell": []}
    tested: list[tuple[NamedChange, list[int], list[int]]] = []
    numbers: dict[str, int] = defaultdict(int)
    for (subject, name, domain), days in sorted(counts.items(), key=lambda item: -sum(item[1].values())):
        early, late = ([days.get(day, 0) for day in span] for span in (before, now))
        change = NamedChange("new", subject, name, domain, sum(early), sum(late))
        if not change.before and change.now >= MIN_NEW:
            found["new"].append(change)
        elif change.before + change.now >= MIN_VISITS and numbers[subject] < MAX_TESTED:
            numbers[subject] += 1
            tested.append((change, early, late))
    for change, early, late in tested:
        is_up = change.now > change.before
        if _is_real(early, late, WRONG / 2 / len(tested), up=is_up):
            kind = "rose" if is_up else "fell"
            found[kind].append(change._replace(kind=kind))
    for kind in ("rose", "fell"):
        found[kind].sort(key=lambda one: (-abs(one.now - one.before), one.subject, one.name, one.domain))
    return [change for changes in found.values() for change in changes[:MAX_NAMED]]


def _days(first: date, last: date) -> list[str]:
    return [str(first + timedelta(number)) for number in range((last - first).days + 1)]


def _blocks(days: Sequence[int]) -> list[int]:
    """Return the sums of at most MAX_BLOCKS runs of days, nearly equal in length."""
    count = min(len(days), MAX_BLOCKS)
    bounds = [len(days) * number // count for number in range(count + 1)]
    return [sum(days[first:last]) for first, last in pairwise(bounds)]


def _is_real(early: Sequence[int], late: Sequence[int], significance: float, *, up: bool) -> bool:
    """Return whether a change is large enough to test and also significant: its p-value in the permutation test of
    blocks of days is at most `significance`.
    """
    before, now = _blocks(early), _blocks(late)
    mean = (sum(before) + sum(now)) / (2 * len(now))
    deviation = sqrt(sum((count - mean) ** 2 for count in (*before, *now)))
    if abs(sum(now) - sum(before)) < _LEAST_DEVIATIONS * deviation:
        return False
    return p_value(before, now, 1, up) <= significance
