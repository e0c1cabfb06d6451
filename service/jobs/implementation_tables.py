"""The SQL of implementations. A function that takes a connection runs in the transaction of its caller."""

import hashlib
import sqlite3
from datetime import datetime
from typing import Final

import orjson
from msgspec.structs import astuple

from service.clock import from_text, to_text
from service.control_database import ControlDatabase
from service.encoding import record
from service.jobs.implementations import EVERY_DOMAIN
from service.jobs.records import HistoryLine, Implementation, Job
from service.jobs.redirects import ADD_REDIRECT, ShippedRedirect
from service.jobs.states import JobNotFound
from service.jobs.texts import percent_encoded

_COLUMNS: Final = ", ".join(Implementation.__struct_fields__)
_IS_REDIRECT: Final = "(implementations.status = 'shipped' AND content_type = 'application/json')"
"""Whether a row of implementations is a shipped redirect."""


def read_implementation(connection: sqlite3.Connection, job: Job, number: int) -> Implementation:
    """An implementation of a job. Raises JobNotFound."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM implementations WHERE job_id = ? AND number = ?", [job.id, number]
    ).fetchone()
    if row is None:
        raise JobNotFound(f"the job {job.id} has no implementation {number}.")
    return record(Implementation, row)


def implementation_in_force(connection: sqlite3.Connection, job: Job) -> Implementation | None:
    """The implementation of a job that counts; None if it has none."""
    return read_implementation(connection, job, job.implementation_number) if job.implementation_number else None


def read_content(connection: sqlite3.Connection, job: Job, number: int) -> str | None:
    """The content of an implementation; None if it is elsewhere."""
    ((content,),) = connection.execute(
        "SELECT content FROM implementations WHERE job_id = ? AND number = ?", [job.id, number]
    )
    return None if content is None else content.decode()


def read_redirects(connection: sqlite3.Connection, organization: str, domain: str = "") -> list[ShippedRedirect]:
    """The redirects that were shipped and not withdrawn, by domain and path: the newest of each path.

    With a domain, only those that work on it.
    """
    rows = connection.execute(
        "SELECT jobs.id, number, shipped_at, content FROM implementations JOIN jobs ON jobs.id = job_id "
        f"WHERE organization = ? AND {_IS_REDIRECT} ORDER BY shipped_at, attached_at, jobs.id, number",
        [organization],
    )
    found: dict[tuple[str, str], ShippedRedirect] = {}
    for job_id, number, shipped_at, content in rows:
        rule = orjson.loads(content)
        host, path = rule["domain"], percent_encoded(rule["from"])
        at = from_text(shipped_at)
        found[host, path] = ShippedRedirect(host, path, rule["to"], rule["status"], job_id, number, at)
    return [found[key] for key in sorted(found) if not domain or key[0] in (domain, EVERY_DOMAIN)]


def read_attached_redirects(
    database: ControlDatabase, organization: str
) -> list[tuple[str, int, dict[str, str | None], datetime]]:
    """The redirects of approved jobs that are in force and wait to be shipped: job, number, subject, approval."""
    rows = database.rows(
        "SELECT jobs.id, number, subject, (SELECT max(at) FROM job_history WHERE job_id = jobs.id "
        "AND action = 'approve') AS approved_at FROM jobs JOIN implementations ON job_id = jobs.id "
        "AND number = implementation_number WHERE organization = ? AND action_id = ? AND path IS NOT NULL "
        "AND jobs.status IN ('approved', 'sent') AND implementations.status IN ('attached', 'accepted') "
        "AND approved_at IS NOT NULL ORDER BY jobs.id",
        [organization, ADD_REDIRECT],
    )
    return [
        (job_id, number, orjson.loads(subject), from_text(approved_at)) for job_id, number, subject, approved_at in rows
    ]


def insert_implementation(
    connection: sqlite3.Connection, job: Job, added: Implementation, content: bytes | None
) -> None:
    """Add an implementation of a job."""
    connection.execute(
        f"INSERT INTO implementations (job_id, {_COLUMNS}, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [job.id, *stored_values(added), content],
    )


def update_implementation(connection: sqlite3.Connection, job: Job, changed: Implementation) -> None:
    """Store the status, url and shipped_at of an implementation."""
    connection.execute(
        "UPDATE implementations SET status = ?, shipped_at = ?, url = ? WHERE job_id = ? AND number = ?",
        [changed.status, changed.shipped_at and to_text(changed.shipped_at), changed.url, job.id, changed.number],
    )


def delete_contents(connection: sqlite3.Connection, job_id: str, dry_run: bool) -> int:
    """Delete contents, notes and URLs of a job's implementations. Returns how many contents.

    A shipped redirect stays, as links do: web servers have it. The notes are in the job's history, too. In a dry run,
    only count.
    """
    ((count,),) = connection.execute(
        f"SELECT count(*) FROM implementations WHERE job_id = ? AND content IS NOT NULL AND NOT {_IS_REDIRECT}",
        [job_id],
    )
    if not dry_run:
        connection.execute(
            f"UPDATE implementations SET content = CASE WHEN {_IS_REDIRECT} THEN content END, note = NULL, url = NULL "
            "WHERE job_id = ?",
            [job_id],
        )
        connection.execute("UPDATE job_history SET note = NULL WHERE job_id = ? AND action = 'attach'", [job_id])
    return int(count)


def damaged_contents(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with implementations: contents whose SHA-256 differs from what was written."""
    rows = connection.execute(
        "SELECT job_id, number, sha256, content FROM implementations WHERE content IS NOT NULL ORDER BY 1, 2"
    )
    return [
        f"implementation {number} of {job_id} is damaged: its SHA-256 differs"
        for job_id, number, sha256, content in rows
        if hashlib.sha256(content).hexdigest() != sha256
    ]


def stored_values(record: Implementation | HistoryLine) -> list[object]:
    """The values of a record as they are stored: times as text."""
    return [to_text(value) if isinstance(value, datetime) else value for value in astuple(record)]
