"""Time zones and epochs of organizations, read before every answer. A new epoch invalidates earlier answers.

The zone in which visits are dated can be set only before the first visit; the default is UTC.
"""

import sqlite3
from datetime import date, datetime
from threading import Lock
from typing import Final, NamedTuple

from data.errors import BadInput, Conflict
from data.local_time import DEFAULT_ZONE, check_zone, today
from data.manifest.database import Database
from data.visits import check_organization

_STATE: Final = """
SELECT (SELECT epoch FROM epochs WHERE organization = :organization),
    (SELECT zone FROM zones WHERE organization = :organization), (SELECT number FROM generation)
"""
_HAS_VISITS: Final = """
SELECT 1 FROM batches WHERE organization = :organization
UNION ALL SELECT 1 FROM files WHERE organization = :organization
UNION ALL SELECT 1 FROM pending WHERE organization = :organization LIMIT 1
"""


class ZoneChanged(Conflict):
    """An organization's zone was set while its first visits were being prepared in another zone."""


class OrganizationState(NamedTuple):
    """The epoch of an organization (how often its answers were invalidated), its zone, and the lake's revision."""

    epoch: int
    zone: str
    revision: int
    """Number of commits to the manifest: answers from the same revision are equal."""


class Organizations:
    """The organizations of a manifest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reader, self._reading = database.reader(), Lock()

    def close(self) -> None:
        """Close the connection that reads states."""
        self._reader.close()

    def names(self) -> list[str]:
        """Return the names of all organizations with imports, files or epochs, sorted."""
        rows = self._database.rows(
            "SELECT organization FROM batches UNION SELECT organization FROM files "
            "UNION SELECT organization FROM epochs ORDER BY organization"
        )
        return [name for (name,) in rows]

    def state(self, organization: str) -> OrganizationState:
        """Return an organization's epoch and zone, and the lake's revision.

        This is called before every answer, on the server's event loop, so it must take only microseconds and not wait
        for other reads. Raises OSError (ESTALE) if the manifest was moved or replaced, since SQLite would keep using
        the old file.
        """
        self._database.check_identity()
        with self._reading:
            return state_of(self._reader, organization)

    def epoch(self, organization: str) -> int:
        """Return how often an organization's answers were invalidated, by a change to landed visits or to what answers
        count. Answers cached in earlier epochs are stale.
        """
        return self.state(organization).epoch

    def zone(self, organization: str) -> str:
        """Return the time zone in which an organization's visits are dated."""
        return self.state(organization).zone

    def is_new(self, organization: str) -> bool:
        """Return whether an organization has no imports or visits yet, and its zone has not been set."""
        has_zone = self._database.rows("SELECT 1 FROM zones WHERE organization = ?", [organization])
        return not (has_zone or self._database.rows(_HAS_VISITS, {"organization": organization}))

    def today(self, organization: str, now: datetime) -> date:
        """Return the local date of an organization at a timezone-aware time."""
        return today(self.zone(organization), now)

    def set_zone(self, organization: str, zone: str) -> None:
        """Set the zone of an organization without visits.

        Raises BadInput if the name or zone is invalid, or if visits are already dated in another zone, even removed
        visits, which may still be on disk.
        """
        check_organization(organization)
        check_zone(zone)
        with self._database.transaction() as db:
            before = state_of(db, organization).zone
            if before != zone and db.execute(_HAS_VISITS, {"organization": organization}).fetchone():
                raise BadInput(
                    f"{organization} already has visits in {before}, so its zone cannot change; "
                    "set the zone of a new organization and import the logs there again."
                )
            db.execute("INSERT OR REPLACE INTO zones VALUES (?, ?)", [organization, zone])


def state_of(db: sqlite3.Connection, organization: str) -> OrganizationState:
    """Return an organization's state in one query; the organization need not have visits."""
    ((epoch, zone, revision),) = db.execute(_STATE, {"organization": organization}).fetchall()
    return OrganizationState(epoch or 0, zone or DEFAULT_ZONE, revision)


def begin_epoch(db: sqlite3.Connection, organization: str) -> None:
    """Invalidate all answers of an organization. The caller must have begun a transaction."""
    db.execute(
        "INSERT INTO epochs VALUES (?, 1) ON CONFLICT (organization) DO UPDATE SET epoch = epoch + 1", [organization]
    )


def check_zone_is(db: sqlite3.Connection, organization: str, zone: str) -> None:
    """Raise ZoneChanged if an organization's zone is not `zone`, by which the visits to commit were dated."""
    now = state_of(db, organization).zone
    if now != zone:
        raise ZoneChanged(f"the time zone of {organization} has since been set to {now}; try again.")
