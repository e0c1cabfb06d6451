"""The status of a lake, mostly from its manifest; only footers, rule versions and signals of visit files are read."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from data.disk.files import READ_ERRORS
from data.errors import LakeDamaged
from data.manifest.clock import TOLERANCE
from data.manifest.files import LandedFile
from data.manifest.statistics import OrganizationStatus
from data.rules.lake_tables import rules_version
from data.rules.own_rules import own_rules
from data.signals import BITS
from data.store.lake import Lake
from data.store.lake_tables import names_of, rules_version_of
from data.text import percentage

MAX_FOOTERS: Final = 500
"""If organizations' first and last days have more files than this, footers (0.2 ms each) are not read, and the times of
the first and last visits are unknown. Also the maximum number of files read for their rule versions."""
MAX_COUNTED: Final = 2_000
"""If an organization has more files than this, their signals (0.6 ms for each file) are not read."""


@dataclass
class LakeStatus:
    """The status of a lake. Times are in UTC."""

    manifest_version: int
    manifest_problem: str  # why nothing may be written, such as an outdated manifest; "" if all is well
    organizations: dict[str, OrganizationStatus]
    total: OrganizationStatus
    dead_files: int  # replaced or expired files, which are deleted after their grace period
    dead_bytes: int
    oldest_check_at: datetime | None  # the oldest time at which the bytes of a live file were last verified
    oldest_salt_at: datetime | None
    agents_refreshed_at: datetime | None
    clock_was_at: datetime | None
    """The latest recorded time, if it is in the future because the clock was once ahead. Such times count as old."""
    rules_version: str
    names: str
    """The source and the date of the agent and referrer names."""
    reclassify_due: bool
    """True if any of the MAX_FOOTERS oldest files has visits that were not classified by the current rules."""


def status_of(lake: Lake, now: datetime) -> LakeStatus:
    """Return the status of a lake. Raises LakeDamaged if its manifest cannot be read."""
    try:
        organizations = _organizations(lake, now)
        version = lake.manifest.statistics.version()
        oldest_salt, newest_salt = _salt_times(lake)
        latest, files = lake.manifest.statistics.latest_time(newest_salt), lake.manifest.statistics.files()
    except sqlite3.DatabaseError as error:
        raise LakeDamaged(
            f"the manifest of {lake.root} cannot be read ({error}); restore the lake from a backup."
        ) from error
    version_of_rules, refreshed = rules_version_of(lake), []
    for path in lake.ip_lists.glob("*.json"):
        with suppress(OSError, ValueError, TypeError, LookupError):  # damaged, which an import reports
            refreshed.append(datetime.fromisoformat(json.loads(path.read_bytes())["fetched_at"]))
    return LakeStatus(
        manifest_version=version,
        manifest_problem=lake.manifest.problem,
        organizations=organizations,
        total=_total(list(organizations.values())),
        dead_files=files.dead,
        dead_bytes=files.dead_bytes,
        oldest_check_at=files.oldest_check_at,
        oldest_salt_at=oldest_salt,
        agents_refreshed_at=max(refreshed, default=None),
        clock_was_at=latest if latest and latest > now + TOLERANCE else None,
        rules_version=version_of_rules,
        names=str(names_of(lake)),
        reclassify_due=_has_old_rules(lake, version_of_rules),
    )


def organization_status(lake: Lake, organization: str, now: datetime) -> OrganizationStatus:
    """Return the status of one organization; all numbers are zero if it has no data."""
    return _organizations(lake, now, organization).get(organization, OrganizationStatus())


def _organizations(lake: Lake, now: datetime, organization: str = "") -> dict[str, OrganizationStatus]:
    """Return the status of every organization by name, or only of the given organization."""
    statuses = lake.manifest.statistics.organizations(now, organization)
    ends = lake.manifest.files.first_and_last_days(organization)
    for name, path in ends if len(ends) <= MAX_FOOTERS else []:
        span = _span(lake.root / path)
        if span and name in statuses:
            status = statuses[name]
            status.first_visit_at = min(span[0], status.first_visit_at or span[0])
            status.last_visit_at = max(span[1], status.last_visit_at or span[1])
    for name, status in statuses.items():
        files = lake.manifest.files.live(name) if status.files <= MAX_COUNTED else None
        aside = None if files is None else count_with_bits(lake, files, lake.manifest.exclusions.bits_aside(name))
        status.counted_visits = None if aside is None else status.visits - aside
    return statuses


def count_with_bits(lake: Lake, files: Iterable[LandedFile], bits: int) -> int | None:
    """Count the visits in these files that have any of `bits` in `signals`; return None if a file cannot be read."""
    count = 0
    for file in files:
        try:
            parquet = pq.ParquetFile(lake.root / file.path)
            if "signals" in parquet.schema_arrow.names:  # the first schema versions have no signals
                signals = pc.fill_null(parquet.read(columns=["signals"])["signals"], 0)
                count += pc.sum(pc.not_equal(pc.bit_wise_and(signals, bits), 0)).as_py() or 0
        except READ_ERRORS:
            return None  # `traffic verify` reports it
    return count


def _has_old_rules(lake: Lake, rules_version: str) -> bool:
    """Return whether any of the oldest files has a visit that was not classified by the current rules."""
    for organization, path in lake.manifest.files.oldest(MAX_FOOTERS):
        current = own_rules(lake.manifest.exclusions.rules(organization)).version(rules_version)
        if _rules_of(lake.root / path) not in ([current], None):
            return True
    return False


class FileShare(NamedTuple):
    """The number of visits stored for a day, and how many of them are requests for files."""

    day: date
    visits: int
    files: int

    @property
    def percentage(self) -> str:
        """The share of requests for files, as text."""
        return percentage(self.files, self.visits)


def large_file_share(lake: Lake, organization: str, first: date, last: date, today: date) -> FileShare | None:
    """Return the share of requests for files on the newest day between `first` and `last` that has visits; None if
    there is no such day, or if these requests are set aside, cannot be counted, or are at most a third of the visits.

    A past day is preferred. One day represents all days well enough, and only a file or two must be read.
    """
    if lake.manifest.exclusions.are_files_aside(organization):
        return None
    stored = lake.manifest.files.live(organization, first, last)
    if not stored:
        return None
    day = max([file.day for file in stored if file.day < today], default=stored[-1].day)
    newest = [file for file in stored if file.day == day]
    visits, files = sum(file.visits for file in newest), count_with_bits(lake, newest, BITS["file"]) or 0
    return FileShare(day, visits, files) if 3 * files > visits else None


def marks_all_files(lake: Lake, organization: str) -> bool:
    """Return whether all stored visits of an organization were classified by the current shipped rules, which mark
    requests for files.

    Also returns False if more than MAX_FOOTERS files would have to be read, or if a file cannot be read.
    """
    stored, shipped = lake.manifest.files.oldest(MAX_FOOTERS + 1, organization), rules_version()
    return len(stored) <= MAX_FOOTERS and all(
        {(version or "").partition("+")[0] for version in _rules_of(lake.root / path) or [""]} == {shipped}
        for _, path in stored
    )


def _rules_of(path: Path) -> list[str | None] | None:
    """Return the distinct versions of the rules that classified a file's visits; None if it cannot be read."""
    try:
        file = pq.ParquetFile(path, read_dictionary=["rules_version"])
        versions: list[str | None] = file.read(columns=["rules_version"])["rules_version"].unique().to_pylist()
    except READ_ERRORS:
        return None  # `traffic verify` reports it
    return versions


def _span(path: Path) -> tuple[datetime, datetime] | None:
    """Return the times of the first and last visits in a file, from its footer; None if the footer cannot be read."""
    try:
        footer = pq.read_metadata(path)
        column = footer.schema.names.index("visited_at")
        groups = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
        if not groups or not all(group is not None and group.has_min_max for group in groups):
            return None
        first, last = min(group.min for group in groups), max(group.max for group in groups)
    except READ_ERRORS:
        return None  # `traffic verify` reports it
    return first.replace(tzinfo=UTC), last.replace(tzinfo=UTC)


def _total(rows: list[OrganizationStatus]) -> OrganizationStatus:
    counted = [row.counted_visits for row in rows]
    return OrganizationStatus(
        files=sum(row.files for row in rows),
        visits=sum(row.visits for row in rows),
        bytes=sum(row.bytes for row in rows),
        first_day=min((row.first_day for row in rows if row.first_day), default=None),
        last_day=max((row.last_day for row in rows if row.last_day), default=None),
        first_visit_at=min((row.first_visit_at for row in rows if row.first_visit_at), default=None),
        last_visit_at=max((row.last_visit_at for row in rows if row.last_visit_at), default=None),
        open_files=sum(row.open_files for row in rows),
        unmerged_days=sum(row.unmerged_days for row in rows),
        unjudged_days=sum(row.unjudged_days for row in rows),
        outdated_days=sum(row.outdated_days for row in rows),
        pending_visits=sum(row.pending_visits for row in rows),
        counted_visits=None if None in counted else sum(filter(None, counted)),
        oldest_pending_at=min((row.oldest_pending_at for row in rows if row.oldest_pending_at), default=None),
    )


def _salt_times(lake: Lake) -> tuple[datetime | None, datetime | None]:
    """Return the creation times of the oldest and the newest salt, without reading the salts."""
    if not lake.salts.exists():
        return None, None
    try:
        with closing(lake.read_database(lake.salts)) as db:
            ((oldest, newest),) = db.execute("SELECT min(created_at), max(created_at) FROM salts").fetchall()
    except (sqlite3.DatabaseError, OSError):  # being created, another user's, or damaged, which an import reports
        return None, None
    if oldest is None:
        return None, None
    return datetime.fromtimestamp(oldest, UTC), datetime.fromtimestamp(newest, UTC)
