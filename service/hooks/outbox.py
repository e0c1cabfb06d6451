"""The outbox of messages: rows of control.sqlite, written in the transaction that changes the job.

pending → delivered, after a response 2xx; or dead, after the last attempt or when the hook is inactive. A message may
arrive more than once, always with the same id and the same bytes.
"""

import json
import logging
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from service.clock import to_text
from service.encoding import encode
from service.hooks.delivery import Attempt
from service.hooks.records import Delivery

TEST_EVENT: Final = "hook.test"

SCHEDULE: Final = (
    timedelta(0), timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2),
    timedelta(hours=5), timedelta(hours=10), timedelta(hours=14), timedelta(hours=20), timedelta(hours=24),
)  # fmt: skip
"""The pause before each attempt, give or take JITTER of it."""
JITTER: Final = 0.2
MAX_RETRY_AFTER: Final = timedelta(hours=24)
LEASE: Final = timedelta(seconds=60)
"""How long a delivery belongs to the sender that claimed it: longer than an attempt can take."""
MAX_UNDER_WAY: Final = 2
"""Deliveries of one organization that are under way at a time, so that its receivers do not hold up those of others."""
DISABLED_AFTER: Final = timedelta(days=5)
DISABLED_FAILURES: Final = 20
"""A hook is disabled if every attempt failed for that long, and at least so many did."""
KEPT: Final = timedelta(days=30)
"""How long finished deliveries are kept, and can be replayed."""
MAX_DELIVERIES: Final = 100
"""Deliveries that are listed."""
MAX_MESSAGE_BYTES: Final = 20_000
MAX_ROWS: Final = 10
"""Rows of evidence in a message."""
_LOG: Final = logging.getLogger(__name__)
_RANDOM: Final = secrets.SystemRandom()


@dataclass(frozen=True)
class ClaimedDelivery:
    """A delivery that one sender may attempt now."""

    id: str
    hook_id: str
    organization: str
    event: str
    job_id: str | None
    body: bytes
    attempts: int  # before this one
    claimed_until: str
    url: str
    secrets: tuple[str, ...]  # to sign with; two while a secret is being rotated


def enqueue(
    connection: sqlite3.Connection,
    organization: str,
    event: str,
    job: Mapping[str, Any],
    now: datetime,
) -> int:
    """Add a message about a job for each active hook that subscribes to `event`, in the caller's transaction.

    `job` is the record of GET /jobs/{id} without its history and deliveries. Returns the number of hooks.
    """
    rows = connection.execute(
        "SELECT id, events FROM hooks WHERE organization = ? AND active ORDER BY created_at, rowid", [organization]
    ).fetchall()
    hooks = [hook_id for hook_id, events in rows if event in json.loads(events)]
    body = message(organization, event, job, now, read_address(connection)) if hooks else b""
    for hook_id in hooks:
        add_delivery(connection, organization, hook_id, event, body, job_id=job["id"], now=now)
    return len(hooks)


def add_delivery(
    connection: sqlite3.Connection,
    organization: str,
    hook_id: str,
    event: str,
    body: bytes,
    *,
    job_id: str | None,
    now: datetime,
) -> str:
    """Add one message for one hook, to be sent at once. Returns its id."""
    delivery_id, at = f"evt_{secrets.token_hex(10)}", to_text(now)
    connection.execute(
        "INSERT INTO deliveries (id, hook_id, organization, event, job_id, body, status, created_at, due_at) "
        "VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
        [delivery_id, hook_id, organization, event, job_id, body, at, at],
    )
    return delivery_id


def store_address(connection: sqlite3.Connection, url: str) -> None:
    """Store where links begin: the public origin of the server and its base path, or the latter only."""
    connection.execute("DELETE FROM server_address")
    connection.execute("INSERT INTO server_address VALUES (?)", [url])


def read_address(connection: sqlite3.Connection) -> str:
    """Where the links of messages begin; "" before a server has run."""
    row = connection.execute("SELECT url FROM server_address").fetchone()
    return str(row[0]) if row else ""


def read_deliveries(
    connection: sqlite3.Connection, organization: str, *, hook_id: str = "", job_id: str = ""
) -> list[Delivery]:
    """The newest MAX_DELIVERIES deliveries to a hook, or about a job, newest first."""
    rows = connection.execute(
        "SELECT id, hook_id, event, job_id, status, attempts, status_code, error, ms, created_at, attempted_at, "
        "iif(status = 'pending', due_at, NULL) FROM deliveries "
        "WHERE organization = ? AND ? IN ('', hook_id) AND ? IN ('', job_id) ORDER BY number DESC LIMIT ?",
        [organization, hook_id, job_id, MAX_DELIVERIES],
    )
    return [Delivery.from_row(row) for row in rows]


def delete_messages(connection: sqlite3.Connection, job_id: str) -> None:
    """Delete all messages about a job, sent or not, since they repeat what it said."""
    connection.execute("DELETE FROM deliveries WHERE job_id = ?", [job_id])


def message(organization: str, event: str, job: Mapping[str, Any], now: datetime, base_url: str) -> bytes:
    """The body of a message: type, timestamp and data, as Standard Webhooks recommends. `base_url` begins the links.

    Rows of evidence are left out from the end until it has at most MAX_MESSAGE_BYTES; `evidence_rows` of the job tells
    how many there were.
    """
    shown = dict(job)
    path = f"{base_url}/jobs/{job['id']}"
    links = {
        "self": path,
        "actions": f"{path}/actions",
        "implementations": f"{path}/implementations",
        "dashboard": f"{base_url}/app/jobs/{job['id']}",
    }
    evidence = shown.get("evidence") or {}
    rows = list(evidence.get("rows", ()))[:MAX_ROWS]
    while True:
        if evidence:
            shown["evidence"] = {**evidence, "rows": rows}
        data = {"organization": organization, "job": shown, "links": links}
        body = encode({"type": event, "timestamp": now, "data": data})
        if len(body) <= MAX_MESSAGE_BYTES or not rows:
            return body
        rows.pop()


def claim(connection: sqlite3.Connection, now: datetime) -> ClaimedDelivery | None:
    """Take the oldest delivery that is due, of a hook without one under way; None if there is none.

    It belongs to the caller for LEASE, who ends it with `finish`; whatever happens to the caller, it is due again then.
    Those of an organization that has MAX_UNDER_WAY wait.
    """
    at = to_text(now)
    rows = connection.execute(
        "UPDATE deliveries SET claimed_until = :until WHERE number = ("
        " SELECT number FROM deliveries WHERE status = 'pending' AND due_at <= :at"
        " AND coalesce(claimed_until, '') <= :at"
        " AND hook_id NOT IN (SELECT hook_id FROM deliveries WHERE status = 'pending' AND claimed_until > :at)"
        " AND organization NOT IN (SELECT organization FROM deliveries WHERE status = 'pending'"
        " AND claimed_until > :at GROUP BY organization HAVING count(*) >= :max)"
        " ORDER BY due_at, number LIMIT 1"
        ") RETURNING id, hook_id, organization, event, job_id, body, attempts, claimed_until",
        {"at": at, "until": to_text(now + LEASE), "max": MAX_UNDER_WAY},
    ).fetchall()
    if not rows:
        return None
    url, secret, previous = connection.execute(
        "SELECT url, secret, iif(previous_secret_until > ?, previous_secret, NULL) FROM hooks WHERE id = ?",
        [at, rows[0][1]],
    ).fetchone()
    values = [*rows[0], url, (secret, previous) if previous else (secret,)]
    return ClaimedDelivery(*values)


def finish(connection: sqlite3.Connection, claimed: ClaimedDelivery, attempt: Attempt, now: datetime) -> str:
    """Record what came of an attempt: of the delivery and of its hook.

    Returns `delivered`, `failed` (there will be another attempt) or `dead`; `lost` if the delivery is the caller's no
    longer, and then nothing is recorded.
    """
    if not connection.execute(
        "SELECT 1 FROM deliveries WHERE id = ? AND claimed_until = ?", [claimed.id, claimed.claimed_until]
    ).fetchall():
        return "lost"
    attempts = claimed.attempts + 1
    is_active = _record_health(connection, claimed, attempt, now)
    outcome = "delivered" if attempt.is_success else "failed"
    if outcome == "failed" and (attempts >= len(SCHEDULE) or not is_active):
        outcome = "dead"
    pause = timedelta(0)
    if outcome == "failed":
        pause = SCHEDULE[attempts] * _RANDOM.uniform(1 - JITTER, 1 + JITTER)
        pause = max(pause, min(attempt.retry_after or pause, MAX_RETRY_AFTER))
    at = to_text(now)
    connection.execute(
        "UPDATE deliveries SET status = ?, attempts = ?, due_at = ?, claimed_until = NULL, attempted_at = ?, "
        "status_code = ?, error = ?, ms = ?, finished_at = ? WHERE id = ?",
        [
            "pending" if outcome == "failed" else outcome, attempts, to_text(now + pause), at,
            attempt.status_code, attempt.error, attempt.ms, None if outcome == "failed" else at, claimed.id,
        ],
    )  # fmt: skip
    return outcome


def _record_health(connection: sqlite3.Connection, claimed: ClaimedDelivery, attempt: Attempt, now: datetime) -> bool:
    """Record an attempt in its hook, and disable the hook if it failed for too long. Returns whether it is active."""
    at = to_text(now)
    if attempt.is_success:
        connection.execute(
            "UPDATE hooks SET last_success_at = ?, consecutive_failures = 0, failing_since = NULL WHERE id = ?",
            [at, claimed.hook_id],
        )
        return True
    rows = connection.execute(
        "UPDATE hooks SET last_failure_at = ?, consecutive_failures = consecutive_failures + 1, "
        "failing_since = coalesce(failing_since, ?) WHERE id = ? RETURNING active, consecutive_failures, failing_since",
        [at, at, claimed.hook_id],
    ).fetchall()
    if not rows or not rows[0][0]:
        return False
    _, failures, since = rows[0]
    reason = ""
    if attempt.status_code == 410:
        reason = "The receiver answered 410 Gone."
    elif failures >= DISABLED_FAILURES and since <= to_text(now - DISABLED_AFTER):
        reason = f"Every attempt failed for {DISABLED_AFTER.days} days."
    if reason:
        deactivate(connection, claimed.hook_id, reason, now)
        _LOG.warning("The hook %s of %s is disabled: %s", claimed.hook_id, claimed.organization, reason)
    return not reason


def deactivate(connection: sqlite3.Connection, hook_id: str, reason: str | None, now: datetime) -> None:
    """Make a hook inactive. What waits for it is dead; what is under way has its last attempt."""
    at = to_text(now)
    connection.execute("UPDATE hooks SET active = 0, disabled_reason = ? WHERE id = ?", [reason, hook_id])
    connection.execute(
        "UPDATE deliveries SET status = 'dead', finished_at = ?, claimed_until = NULL "
        "WHERE hook_id = ? AND status = 'pending' AND coalesce(claimed_until, '') <= ?",
        [at, hook_id, at],
    )


def delete_old(connection: sqlite3.Connection, now: datetime) -> None:
    """Delete deliveries that ended KEPT ago, and secrets that sign no longer."""
    connection.execute("DELETE FROM deliveries WHERE finished_at <= ?", [to_text(now - KEPT)])
    connection.execute(
        "UPDATE hooks SET previous_secret = NULL, previous_secret_until = NULL WHERE previous_secret_until <= ?",
        [to_text(now)],
    )
