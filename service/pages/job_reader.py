"""What pages read of jobs beside their records: how many wait for a decision, and what a measure is about."""

from typing import NamedTuple

import orjson

from service.control_database import ControlDatabase
from service.jobs.tables import read_job


class JobSubject(NamedTuple):
    """What a job is about: the columns that name it, as requested; strangers' text, so it is never shown."""

    type: str
    columns: dict[str, str | None]


class JobReader:
    """Reads jobs from an open database. Its methods block; safe to use from several threads."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def undecided(self, organization: str) -> int:
        """The number of jobs that nobody has decided: new or reviewed."""
        rows = self._database.rows(
            "SELECT count(*) FROM jobs WHERE organization = ? AND status IN ('new', 'reviewed')", [organization]
        )
        return int(rows[0][0])

    def subject(self, organization: str, job_id: str) -> JobSubject:
        """What a job is about. Raises JobNotFound."""
        with self._database.snapshot() as connection:
            job = read_job(connection, organization, job_id)
        return JobSubject(job.type, orjson.loads(job.subject))
