"""Reads data on jobs for pages: undecided jobs, the newest job by fingerprint, and marks for charts."""

import json
from dataclasses import dataclass
from datetime import date
from typing import Final

from data.local_time import today
from service.core.clock import from_text
from service.core.control_database import ControlDatabase
from service.core.pages import formats
from service.jobs.findings import rank
from service.reports.filters import Filters

BROKEN: Final = ("broken_link", "dead_path", "error_days", "refused_people", "search_errors", "server_errors")
"""Types of jobs about requests that should have succeeded, but failed."""


@dataclass(frozen=True)
class Mark:
    """An event on a day: its text, and the path under /app/ of the page that shows it."""

    day: date
    text: str
    path: str


class JobReader:
    """Reads jobs from an open database. Its methods block; safe to use from several threads."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def undecided(self, organization: str) -> int:
        """Return the number of undecided jobs: new or reviewed."""
        rows = self._database.rows(
            "SELECT count(*) FROM jobs WHERE organization = ? AND status IN ('new', 'reviewed')", [organization]
        )
        return int(rows[0][0])

    def to_do(self, organization: str) -> list[tuple[str, str]]:
        """Return the priority and title of each undecided job, most urgent first, then heaviest first."""
        rows = self._database.rows(
            "SELECT priority, title, type FROM jobs WHERE organization = ? AND status IN ('new', 'reviewed') "
            "ORDER BY weight DESC, created_at, id",
            [organization],
        )
        return [(priority, title) for priority, title, kind in sorted(rows, key=lambda row: rank(row[0], row[2]))]

    def by_fingerprint(self, organization: str) -> dict[str, tuple[str, str]]:
        """Return the id and status of the newest job with each fingerprint."""
        rows = self._database.rows(
            "SELECT fingerprint, id, status FROM jobs WHERE organization = ? AND fingerprint IS NOT NULL "
            "ORDER BY created_at, id",
            [organization],
        )
        return {fingerprint: (job_id, status) for fingerprint, job_id, status in rows}

    def events(self, filters: Filters, zone: str) -> list[Mark]:
        """Return marks for the fixes shipped for the traffic in `filters`, on any day, and for changes to the
        classification rules.
        """
        scope, marks = filters.scope, []
        for start, _, before in self.rules(filters.organization):
            if before:
                day = date.fromisoformat(start)
                text = f"{formats.day(day)}: new rules for telling people from bots"
                marks.append(Mark(day, text, "settings/storage#rules"))
        shipped = self._database.rows(
            "SELECT id, title, shipped_at FROM jobs JOIN implementations ON job_id = id "
            "WHERE organization = ? AND implementations.status = 'shipped' AND shipped_at IS NOT NULL "
            "AND coalesce(?, domain) IS domain AND coalesce(?, short_code) IS short_code",
            [filters.organization, scope.domain, scope.short_code],
        )
        for job, title, shipped_at in shipped:
            day = today(zone, from_text(shipped_at))
            marks.append(Mark(day, f"{formats.day(day)}, fix shipped: {title}", f"jobs/{job}"))
        return marks

    def broken(self, organization: str, domain: str | None = None, short_code: str | None = None) -> list[Mark]:
        """Return marks for undecided jobs about failing requests (only of a domain or link, if given), newest first."""
        rows = self._database.rows(
            "SELECT id, title, created_at FROM jobs "
            "WHERE organization = ? AND status IN ('new', 'reviewed') AND coalesce(?, domain) IS domain "
            "AND coalesce(?, short_code) IS short_code AND type IN (SELECT value FROM json_each(?)) "
            "ORDER BY created_at DESC, weight DESC, id",
            [organization, domain, short_code, json.dumps(BROKEN)],
        )
        return [Mark(from_text(created_at).date(), title, f"jobs/{job}") for job, title, created_at in rows]

    def rules(self, organization: str) -> list[tuple[str, str, str | None]]:
        """Return each change to the rules, newest first: its day, the new version, and the previous version (None for
        the first).
        """
        return self._database.rows(
            "SELECT * FROM (SELECT day, rules_version, lag(rules_version) OVER (ORDER BY day) AS before "
            "FROM detection_runs WHERE organization = ?) "
            "WHERE before IS NULL OR before <> rules_version ORDER BY day DESC",
            [organization],
        )
