"""The exclusions of each organization: requests for files, if it sets them aside, and rules for the owner's visits."""

import sqlite3
from datetime import UTC, datetime
from typing import NamedTuple

from data.manifest.clock import format_time
from data.manifest.database import Database
from data.manifest.organizations import begin_epoch
from data.rules.exclusions import ExcludedVisits, Exclusion
from data.signals import BITS, OWN
from data.visits import check_organization


class ExclusionRecord(NamedTuple):
    """An organization's rule, when it was added, and how many visits it set aside."""

    rule: Exclusion
    since: datetime
    visits: int  # number set aside as they landed; a visit that matches several rules counts for each


class Exclusions:
    """The exclusions of all organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def are_files_aside(self, organization: str) -> bool:
        """Return whether answers leave out requests for files; by default, answers count them."""
        return bool(self._database.rows("SELECT 1 FROM files_aside WHERE organization = ?", [organization]))

    def bits_aside(self, organization: str) -> int:
        """Return a mask of the signal bits that keep a visit out of answers; any one of them is enough."""
        return OWN | BITS["file"] if self.are_files_aside(organization) else OWN

    def switch_files(self, organization: str, *, aside: bool) -> None:
        """Leave an organization's requests for files out of answers, or count them. Raises BadInput if its name is
        invalid.
        """
        check_organization(organization)
        with self._database.transaction() as db:
            if aside:
                db.execute("INSERT OR IGNORE INTO files_aside VALUES (?)", [organization])
            else:
                db.execute("DELETE FROM files_aside WHERE organization = ?", [organization])
            begin_epoch(db, organization)

    def records(self, organization: str) -> list[ExclusionRecord]:
        """Return an organization's rules, sorted, each with when it was added and how many visits it set aside."""
        rows = self._database.rows(
            "SELECT kind, value, added_at, visits FROM exclusions WHERE organization = ? ORDER BY kind, value",
            [organization],
        )
        return [
            ExclusionRecord(Exclusion(kind, value), datetime.fromisoformat(added_at), visits)
            for kind, value, added_at, visits in rows
        ]

    def rules(self, organization: str) -> tuple[Exclusion, ...]:
        """Return an organization's rules, sorted."""
        return tuple(record.rule for record in self.records(organization))

    def add(self, organization: str, exclusion: Exclusion) -> bool:
        """Add a rule; return whether it is new. Raises BadInput if the organization's name is invalid."""
        row = [check_organization(organization), *exclusion, format_time(datetime.now(UTC))]
        with self._database.transaction() as db:
            added = db.execute(
                "INSERT OR IGNORE INTO exclusions (organization, kind, value, added_at) VALUES (?, ?, ?, ?)", row
            )
            return added.rowcount > 0

    def remove(self, organization: str, exclusion: Exclusion) -> bool:
        """Remove a rule; return whether it existed."""
        with self._database.transaction() as db:
            return (
                db.execute(
                    "DELETE FROM exclusions WHERE organization = ? AND kind = ? AND value = ?",
                    [organization, *exclusion],
                ).rowcount
                > 0
            )


def note_excluded(db: sqlite3.Connection, organization: str, excluded: ExcludedVisits) -> None:
    """Add to the number of visits set aside by each rule, in the transaction that lands these visits."""
    db.executemany(
        "UPDATE exclusions SET visits = visits + ? WHERE organization = ? AND kind = ? AND value = ?",
        [(visits, organization, *rule) for rule, visits in excluded.items()],
    )
