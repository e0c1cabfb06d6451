"""The time zone of each organization, by which its visits are dated. It is set before the first visit, or stays UTC."""

import sqlite3
from datetime import datetime

from data.errors import BadInput, Conflict
from data.local_time import DEFAULT_ZONE, check_zone, today
from data.visits import check_organization

_ZONE = "SELECT zone FROM zones WHERE organization = ?"
_HAS_VISITS = """
SELECT 1 FROM batches WHERE organization = :organization
UNION ALL SELECT 1 FROM files WHERE organization = :organization
UNION ALL SELECT 1 FROM pending WHERE organization = :organization LIMIT 1
"""


class ZoneChanged(Conflict):
    """An organization's zone was set while its first visits were being prepared in another one."""


def zone_in(db: sqlite3.Connection, organization: str) -> str:
    """The zone of an organization as a connection to the manifest sees it."""
    row = db.execute(_ZONE, [organization]).fetchone()
    return str(row[0]) if row else DEFAULT_ZONE


def check_zone_is(db: sqlite3.Connection, organization: str, zone: str) -> None:
    """Raise ZoneChanged if visits that were dated in `zone` are about to be committed to an organization of another."""
    now = zone_in(db, organization)
    if now != zone:
        raise ZoneChanged(f"the time zone of {organization} was set to {now} in the meantime; try again.")


def set_zone(db: sqlite3.Connection, organization: str, zone: str) -> None:
    """Set the zone of an organization without visits. The caller has begun a transaction.

    Raises BadInput for an unknown zone, and if there are visits. Removed ones count, too: they may still be on disk.
    """
    check_organization(organization)
    check_zone(zone)
    before = zone_in(db, organization)
    if before != zone and db.execute(_HAS_VISITS, {"organization": organization}).fetchone():
        raise BadInput(
            f"{organization} has visits whose days are those of {before}, so its zone stays; "
            "import its logs again under a new organization, and set the zone of that one first."
        )
    db.execute("INSERT OR REPLACE INTO zones VALUES (?, ?)", [organization, zone])


def define_today_in(db: sqlite3.Connection) -> None:
    """Define the SQL function today_in(zone, now): the day in a zone (null: the default) at a time in ISO 8601."""

    def today_in(zone: str | None, now: str) -> str:
        return today(zone or DEFAULT_ZONE, datetime.fromisoformat(now)).isoformat()

    db.create_function("today_in", 2, today_in, deterministic=True)
