"""What is asked of an organization before every answer: its zone, and its epoch, which outdates earlier answers.

The zone, by which its visits are dated, is set before the first visit, or stays UTC.
"""

import sqlite3
from datetime import datetime
from typing import Final, NamedTuple

from data.errors import BadInput, Conflict
from data.local_time import DEFAULT_ZONE, check_zone, today
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


def set_zone(db: sqlite3.Connection, organization: str, zone: str) -> None:
    """Set the zone of an organization without visits. The caller has begun a transaction.

    Raises BadInput for an unknown zone, and if there are visits. Removed ones count, too: they may still be on disk.
    """
    check_organization(organization)
    check_zone(zone)
    before = state_of(db, organization).zone
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
