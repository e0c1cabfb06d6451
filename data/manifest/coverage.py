"""Which days an organization's visits cover: those of its logs, from the first visit to the last, and those of reports.

A day without any visit may be a quiet one, or one whose log was never imported. What compares days has to know which.
"""

import sqlite3
from bisect import bisect_left
from datetime import date, datetime, timedelta
from typing import Final

from data.local_time import day_bounds
from data.manifest.database import Database
from data.manifest.organizations import Organizations

MAX_PAUSE: Final = timedelta(hours=12)
"""A longer pause between two logs or reports is a gap; a day is covered if at most this much of it is missing."""


def is_pause(last_at: str, first_at: str) -> bool:
    """Whether two times, as the manifest writes them, are too far apart to belong together."""
    return datetime.fromisoformat(first_at) - datetime.fromisoformat(last_at) > MAX_PAUSE


def span(*spans: tuple[str, str]) -> tuple[str, str]:
    """From the first to the last of some times, as the manifest writes them; "" is none."""
    firsts, lasts = [first for first, _ in spans if first], [last for _, last in spans if last]
    return min(firsts, default=""), max(lasts, default="")


def note_received(db: sqlite3.Connection, organization: str, first_at: str, last_at: str) -> None:
    """Note in a transaction when reported visits came in. It extends the last interval, unless after a pause."""
    row = db.execute(
        "SELECT rowid, last_at FROM received WHERE organization = ? ORDER BY last_at DESC LIMIT 1", [organization]
    ).fetchone()
    if row and not is_pause(row[1], first_at):
        db.execute("UPDATE received SET last_at = max(last_at, ?) WHERE rowid = ?", [last_at, row[0]])
    else:
        db.execute("INSERT INTO received VALUES (?, ?, ?)", [organization, first_at, last_at])


class Coverage:
    """The days that the visits of an organization cover."""

    def __init__(self, database: Database, organizations: Organizations) -> None:
        self._database, self._organizations = database, organizations

    def covered_days(self, organization: str, domain: str, first: date, last: date) -> set[date]:
        """The days from `first` to `last` that are covered, for visits of a domain ("": of any).

        Logs that were imported for another domain say nothing of it.
        """
        rows = self._database.rows(
            "SELECT first_at, last_at FROM batches WHERE organization = :organization AND first_at <> '' "
            "AND (domain IN ('', :domain) OR :domain = '') "
            "UNION ALL SELECT first_at, last_at FROM received WHERE organization = :organization ORDER BY 1",
            {"organization": organization, "domain": domain},
        )
        zone = self._organizations.zone(organization)
        joined: list[tuple[datetime, datetime]] = []
        for begin, end in (tuple(map(datetime.fromisoformat, row)) for row in rows):
            if joined and begin - joined[-1][1] <= MAX_PAUSE:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((begin, end))
        covered = set()
        for day in (first + timedelta(number) for number in range((last - first).days + 1)):
            day_begin, day_end = day_bounds(day, zone)
            missing = day_end - day_begin
            for number in range(bisect_left(joined, day_begin, key=lambda span: span[1]), len(joined)):
                begin, end = joined[number]
                if begin >= day_end:
                    break
                missing -= min(end, day_end) - max(begin, day_begin)
            if missing <= MAX_PAUSE:
                covered.add(day)
        return covered

    def uncovered_days(self, organization: str, domain: str, first: date, last: date) -> frozenset[date]:
        """The other days from `first` to `last`: their visits are missing, or there were none."""
        days = {first + timedelta(number) for number in range((last - first).days + 1)}
        return frozenset(days - self.covered_days(organization, domain, first, last))
