"""Plans merges: all files of a past day become one file, and the day is judged; files of an open day are merged only if
there are too many.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from data.manifest.clock import is_recent
from data.manifest.files import LandedFile
from data.store.engines import MEMORY_PER_VISIT, MIN_MEMORY
from data.store.lake import Lake
from data.store.rewriting import Partition

MAX_OPEN_FILES: Final = 12
"""Maximum number of files for a day that still receives visits; even with files that land during a merge, such a day
has fewer than 16."""
VISITS_AT_ONCE: Final = 100_000
"""Maximum number of visits in days merged together. Small days share a merge: planning takes longer than merging."""
BYTES_AT_ONCE: Final = 16 << 20
"""Maximum size in bytes of days merged together, which matters if visits have long strings."""
FILES_AT_ONCE: Final = 100
"""Maximum number of files merged together, since all of them are open at the same time."""


class DayMerge(NamedTuple):
    """The files for one day of an organization that are to be merged."""

    partition: Partition
    files: list[LandedFile]
    is_past: bool


MergeGroup: TypeAlias = list[DayMerge]
"""Days merged together."""


def days_to_merge(
    lake: Lake, now: datetime, quiet_period: timedelta, organization: str | None, version: int
) -> list[DayMerge]:
    """Return days with too many files, and past days not judged by this `version` of the signals or a later version.

    Days with files that were never judged come first; otherwise, days with more files come first. A past day
    counts as open until nothing has landed in it for `quiet_period`. Without `organization`, days of all organizations
    are returned.
    """
    merges = []
    clock = datetime.now(UTC)  # not `now`: checked_at is set by the system clock
    for owner, day in lake.manifest.files.days_to_merge(now, MAX_OPEN_FILES, organization, version):
        partition = Partition(owner, day)
        files = lake.manifest.files.live(*partition, partition.day)
        is_active = any(is_recent(file.checked_at, quiet_period, clock) for file in files)
        is_past = partition.day < lake.manifest.organizations.today(owner, now) and not is_active
        if not is_past:
            files = _to_merge(files)
        elif len([*files_by_result(files)]) == len(files) and all(file.behaviour_version >= version for file in files):
            continue  # already merged and judged
        if files:
            merges.append(DayMerge(partition, files, is_past))
    return merges


def group_merges(merges: Iterable[DayMerge]) -> list[MergeGroup]:
    """Group merges to be done together: merges of small past days of the same organization."""
    groups: list[MergeGroup] = []
    filling: dict[str, MergeGroup] = {}
    for merge in merges:
        group = filling.get(merge.partition.organization, [])
        files = [file for one in (*group, merge) for file in one.files]
        is_small = len(files) <= FILES_AT_ONCE and sum(file.size for file in files) <= BYTES_AT_ONCE
        if group and merge.is_past and is_small and visits_of([*group, merge]) <= VISITS_AT_ONCE:
            group.append(merge)
            continue
        groups.append([merge])
        if merge.is_past:
            filling[merge.partition.organization] = groups[-1]
    return groups


def concurrent_groups(groups: Iterable[MergeGroup], most: int) -> list[list[MergeGroup]]:
    """Arrange groups in rows to merge in parallel: up to `most` groups of one organization that together fit into
    MIN_MEMORY.
    """
    rows: list[list[MergeGroup]] = []
    for group in groups:
        row = rows[-1] if rows else []
        is_same = bool(row) and row[0][0].partition.organization == group[0].partition.organization
        memory = sum(map(visits_of, [*row, group])) * MEMORY_PER_VISIT
        if is_same and len(row) < most and memory <= MIN_MEMORY:
            row.append(group)
        else:
            rows.append([group])
    return rows


def visits_of(group: MergeGroup) -> int:
    """Return the number of visits in the files of a group."""
    return sum(file.visits for merge in group for file in merge.files)


def files_by_result(files: Iterable[LandedFile]) -> Iterator[list[LandedFile]]:
    """Yield the files to merge into each new file: all finished files together, then each file with the visit from
    an unfinished last line alone.

    The visit from an unfinished line expires when the line grows.
    """
    files = list(files)
    if finished := [file for file in files if file.unfinished_of is None]:
        yield finished
    yield from ([file] for file in files if file.unfinished_of is not None)


def _to_merge(files: list[LandedFile]) -> list[LandedFile]:
    """Return the files to merge on a day that still receives visits, if it has too many files.

    These are the smallest files, before the first file with at least 1.25 times as many visits as they have together,
    if few enough files remain then; otherwise all files. A visit is thus rewritten about four times a day.
    """
    ascending = sorted((file for file in files if file.unfinished_of is None), key=lambda file: file.visits)
    if len(ascending) <= MAX_OPEN_FILES:
        return []
    for number, total in enumerate(accumulate(file.visits for file in ascending[:-1]), 1):
        are_few = len(ascending) - number < MAX_OPEN_FILES
        if number > 1 and are_few and ascending[number].visits >= 1.25 * total:
            return ascending[:number]
    return ascending
