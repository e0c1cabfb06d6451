"""Computes the days covered by an organization's reported visits and logs (each log from its first to its last visit).

A day without visits may be a quiet day, or its log may never have been imported. Comparisons must not confuse the two.
"""

import sqlite3
from bisect import bisect_left
from datetime import date, datetime, timedelta
from typing import Final

from data.local_time import day_bounds
from data.manifest.clock import parse_time
from data.manifest.database import Database
from data.manifest.organizations import Organizations

MAX_PAUSE: Final = timedelta(hours=12)
"""The longest pause between two logs or reports that does not count as a gap, and the most that may be missing from a
covered day."""


def is_pause(last_at: str, first_at: str) -> bool:
    """Return whether `first_at` is more than MAX_PAUSE after `last_at`: a gap. Both are in the manifest's format."""
    return datetime.fromisoformat(first_at) - datetime.fromisoformat(last_at) > MAX_PAUSE


def span(*spans: tuple[str, str]) -> tuple[str, str]:
    """Return the earliest first time and the latest last time, in the manifest's format; empty strings are ignored."""
    firsts, lasts = [first for first, _ in spans if first], [last for _, last in spans if last]
    return min(firsts, default=""), max(lasts, default="")


def note_received(db: sqlite3.Connection, organization: str, first_at: str, last_at: str) -> None:
    """Record when reported visits were received, in the caller's transaction. After a gap, begin a new interval."""
    row = db.execute(
        "SELECT rowid, last_at FROM received WHERE organization = ? ORDER BY last_at DESC LIMIT 1", [organization]
    ).fetchone()
    if row and not is_pause(row[1], first_at):
        db.execute("UPDATE received SET last_at = max(last_at, ?) WHERE rowid = ?", [last_at, row[0]])
    else:
        db.execute("INSERT INTO received VALUES (?, ?, ?)", [organization, first_at, last_at])


class Coverage:
    """The days that each organization's logs and reported visits cover."""

    def __init__(self, database: Database, organizations: Organizations) -> None:
        self._database, self._organizations = database, organizations

    def covered_days(self, organization: str, domain: str, first: date, last: date) -> set[date]:
        """Return the covered days from `first` to `last`, for visits to a domain ("": any domain).

        Logs imported for another domain do not count.
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

    def newest_at(self, organization: str, domain: str) -> datetime | None:
        """Return the later of two times: the newest visit in a domain's logs (all logs if the domain is empty), and the
        last report of visits, which may be for any domain; None if there are no visits.
        """
        ((newest,),) = self._database.rows(
            "SELECT max(at) FROM (SELECT max(last_at) AS at FROM batches WHERE organization = :organization "
            "AND (domain IN ('', :domain) OR :domain = '') "
            "UNION ALL SELECT max(last_at) FROM received WHERE organization = :organization)",
            {"organization": organization, "domain": domain},
        )
        return parse_time(newest) if newest else None

    def uncovered_days(self, organization: str, domain: str, first: date, last: date) -> frozenset[date]:
        """Return the days from `first` to `last` that are not covered: their visits are missing, or there were none."""
        days = {first + timedelta(number) for number in range((last - first).days + 1)}
        return frozenset(days - self.covered_days(organization, domain, first, last))
