"""Which files of which days are merged: all of a past day into one, which is judged, those of an open day if many."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from data.maintenance.rewriting import Partition, needs_more_memory
from data.store.clock import is_recent
from data.store.lake import Lake
from data.store.manifest import LandedFile

MAX_OPEN_FILES: Final = 12
"""The number of files of a day that still receives visits; with those that land meanwhile, it stays below 16."""
VISITS_AT_ONCE: Final = 100_000
"""Days of one organization are merged at once up to so many visits: to plan for a small one takes longer than it."""
BYTES_AT_ONCE: Final = 16 << 20
"""And up to so many bytes, for visits with long texts."""
FILES_AT_ONCE: Final = 100
"""And up to so many files, which are all open at once."""


class DayMerge(NamedTuple):
    """Files of one organization's day that become one."""

    partition: Partition
    files: list[LandedFile]
    is_past: bool


Work: TypeAlias = list[DayMerge]
"""Days that are merged at once."""


def days_to_merge(lake: Lake, now: datetime, quiet_period: timedelta, organization: str | None) -> list[DayMerge]:
    """Each day with too many files, or a past one that was not judged; those of most files come first.

    A past day counts as open until nothing has landed in it for `quiet_period`. Without `organization`, days of all.
    """
    merges = []
    clock = datetime.now(UTC)  # not `now`: checked_at is set by the system clock
    for partition in _days(lake, now, organization):
        files = lake.manifest.live_files(*partition, partition.day)
        is_active = any(is_recent(file.checked_at, quiet_period, clock) for file in files)
        is_past = partition.day < lake.manifest.today(partition.organization, now) and not is_active
        chosen = _to_rewrite(files) if is_past else _to_merge(files)
        if chosen:
            merges.append(DayMerge(partition, chosen, is_past))
    return merges


def _days(lake: Lake, now: datetime, organization: str | None) -> list[Partition]:
    """A past day with several live files with visits, or with one that was not judged; an open one with too many."""
    rows = lake.manifest.rows(
        "SELECT organization, day FROM files LEFT JOIN zones USING (organization) "
        "WHERE deletable_at IS NULL AND visits > 0 AND organization = coalesce($organization, organization) "
        "GROUP BY organization, day "
        "HAVING count(*) > iif(day < today_in(zone, $now), 1, $most) "
        "OR day < today_in(zone, $now) AND min(behaviour_version) = 0 "
        "ORDER BY count(*) DESC, organization, day",
        {"now": now.isoformat(), "most": MAX_OPEN_FILES, "organization": organization},
    )
    return [Partition(organization, date.fromisoformat(day)) for organization, day in rows]


def at_once(merges: Iterable[DayMerge]) -> list[Work]:
    """The merges in groups to be done together: small past days of one organization."""
    groups: list[Work] = []
    filling: dict[str, Work] = {}
    for merge in merges:
        group = filling.get(merge.partition.organization, [])
        if group and merge.is_past and _is_small([*group, merge]):
            group.append(merge)
            continue
        groups.append([merge])
        if merge.is_past:
            filling[merge.partition.organization] = groups[-1]
    return groups


def _is_small(group: Work) -> bool:
    files = [file for merge in group for file in merge.files]
    size = sum(file.size for file in files)
    return len(files) <= FILES_AT_ONCE and visits_of(group) <= VISITS_AT_ONCE and size <= BYTES_AT_ONCE


def side_by_side(groups: Iterable[Work], most: int) -> list[list[Work]]:
    """The groups in rows to be done side by side: of one organization, and as many visits as one engine rewrites."""
    rows: list[list[Work]] = []
    for group in groups:
        row = rows[-1] if rows else []
        is_same = bool(row) and row[0][0].partition.organization == group[0].partition.organization
        if is_same and len(row) < most and not needs_more_memory(sum(map(visits_of, [*row, group]))):
            row.append(group)
        else:
            rows.append([group])
    return rows


def visits_of(group: Work) -> int:
    """How many visits the files of a group have."""
    return sum(file.visits for merge in group for file in merge.files)


def merged_apart(files: Iterable[LandedFile]) -> Iterator[list[LandedFile]]:
    """The files that become one: all but those of an unfinished last line, whose visit expires when it has grown."""
    files = list(files)
    if finished := [file for file in files if file.unfinished_of is None]:
        yield finished
    yield from ([file] for file in files if file.unfinished_of is not None)


def _to_rewrite(files: list[LandedFile]) -> list[LandedFile]:
    """All files of a past day, unless they are merged and judged already."""
    is_done = len([*merged_apart(files)]) == len(files) and all(file.behaviour_version for file in files)
    return [] if is_done else files


def _to_merge(files: list[LandedFile]) -> list[LandedFile]:
    """The files of a day that still receives visits that become one, if it has too many."""
    finished = [file for file in files if file.unfinished_of is None]
    return _smallest(finished) if len(finished) > MAX_OPEN_FILES else []


def _smallest(files: list[LandedFile]) -> list[LandedFile]:
    """The smallest files, up to one that is larger than their sum; a visit is then rewritten about four times a day."""
    ascending = sorted(files, key=lambda file: file.visits)
    for number, total in enumerate(accumulate(file.visits for file in ascending[:-1]), 1):
        are_few = len(files) - number < MAX_OPEN_FILES
        if number > 1 and are_few and ascending[number].visits >= 1.25 * total:
            return ascending[:number]
    return ascending
