"""Pending visits: acknowledged, but not yet in a file. They are rows of the manifest, packed by store/pending.py."""

import secrets
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from data.errors import Conflict
from data.manifest.arrivals import Arrivals, note_arrivals
from data.manifest.clock import format_time, parse_time
from data.manifest.coverage import note_received
from data.manifest.database import Database
from data.manifest.exclusions import note_excluded
from data.manifest.files import Move, insert_files
from data.manifest.organizations import check_zone_is
from data.rules.exclusions import NONE_EXCLUDED, ExcludedVisits

SESSION_BITS: Final = 20
"""Number of low bits of a row's id that count the rows of its session."""


def session_of(row: int) -> int:
    """Return the session of a row of pending visits: each time a manifest is opened, a new session begins.

    Row ids differ between sessions, even if two programs continue from copies of one manifest.
    """
    return row >> SESSION_BITS


class PendingPack(NamedTuple):
    """Packed visits of one organization that are added together."""

    organization: str
    visits: int
    body: bytes
    zone: str  # time zone in which the visits are dated
    excluded: ExcludedVisits = NONE_EXCLUDED


class PendingBatch(NamedTuple):
    """A row with visits of one organization that were received together."""

    id: int
    organization: str
    visits: int
    received_at: str
    body: bytes


class Backlog(NamedTuple):
    """The number of pending visits, and the time when the oldest was received."""

    visits: int
    oldest: datetime | None


class ReportedVisits(NamedTuple):
    """Pending visits of one organization that have been staged in files."""

    organization: str
    zone: str  # time zone in which the visits are dated
    arrived: Mapping[int, int]  # number of visits by hour
    move: Move


class Pending:
    """The pending visits of all organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = 0  # of the visits added by this object (session_of); 0: none yet

    def add(self, packs: Collection[PendingPack], now: datetime) -> None:
        """Store visits durably. Raises ZoneChanged, in which case nothing is stored."""
        with self._database.transaction() as db:
            for pack in packs:
                check_zone_is(db, pack.organization, pack.zone)
                note_excluded(db, pack.organization, pack.excluded)
            first = self._next_id(db)
            db.executemany(
                "INSERT INTO pending (id, organization, visits, received_at, body, zone) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (first + number, pack.organization, pack.visits, format_time(now), pack.body, pack.zone)
                    for number, pack in enumerate(packs)
                ],
            )

    def _next_id(self, db: sqlite3.Connection) -> int:
        """Return an id that is higher than all previous ids."""
        ((last,),) = db.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'pending'").fetchall()
        if not self._session:
            random_bits = secrets.randbits(8)  # so that copies of a manifest, opened together, use different ids
            self._session = max(int(time.time()) << 8, session_of(last) + 1) + random_bits
        return max(int(last) + 1, self._session << SESSION_BITS)

    def backlog(self) -> Backlog:
        """Return the number of pending visits of all organizations, and when the oldest was received."""
        ((visits, oldest),) = self._database.rows("SELECT coalesce(sum(visits), 0), min(received_at) FROM pending")
        return Backlog(visits, parse_time(oldest))

    def latest_id(self) -> int | None:
        """Return the highest id; None if nothing is pending."""
        ((latest,),) = self._database.rows("SELECT max(id) FROM pending")
        return latest  # type: ignore[no-any-return]

    def latest_received(self) -> str | None:
        """Return the time when the latest visits were received; None if nothing is pending."""
        ((latest,),) = self._database.rows("SELECT max(received_at) FROM pending")
        return latest  # type: ignore[no-any-return]

    def has_any_received_until(self, latest: str | None) -> bool:
        """Return whether any visits received up to the time `latest` are still pending; False if `latest` is None."""
        return bool(self._database.rows("SELECT 1 FROM pending WHERE received_at <= ? LIMIT 1", [latest]))

    def oldest(self, after: int, until: int | None, most: int) -> list[PendingBatch]:
        """Return the oldest rows with ids above `after` and up to `until`, from one session, stopping once they have
        `most` visits.
        """
        rows = self._database.rows(
            "SELECT id, organization, visits, received_at, body FROM "
            "(SELECT *, sum(visits) OVER (ORDER BY id) AS so_far FROM pending WHERE id > ? AND id <= ?) "
            "WHERE so_far - visits < ? ORDER BY id",
            [after, until, most],
        )
        batches = [PendingBatch(*row) for row in rows]
        return [batch for batch in batches if session_of(batch.id) == session_of(batches[0].id)]

    def batches(self, organization: str = "") -> list[PendingBatch]:
        """Return all rows of one organization or of all."""
        rows = self._database.rows(
            "SELECT id, organization, visits, received_at, body FROM pending WHERE ? IN ('', organization)",
            [organization],
        )
        return [PendingBatch(*row) for row in rows]

    def land(self, ids: Iterable[int], received: tuple[str, str], landed: Sequence[ReportedVisits]) -> None:
        """Delete the pending rows with these ids, and move the files with their visits into place. `received`
        contains the times at which the first and the last row were received.

        Raises Conflict if another process moved the visits, or ZoneChanged if a zone was changed.
        """
        with self._database.transaction() as db:
            for visits in landed:
                check_zone_is(db, visits.organization, visits.zone)
            for key in ids:
                if db.execute("DELETE FROM pending WHERE id = ?", [key]).rowcount != 1:
                    raise Conflict("these visits were moved by another process; try again.")
            for visits in landed:
                note_received(db, visits.organization, *received)
                arrived = Arrivals("report", "", visits.arrived)
                note_arrivals(db, visits.organization, arrived, datetime.fromisoformat(received[1]))
            insert_files(db, [file for visits in landed for file in visits.move()])
