"""The SQL for jobs and their history. A function that takes a connection runs in its caller's transaction.

Only `create_job` and `change_job` insert or change a job, together with its history line and its messages to hooks.
"""

import sqlite3
from contextlib import suppress
from dataclasses import astuple, replace
from datetime import datetime
from typing import Final

import msgspec

from data.sql import read_sql
from service.core.clock import to_text
from service.core.control_database import ControlDatabase
from service.core.encoding import record
from service.hooks.attempts import ClaimedDelivery
from service.hooks.outbox import HookConflict, delete_messages, enqueue, is_awaited
from service.jobs.implementation_tables import (
    free_bytes,
    implementation_in_force,
    insert_implementation,
    stored_values,
)
from service.jobs.implementations import MAX_IMPLEMENTATIONS
from service.jobs.records import (
    SYSTEM,
    Change,
    HistoryLine,
    Job,
    JobRow,
    conflict,
    job_content,
    job_row,
)
from service.jobs.redirects import CheckedDraft
from service.jobs.states import EVENTS, JobChanged, JobConflict, JobNotFound, next_status

JOB_COLUMNS: Final = ", ".join(Job.__dataclass_fields__)
_HISTORY_COLUMNS: Final = ", ".join(HistoryLine.__struct_fields__)
MAX_HISTORY: Final = 200
"""Maximum number of history lines in a record; older lines are left out."""
MAX_STORED_HISTORY: Final = 1_000
"""Maximum number of stored history lines per job: the newest. Older lines stay only if they are the job's first, or the
last with their action and statuses, because outcomes are measured from such lines."""
MAX_JOBS: Final = 5_000
"""Number of jobs per organization, including closed ones, at which a job can be written by hand only if `make_room` can
delete another. Detectors have no such limit."""
_HAS_SHIPPED_REDIRECT: Final = (
    "EXISTS (SELECT 1 FROM implementations AS one WHERE job_id = jobs.id AND one.status = 'shipped' "
    "AND content_type = 'application/json')"
)
_DELETE_OLD_HISTORY: Final = read_sql("service.jobs", "delete_old_history")

_LISTED_COLUMNS: Final = (
    "id, organization, type, status, title, created_at, updated_at, priority, domain, short_code, path, summary, "
    "action_id, action_label, evidence_rows, implementation_type, implementation_number, outcome_status, NULL, "
    "last_detected_at, version, fingerprint, weight, '[]', NULL, NULL"
)
"""JOB_COLUMNS, with constants in place of the columns that lists do not show."""
_JOB_PLACES: Final = ", ".join("?" * 26)
_SELECT: Final = f"SELECT {JOB_COLUMNS} FROM jobs WHERE organization = ? "


def read_jobs(connection: sqlite3.Connection, organization: str) -> list[Job]:
    """Return every job of an organization, newest first."""
    rows = connection.execute(_SELECT + "ORDER BY created_at DESC, id DESC", [organization])
    return [Job(*row) for row in rows]


def read_listed_jobs(database: ControlDatabase, organization: str) -> list[JobRow]:
    """Read the listed columns of all of an organization's jobs, newest first."""
    rows = database.rows(
        "SELECT in_force.implementation_type, in_force.status, listed.* "
        f"FROM (SELECT {_LISTED_COLUMNS} FROM jobs WHERE organization = ?) AS listed LEFT JOIN implementations "
        "AS in_force ON job_id = id AND number = implementation_number ORDER BY created_at DESC, id DESC",
        [organization],
    )
    return [job_row(Job(*row), (kind, status) if kind else None) for kind, status, *row in rows]


def organizations_with_jobs(connection: sqlite3.Connection) -> list[str]:
    """Return the organizations with jobs, sorted by name."""
    return [name for (name,) in connection.execute("SELECT DISTINCT organization FROM jobs ORDER BY organization")]


def read_job(connection: sqlite3.Connection, organization: str, job_id: str) -> Job:
    """Return a job of an organization. Raises JobNotFound."""
    row = connection.execute(_SELECT + "AND id = ?", [organization, job_id]).fetchone()
    if row is None:
        raise JobNotFound(f"there is no job {job_id[:100]!r}.")
    return Job(*row)


def read_expected_job(connection: sqlite3.Connection, organization: str, job_id: str, version: int | None) -> Job:
    """Read a job of an organization. Raises JobNotFound, or JobChanged if its version is not `version`."""
    job = read_job(connection, organization, job_id)
    if version not in (None, job.version):
        raise JobChanged(f"The job has version {job.version}, not the version in If-Match.", job.status, job.version)
    return job


def job_of_fingerprint(connection: sqlite3.Connection, organization: str, fingerprint: str) -> Job | None:
    """Read the newest job with this fingerprint, open or closed; None if there is none."""
    row = connection.execute(
        _SELECT + "AND fingerprint = ? ORDER BY created_at DESC, id DESC LIMIT 1", [organization, fingerprint]
    ).fetchone()
    return Job(*row) if row else None


def count_open(connection: sqlite3.Connection, organization: str, kind: str) -> int:
    """Return the number of open jobs of a type."""
    ((count,),) = connection.execute(
        "SELECT count(*) FROM jobs WHERE organization = ? AND type = ? "
        "AND status IN ('new', 'reviewed', 'approved', 'sent')",
        [organization, kind],
    )
    return int(count)


def open_jobs_of_type(connection: sqlite3.Connection, organization: str, kind: str) -> list[Job]:
    """Read the open jobs of a type, the lightest first."""
    rows = connection.execute(
        _SELECT + "AND type = ? AND status IN ('new', 'reviewed', 'approved', 'sent') "
        "ORDER BY weight, created_at DESC, id DESC",
        [organization, kind],
    )
    return [Job(*row) for row in rows]


def delete_expired(connection: sqlite3.Connection, organization: str, before: str) -> None:
    """Delete dismissed jobs whose last dismissal was an `expire` or `merge` at or before a time, unless they have a
    shipped redirect.

    Their history, implementations and messages are deleted with them.
    """
    rows = connection.execute(
        "SELECT jobs.id FROM jobs JOIN job_history AS closing ON closing.id = (SELECT max(id) FROM job_history "
        "WHERE job_id = jobs.id AND to_status = 'dismissed' AND from_status IS NOT to_status) "
        "WHERE organization = ? AND status = 'dismissed' AND action IN ('expire', 'merge') AND at <= ? "
        f"AND NOT {_HAS_SHIPPED_REDIRECT} ORDER BY jobs.id",
        [organization, before],
    )
    for (job_id,) in rows.fetchall():
        _delete_job(connection, job_id)


def make_room(connection: sqlite3.Connection, organization: str) -> None:
    """If an organization has MAX_JOBS, delete its oldest dismissed job that was written by hand and has no shipped
    redirect. Raises JobConflict if there is none.
    """
    ((count,),) = connection.execute("SELECT count(*) FROM jobs WHERE organization = ?", [organization])
    if count < MAX_JOBS:
        return
    oldest = connection.execute(
        "SELECT id FROM jobs WHERE organization = ? AND status = 'dismissed' AND written_by IS NOT NULL "
        f"AND NOT {_HAS_SHIPPED_REDIRECT} ORDER BY created_at, id LIMIT 1",
        [organization],
    ).fetchone()
    if oldest is None:
        raise JobConflict(
            f"{organization} has {MAX_JOBS:,} jobs, which is the maximum; dismiss one that was written by "
            "hand to make room."
        )
    _delete_job(connection, oldest[0])


def _delete_job(connection: sqlite3.Connection, job_id: str) -> None:
    """Delete a job with its history, its messages, and its implementations with their rules and pending links."""
    delete_messages(connection, job_id)
    connection.execute("DELETE FROM implementations WHERE job_id = ?", [job_id])
    connection.execute("DELETE FROM redirect_rules WHERE job_id = ?", [job_id])
    connection.execute("DELETE FROM wanted_links WHERE job_id = ?", [job_id])
    connection.execute("DELETE FROM job_history WHERE job_id = ?", [job_id])
    connection.execute("DELETE FROM jobs WHERE id = ?", [job_id])


def read_history(connection: sqlite3.Connection, job_id: str) -> list[HistoryLine]:
    """Read the newest MAX_HISTORY lines of a job's history, oldest first."""
    rows = connection.execute(
        f"SELECT {_HISTORY_COLUMNS} FROM (SELECT * FROM job_history WHERE job_id = ? ORDER BY id DESC "
        f"LIMIT {MAX_HISTORY}) ORDER BY id",
        [job_id],
    )
    return [record(HistoryLine, row) for row in rows]


def create_job(connection: sqlite3.Connection, job: Job, change: Change) -> None:
    """Insert a new job."""
    connection.execute(f"INSERT INTO jobs ({JOB_COLUMNS}) VALUES ({_JOB_PLACES})", astuple(job))
    _record(connection, None, job, change)


def change_job(connection: sqlite3.Connection, before: Job, after: Job, change: Change) -> None:
    """Replace `before` with `after`, which becomes the next version of the job."""
    stored = replace(after, version=before.version + 1, updated_at=to_text(change.now))
    connection.execute(f"UPDATE jobs SET ({JOB_COLUMNS}) = ({_JOB_PLACES}) WHERE id = ?", [*astuple(stored), stored.id])
    _record(connection, before, stored, change)


def attach(connection: sqlite3.Connection, job: Job, checked: CheckedDraft, change: Change, excess: int) -> int:
    """Attach an implementation to an approved job and return its number. Withdrawn contents of at least `excess` bytes
    are deleted to make room. Raises JobConflict or TooLarge.
    """
    if job.status not in ("approved", "sent"):
        raise conflict(job, "takes no implementation before it is approved")
    rows = connection.execute("SELECT coalesce(max(number), 0) FROM implementations WHERE job_id = ?", [job.id])
    number = int(rows.fetchone()[0]) + 1
    if number > MAX_IMPLEMENTATIONS:
        raise conflict(job, f"has {MAX_IMPLEMENTATIONS} implementations and takes no more")
    free_bytes(connection, job.organization, excess)
    added = msgspec.structs.replace(checked.implementation, number=number)
    insert_implementation(connection, job, added, checked)
    after = replace(job, implementation_number=number, outcome_status="none", outcome=None)
    change_job(connection, job, after, change)
    return number


def mark_sent(connection: sqlite3.Connection, delivered: ClaimedDelivery, now: datetime) -> None:
    """Record that a hook accepted an approved job, in the transaction that records the delivery.

    Does nothing if the message is not about an approval, or if the job is gone or has another status.
    """
    if delivered.event != EVENTS["approve"] or delivered.job_id is None:
        return
    with suppress(JobNotFound):
        job = read_job(connection, delivered.organization, delivered.job_id)
        if status := next_status("deliver", job.status):
            sent = Change("deliver", SYSTEM, now, delivered.hook_id)
            change_job(connection, job, replace(job, status=status), sent)


def _record(connection: sqlite3.Connection, before: Job | None, after: Job, change: Change) -> None:
    """If the change has an action, insert its history line; if the action has an event, queue messages to hooks."""
    action, actor, now, note = change
    if action is None:
        return
    status = before.status if before else None
    line = HistoryLine(now, actor.name, actor.kind, action, status, after.status, note, after.version)
    connection.execute(
        f"INSERT INTO job_history (job_id, {_HISTORY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [after.id, *stored_values(line)],
    )
    connection.execute(_DELETE_OLD_HISTORY, [after.id, MAX_STORED_HISTORY])
    event = EVENTS.get(note or "" if action == "measure" else action)
    if event and is_awaited(connection, after.organization, event):
        content = msgspec.to_builtins(job_content(after, implementation_in_force(connection, after)))
        try:
            enqueue(connection, after.organization, event, content, now, by_service=actor == SYSTEM)
        except HookConflict as error:
            raise JobConflict(str(error), status, before.version if before else None) from error


def count_by_status(connection: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Return the number of jobs by organization and status."""
    counts: dict[str, dict[str, int]] = {}
    rows = connection.execute("SELECT organization, status, count(*) FROM jobs GROUP BY 1, 2 ORDER BY 1, 2")
    for organization, status, count in rows:
        counts.setdefault(organization, {})[status] = count
    return counts
