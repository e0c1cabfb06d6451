"""What is asked of an organization before every answer: its zone, and its epoch, which outdates earlier answers.

The zone, by which its visits are dated, is set before the first visit, or stays UTC.
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
    (SELECT zone FROM zones WHERE organization = :organization)
"""
_HAS_VISITS: Final = """
SELECT 1 FROM batches WHERE organization = :organization
UNION ALL SELECT 1 FROM files WHERE organization = :organization
UNION ALL SELECT 1 FROM pending WHERE organization = :organization LIMIT 1
"""


class ZoneChanged(Conflict):
    """An organization's zone was set while its first visits were being prepared in another one."""


class OrganizationState(NamedTuple):
    """How often what had landed of an organization was changed, and the zone of its days."""

    epoch: int
    zone: str


class Organizations:
    """The organizations of a manifest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reader, self._reading = database.reader(), Lock()

    def close(self) -> None:
        """Close the connection for states."""
        self._reader.close()

    def names(self) -> list[str]:
        """Every organization with imports, files or changes, sorted."""
        rows = self._database.rows(
            "SELECT organization FROM batches UNION SELECT organization FROM files "
            "UNION SELECT organization FROM epochs ORDER BY organization"
        )
        return [name for (name,) in rows]

    def state(self, organization: str) -> OrganizationState:
        """The epoch and the zone of an organization.

        Asked before every answer, on the event loop of the server. It takes microseconds and waits for no other read.
        Raises OSError (ESTALE) when the manifest was moved or replaced: SQLite would read on in the old one.
        """
        self._database.check_identity()
        with self._reading:
            return state_of(self._reader, organization)

    def epoch(self, organization: str) -> int:
        """How often stored visits of an organization were changed. Cached answers of earlier epochs are out of date."""
        return self.state(organization).epoch

    def zone(self, organization: str) -> str:
        """The zone in which the visits of an organization are dated."""
        return self.state(organization).zone

    def is_new(self, organization: str) -> bool:
        """Whether nothing of an organization has landed yet, and no zone was set."""
        has_zone = self._database.rows("SELECT 1 FROM zones WHERE organization = ?", [organization])
        return not (has_zone or self._database.rows(_HAS_VISITS, {"organization": organization}))

    def today(self, organization: str, now: datetime) -> date:
        """The day of an organization at a timezone-aware time."""
        return today(self.zone(organization), now)

    def set_zone(self, organization: str, zone: str) -> None:
        """Set the zone of an organization without visits.

        Raises BadInput for an unknown zone, and if there are visits. Removed ones count, too: they may still be on
        disk.
        """
        check_organization(organization)
        check_zone(zone)
        with self._database.transaction() as db:
            before = state_of(db, organization).zone
            if before != zone and db.execute(_HAS_VISITS, {"organization": organization}).fetchone():
                raise BadInput(
                    f"{organization} has visits whose days are those of {before}, so its zone stays; "
                    "import its logs again under a new organization, and set the zone of that one first."
                )
            db.execute("INSERT OR REPLACE INTO zones VALUES (?, ?)", [organization, zone])


def state_of(db: sqlite3.Connection, organization: str) -> OrganizationState:
    """The state of an organization, which need not have any visits, in one read."""
    ((epoch, zone),) = db.execute(_STATE, {"organization": organization}).fetchall()
    return OrganizationState(epoch or 0, zone or DEFAULT_ZONE)


def begin_epoch(db: sqlite3.Connection, organization: str) -> None:
    """Put all answers of an organization out of date. The caller has begun a transaction."""
    db.execute(
        "INSERT INTO epochs VALUES (?, 1) ON CONFLICT (organization) DO UPDATE SET epoch = epoch + 1", [organization]
    )


def check_zone_is(db: sqlite3.Connection, organization: str, zone: str) -> None:
    """Raise ZoneChanged if visits that were dated in `zone` are about to be committed to an organization of another."""
    now = state_of(db, organization).zone
    if now != zone:
        raise ZoneChanged(f"the time zone of {organization} was set to {now} in the meantime; try again.")
