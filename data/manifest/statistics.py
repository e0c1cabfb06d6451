"""Statistics on the stored visits: counts for the status of a lake, and each organization's days with visits."""

import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, NamedTuple

from data.manifest.clock import format_time, parse_time
from data.manifest.database import Database
from data.signals import BEHAVIOUR_VERSION
from data.sql import read_sql

_ORGANIZATIONS: Final = read_sql("data.manifest", "sql/organizations")
"""A single statement, so that visits that are moved from `pending` into a file are counted once."""
_SPAN: Final = read_sql("data.manifest", "sql/span")
_LATEST_TIME: Final = """
SELECT max(at) FROM (
    SELECT max(checked_at) AS at FROM files WHERE deletable_at IS NULL UNION ALL SELECT max(received_at) FROM pending
    UNION ALL SELECT max(at) FROM last_runs UNION ALL SELECT ?
)
"""
_FILES: Final = """
SELECT sum(deletable_at IS NOT NULL), sum(iif(deletable_at IS NULL, 0, bytes)),
    min(iif(deletable_at IS NULL, checked_at, NULL)) FROM files
"""


@dataclass
class OrganizationStatus:
    """Counts and times of stored visits for one organization, or for all of them together."""

    files: int = 0
    visits: int = 0  # in files, excluding pending visits
    bytes: int = 0
    first_day: date | None = None
    last_day: date | None = None
    first_visit_at: datetime | None = None  # from footers, which data/store/status.py reads if there are few
    last_visit_at: datetime | None = None
    open_files: int = 0  # files of today
    unmerged_days: int = 0  # past days with several files, which compaction will merge
    unjudged_days: int = 0  # past days with visits that were not judged
    pending_visits: int = 0  # acknowledged, but not yet in a file
    oldest_pending_at: datetime | None = None
    outdated_days: int = 0  # past days judged by an earlier version of the signals
    counted_visits: int | None = 0  # number of `visits` that answers count; None: unknown


class FileCounts(NamedTuple):
    """The number and size of dead visit files, and the time of the oldest check of a live file."""

    dead: int
    dead_bytes: int
    oldest_check_at: datetime | None  # of a live file


class StoredSpan(NamedTuple):
    """An organization's first and last day with visit files (None: no files), and whether visits are pending."""

    first_day: date | None
    last_day: date | None
    has_pending: bool
    unjudged: frozenset[date]
    """Days with unjudged visits, including today; none if behaviour is switched off."""

    @property
    def is_empty(self) -> bool:
        """True if the organization has no visits at all."""
        return self.first_day is None and not self.has_pending


class Statistics:
    """Statistics on the lake."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """Return the version of the manifest's tables."""
        ((version,),) = self._database.rows("PRAGMA user_version")
        return int(version)

    def organizations(self, now: datetime, organization: str = "") -> dict[str, OrganizationStatus]:
        """Return the status of each organization by name, or only of the given organization."""
        asked = {"now": now.isoformat(), "organization": organization, "version": BEHAVIOUR_VERSION}
        rows = self._database.rows(_ORGANIZATIONS, asked)
        return {
            name: OrganizationStatus(
                files, visits, size, _day(first), _day(last), None, None,
                today, unmerged, unjudged, pending, parse_time(oldest), outdated,
            )
            for name, files, visits, size, first, last, today, unmerged, unjudged, pending, oldest, outdated in rows
        }  # fmt: skip

    def stored_span(self, organization: str) -> StoredSpan:
        """Return the span of an organization's visits. Takes well under a millisecond, unlike `organizations`."""
        ((first, last, has_pending, unjudged),) = self._database.rows(_SPAN, {"organization": organization})
        days = frozenset(map(date.fromisoformat, json.loads(unjudged)))
        return StoredSpan(_day(first), _day(last), bool(has_pending), days)

    def files(self) -> FileCounts:
        """Return the number and size of dead visit files, and the time of the oldest check among live ones."""
        ((dead, dead_bytes, oldest_check),) = self._database.rows(_FILES)
        return FileCounts(dead or 0, dead_bytes or 0, parse_time(oldest_check))

    def latest_time(self, other: datetime | None) -> datetime | None:
        """Return the latest time at which a live visit file was checked, a pending visit received or a task run, or
        `other` if it is later.
        """
        ((latest,),) = self._database.rows(_LATEST_TIME, [format_time(other) if other else None])
        return parse_time(latest)


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None
