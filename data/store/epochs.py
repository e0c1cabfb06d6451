"""What is asked of an organization before every answer: its epoch, which outdates earlier answers, and its zone."""

import sqlite3
from typing import Final, NamedTuple

from data.local_time import DEFAULT_ZONE

_STATE: Final = """
SELECT (SELECT epoch FROM epochs WHERE organization = :organization),
    (SELECT zone FROM zones WHERE organization = :organization)
"""


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
