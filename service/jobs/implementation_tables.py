"""The SQL for implementations. A function that takes a connection runs in its caller's transaction."""

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import orjson
from msgspec.structs import astuple

from data.links.links import Link, LinkEdit
from service.core.clock import from_text, to_text
from service.core.control_database import ControlDatabase
from service.core.encoding import record
from service.jobs.implementations import EVERY_DOMAIN, MAX_SHIPPED_REDIRECTS, MAX_STORED_BYTES
from service.jobs.records import HistoryLine, Implementation, Job
from service.jobs.redirects import ADD_REDIRECT, CheckedDraft, ShippedRedirect
from service.jobs.states import JobConflict, JobNotFound, TooLarge
from service.jobs.subjects import Subject, chosen
from service.jobs.texts import percent_encoded

_COLUMNS: Final = ", ".join(Implementation.__struct_fields__)
_IS_REDIRECT: Final = "(implementations.status = 'shipped' AND content_type = 'application/json')"
"""SQL: whether a row of implementations is a shipped redirect."""


def read_implementation(connection: sqlite3.Connection, job: Job, number: int) -> Implementation:
    """Read an implementation of a job. Raises JobNotFound."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM implementations WHERE job_id = ? AND number = ?", [job.id, number]
    ).fetchone()
    if row is None:
        raise JobNotFound(f"the job {job.id} has no implementation {number}.")
    return record(Implementation, row)


def implementation_in_force(connection: sqlite3.Connection, job: Job) -> Implementation | None:
    """Read the implementation of a job that is in force; None if there is none."""
    return read_implementation(connection, job, job.implementation_number) if job.implementation_number else None


def read_content(connection: sqlite3.Connection, job: Job, number: int) -> str | None:
    """Read the content of an existing implementation; None if it has none, or if it was deleted."""
    ((content,),) = connection.execute(
        "SELECT content FROM implementations WHERE job_id = ? AND number = ?", [job.id, number]
    )
    return None if content is None else content.decode()


def read_redirects(database: ControlDatabase, organization: str, domain: str = "") -> list[ShippedRedirect]:
    """Read the redirects that were shipped and not withdrawn, by domain and path: the newest for each path.

    With a domain, only redirects that work on it.
    """
    rows = database.rows(
        "SELECT domain, path, target, rule.status, rule.job_id, rule.number, shipped_at FROM redirect_rules AS rule "
        "JOIN implementations AS one ON one.job_id = rule.job_id AND one.number = rule.number "
        "WHERE organization = ? AND one.status = 'shipped' AND (? IN ('', domain) OR domain = ?) "
        "ORDER BY shipped_at, attached_at, rule.job_id, rule.number",
        [organization, domain, EVERY_DOMAIN],
    )
    found: dict[tuple[str, str], ShippedRedirect] = {}
    for host, raw, target, status, job_id, number, shipped_at in rows:
        path, at = percent_encoded(raw), from_text(shipped_at)
        found[host, path] = ShippedRedirect(host, path, target, status, job_id, number, at)
    return [found[key] for key in sorted(found)]


def read_redirects_version(database: ControlDatabase, organization: str) -> str:
    """Return a version that changes when the result of `read_redirects` may change; "" until anything is shipped."""
    rows = database.rows("SELECT version FROM redirect_versions WHERE organization = ?", [organization])
    return str(rows[0][0]) if rows else ""


def check_shipped_redirects(connection: sqlite3.Connection, job: Job, number: int) -> None:
    """Raise JobConflict if shipping an implementation would bring its organization over MAX_SHIPPED_REDIRECTS."""
    organization = job.organization
    ((count,),) = connection.execute(
        "SELECT count(*) FROM redirect_rules AS rule JOIN implementations AS one ON one.job_id = rule.job_id "
        "AND one.number = rule.number WHERE organization = ? "
        "AND (one.status = 'shipped' OR one.job_id = ? AND one.number = ?)",
        [organization, job.id, number],
    )
    if count > MAX_SHIPPED_REDIRECTS:
        raise JobConflict(
            f"{organization} would have {count:,} shipped redirects; the maximum is {MAX_SHIPPED_REDIRECTS:,}. "
            "Withdraw some first."
        )


def excess_bytes(database: ControlDatabase, organization: str, added: CheckedDraft) -> int:
    """Return the number of bytes by which an organization's contents would exceed MAX_STORED_BYTES with the content of
    `added`; 0 or less if they would not.
    """
    if added.content is None:
        return 0
    rows = database.rows(
        "SELECT coalesce(sum(bytes), 0) FROM jobs JOIN implementations ON job_id = jobs.id "
        "WHERE organization = ? AND content IS NOT NULL",
        [organization],
    )
    return int(rows[0][0]) + len(added.content) - MAX_STORED_BYTES


def free_bytes(connection: sqlite3.Connection, organization: str, wanted: int) -> None:
    """Delete contents of withdrawn implementations, oldest first, to free `wanted` bytes. Raises TooLarge if this
    frees too little.
    """
    if wanted <= 0:  # the usual case
        return
    rows = connection.execute(
        "SELECT job_id, number, bytes FROM jobs JOIN implementations ON job_id = jobs.id WHERE organization = ? "
        "AND content IS NOT NULL AND implementations.status = 'withdrawn' ORDER BY attached_at, job_id, number",
        [organization],
    ).fetchall()
    for job_id, number, size in rows:
        if wanted <= 0:
            return
        wanted -= size
        connection.execute(
            "UPDATE implementations SET content = NULL WHERE job_id = ? AND number = ?", [job_id, number]
        )
    if wanted > 0:
        raise TooLarge(
            f"the implementations of {organization} have {MAX_STORED_BYTES >> 20} MiB of content, the maximum; "
            "withdraw some, or attach only the url of this one."
        )


def read_wanted_links(database: ControlDatabase, organization: str) -> dict[str, LinkEdit]:
    """Read the pending links of attached redirects by id, oldest first."""
    rows = database.rows(
        "SELECT id, short_code, domain, target_url, created_at FROM wanted_links WHERE organization = ? ORDER BY rowid",
        [organization],
    )
    return {
        wanted: LinkEdit(short_code, domain, Link(short_code, domain, target, datetime.fromisoformat(created_at)))
        for wanted, short_code, domain, target, created_at in rows
    }


def organizations_that_want_links(database: ControlDatabase) -> list[str]:
    """Return the organizations with pending links."""
    return [name for (name,) in database.rows("SELECT DISTINCT organization FROM wanted_links")]


def delete_wanted_links(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Delete pending links that were written or withdrawn."""
    connection.executemany("DELETE FROM wanted_links WHERE id = ?", [(one,) for one in ids])


def read_attached_redirects(
    database: ControlDatabase, organization: str
) -> list[tuple[str, int, Sequence[Subject], datetime]]:
    """Read the unshipped implementations in force of approved redirect jobs: job, number, subjects, approval time."""
    rows = database.rows(
        "SELECT jobs.id, number, subjects, implementations.subject, (SELECT max(at) FROM job_history "
        "WHERE job_id = jobs.id AND action = 'approve') AS approved_at FROM jobs JOIN implementations "
        "ON job_id = jobs.id AND number = implementation_number "
        "WHERE organization = ? AND action_id = ? AND subjects <> '[]' "
        "AND jobs.status IN ('approved', 'sent') AND implementations.status IN ('attached', 'accepted') "
        "AND approved_at IS NOT NULL ORDER BY jobs.id",
        [organization, ADD_REDIRECT],
    )
    return [
        (job_id, number, chosen(orjson.loads(subjects), subject), from_text(approved_at))
        for job_id, number, subjects, subject, approved_at in rows
    ]


def insert_implementation(connection: sqlite3.Connection, job: Job, added: Implementation, draft: CheckedDraft) -> None:
    """Insert an implementation of a job, its redirect rules and its pending link."""
    connection.execute(
        f"INSERT INTO implementations (job_id, {_COLUMNS}, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [job.id, *stored_values(added), draft.content],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO redirect_rules VALUES (?, ?, ?, ?, ?, ?, ?)",
        [[job.organization, job.id, added.number, *rule] for rule in draft.rules],
    )
    if link := draft.link:
        wanted, created_at = _wanted_link(job, added.number), link.created_at.isoformat()
        connection.execute(
            "INSERT INTO wanted_links VALUES (?, ?, ?, ?, ?, ?, ?)",
            [wanted, job.organization, job.id, link.short_code, link.domain, link.target_url, created_at],
        )


def update_implementation(
    connection: sqlite3.Connection, job: Job, before: Implementation, changed: Implementation
) -> None:
    """Store the status, url and shipped_at of an implementation. Withdrawal deletes its redirect rules and its pending
    link.
    """
    connection.execute(
        "UPDATE implementations SET status = ?, shipped_at = ?, url = ? WHERE job_id = ? AND number = ?",
        [changed.status, changed.shipped_at and to_text(changed.shipped_at), changed.url, job.id, changed.number],
    )
    if changed.status == "withdrawn":
        connection.execute("DELETE FROM redirect_rules WHERE job_id = ? AND number = ?", [job.id, changed.number])
        delete_wanted_links(connection, [_wanted_link(job, changed.number)])
    if before.status != changed.status and "shipped" in (before.status, changed.status):
        connection.execute(
            "INSERT OR REPLACE INTO redirect_versions VALUES (?, lower(hex(randomblob(16))))", [job.organization]
        )


def _wanted_link(job: Job, number: int) -> str:
    """Return the id of the pending link of an implementation."""
    return f"{job.id}/{number}"


def delete_contents(connection: sqlite3.Connection, job_id: str, dry_run: bool) -> int:
    """Delete the contents, notes and URLs of a job's implementations, their redirect rules and their pending links.

    Returns the number of deleted contents. Shipped redirects keep their contents and rules, since web servers use them.
    The notes are also deleted from the job's history. A dry run only counts.
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
        connection.execute(
            "DELETE FROM redirect_rules WHERE job_id = ?1 AND number IN "
            "(SELECT number FROM implementations WHERE job_id = ?1 AND content IS NULL)",
            [job_id],
        )
        connection.execute("DELETE FROM wanted_links WHERE job_id = ?", [job_id])
    return int(count)


def damaged_contents(connection: sqlite3.Connection) -> list[str]:
    """Return a sentence for each stored content that does not match its SHA-256."""
    rows = connection.execute(
        "SELECT job_id, number, sha256, content FROM implementations WHERE content IS NOT NULL ORDER BY 1, 2"
    )
    return [
        f"implementation {number} of {job_id} is damaged: its SHA-256 differs"
        for job_id, number, sha256, content in rows
        if hashlib.sha256(content).hexdigest() != sha256
    ]


def stored_values(record: Implementation | HistoryLine) -> list[object]:
    """Return the values of a record as they are stored: times as strings."""
    return [to_text(value) if isinstance(value, datetime) else value for value in astuple(record)]
