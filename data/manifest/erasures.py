"""Records erasures by link or visitor, so that importing a log again does not restore the visits unnoticed.

A visitor's hash is not recorded.
"""

from datetime import UTC, date, datetime
from typing import NamedTuple

from data.manifest.clock import format_time
from data.manifest.database import Database


class Erasure(NamedTuple):
    """An erasure of the visits to one link or by one visitor."""

    erased_at: datetime
    short_code: str | None  # None: by visitor

    def __str__(self) -> str:
        """Return a description of the erasure, with its date."""
        what = "by a visitor" if self.short_code is None else f"to the link {self.short_code}"
        return f"visits {what} were erased on {self.erased_at:%Y-%m-%d}"


class Erasures:
    """The erasures by link or visitor."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, organization: str, erasure: Erasure, first_day: date, last_day: date) -> None:
        """Record an erasure of visits on these days (inclusive). Call this before the erasure begins."""
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO erasures VALUES (?, ?, ?, ?, ?)",
                [organization, format_time(erasure.erased_at), erasure.short_code, str(first_day), str(last_day)],
            )

    def of_days(self, organization: str, first_day: date, last_day: date) -> list[Erasure]:
        """Return the erasures that searched any of these days (inclusive), oldest first."""
        rows = self._database.rows(
            "SELECT erased_at, short_code FROM erasures WHERE organization = ? AND first_day <= ? AND last_day >= ? "
            "ORDER BY erased_at",
            [organization, str(last_day), str(first_day)],
        )
        return [Erasure(datetime.fromisoformat(at).astimezone(UTC), short_code) for at, short_code in rows]
