"""The rollup files, and the visit files from which each was computed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from data.disk.files import RegisteredFile
from data.errors import Conflict
from data.manifest.clock import TOLERANCE, format_time
from data.manifest.database import Database
from data.manifest.files import READERS_GRACE
from data.manifest.kinds import ROLLUP_FILES, expire, expire_of_day, insert, live_of_kind
from data.sql import read_sql

SourceFiles = Mapping[date, frozenset[str]]
"""Paths of the visit files counted in a rollup, by day."""

Versions = Sequence[Sequence[str]]
"""Rollup versions, indexed by whether behaviour is used and whether files are set aside."""

_MONTHS_TO_COUNT: Final = read_sql("data.manifest", "sql/months_to_count")


@dataclass(frozen=True)
class Rollup:
    """A file of counts for one month of an organization, and the visit files that were counted."""

    organization: str
    month: date  # its first day
    version: str  # the version of the counting rules
    sources: SourceFiles
    days_without_domains: frozenset[date]  # days without rows for single domains, because they had too many domains


class LiveRollup(NamedTuple):
    """A live rollup file and its sources."""

    file: RegisteredFile
    sources: SourceFiles
    days_without_domains: frozenset[date]


class RollupFiles:
    """The rollup files."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def live(self, organization: str, version: str, first: date, last: date) -> list[LiveRollup]:
        """Return an organization's live rollups of this version for months from `first` to `last`, sorted by month."""
        rows = self._database.rows(
            "SELECT path, bytes, sha256, changed_ns, inode, sources, days_without_domains FROM rollups "
            "WHERE organization = ? AND version = ? AND month BETWEEN ? AND ? AND deletable_at IS NULL ORDER BY month",
            [organization, version, first.isoformat(), last.isoformat()],
        )
        return [
            LiveRollup(
                RegisteredFile(*columns),
                {date.fromisoformat(day): frozenset(paths) for day, paths in json.loads(sources).items()},
                frozenset(map(date.fromisoformat, json.loads(wide_days))),
            )
            for *columns, sources, wide_days in rows
        ]

    def all_live(self, organization: str = "", before: datetime | None = None) -> list[RegisteredFile]:
        """Return the live files of one organization, or of all; with `before`, only files last verified before then."""
        return live_of_kind(self._database, ROLLUP_FILES, organization, before)

    def months_to_count(
        self, now: datetime, quiet_period: timedelta, versions: Versions, lost: list[str]
    ) -> list[tuple[str, date]]:
        """Return the organizations and months with a past day that lacks a valid rollup and has no recent files.

        A file is recent for `quiet_period`. Rollups at the `lost` paths are invalid. Runs a single query.
        """
        clock = datetime.now(UTC)  # the system clock sets checked_at
        asked = {
            "now": now.isoformat(),
            "lost": json.dumps(lost),
            "after": format_time(clock - quiet_period),
            "until": format_time(clock + TOLERANCE),
            "versions": json.dumps(versions),
        }
        rows = self._database.rows(_MONTHS_TO_COUNT, asked)
        return [(organization, date.fromisoformat(month)) for organization, month in rows]

    def expire(self, path: str) -> None:
        """Expire a live rollup file without a grace period."""
        with self._database.transaction() as db:
            expire(db, ROLLUP_FILES, path, datetime.now(UTC))

    def replace(self, rollup: Rollup, move: Callable[[], RegisteredFile], now: datetime) -> None:
        """Move a file into place with `move`, and make it the live rollup of its month.

        Raises Conflict unless the rollup's sources are live.
        """
        sources = {day.isoformat(): sorted(paths) for day, paths in sorted(rollup.sources.items())}
        with self._database.transaction() as db:
            for path in chain(*sources.values()):
                if not db.execute("SELECT 1 FROM files WHERE path = ? AND deletable_at IS NULL", [path]).fetchone():
                    raise Conflict(f"{path} has since been replaced by another process; try again.")
            expire_of_day(db, ROLLUP_FILES, rollup.organization, rollup.month, now + READERS_GRACE)
            without_domains = json.dumps(sorted(map(str, rollup.days_without_domains)))
            own = rollup.month.isoformat(), rollup.version, json.dumps(sources), without_domains
            insert(db, ROLLUP_FILES, [(rollup.organization, *move(), format_time(now), *own)])
