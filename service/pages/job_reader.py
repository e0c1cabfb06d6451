"""What pages read of jobs beside their records: the undecided, the job of a subject, events for a chart."""

from datetime import date

from data.local_time import today
from service.clock import from_text
from service.control_database import ControlDatabase
from service.pages.numbers.marks import Events, ShippedFix


class JobReader:
    """Reads jobs from an open database. Its methods block; safe to use from several threads."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def undecided(self, organization: str) -> int:
        """The number of undecided jobs: new or reviewed."""
        rows = self._database.rows(
            "SELECT count(*) FROM jobs WHERE organization = ? AND status IN ('new', 'reviewed')", [organization]
        )
        return int(rows[0][0])

    def by_fingerprint(self, organization: str) -> dict[str, tuple[str, str]]:
        """Id and status of the newest job of each subject, by its fingerprint."""
        rows = self._database.rows(
            "SELECT fingerprint, id, status FROM jobs WHERE organization = ? AND fingerprint IS NOT NULL "
            "ORDER BY created_at, id",
            [organization],
        )
        return {fingerprint: (job_id, status) for fingerprint, job_id, status in rows}

    def events(self, organization: str, zone: str) -> Events:
        """What was shipped, and on which days the rules were others than on the day before."""
        shipped = self._database.rows(
            "SELECT id, title, domain, short_code, shipped_at FROM jobs JOIN implementations ON job_id = id "
            "WHERE organization = ? AND implementations.status = 'shipped' AND shipped_at IS NOT NULL",
            [organization],
        )
        fixes = [
            ShippedFix(one, title, domain, code, today(zone, from_text(at))) for one, title, domain, code, at in shipped
        ]
        return Events(fixes, [date.fromisoformat(day) for day, _, before in self.rules(organization) if before])

    def rules(self, organization: str) -> list[tuple[str, str, str | None]]:
        """The days from which on visits were judged by other rules, the rules, and those before."""
        return self._database.rows(
            "SELECT * FROM (SELECT day, rules_version, lag(rules_version) OVER (ORDER BY day) AS before "
            "FROM detection_runs WHERE organization = ?) "
            "WHERE before IS NULL OR before <> rules_version ORDER BY day DESC",
            [organization],
        )
