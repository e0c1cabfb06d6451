"""Selects the next message to send, and updates the message and its hook after the attempt.

Organizations take turns, and so do the hooks of an organization. If a receiver does not respond, or requests a pause,
its hook is paused with all its messages; an error response only delays its message, unless REFUSED_MESSAGES
messages have got errors since the last success. 410 Gone disables the hook.
"""

import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import orjson

from data.sql import read_sql
from service.core.clock import to_text
from service.hooks.delivery import Attempt
from service.hooks.outbox import LEASE, deactivate, lease_bounds

SCHEDULE: Final = (
    timedelta(0), timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2),
    timedelta(hours=5), timedelta(hours=10), timedelta(hours=14), timedelta(hours=20), timedelta(hours=24),
)  # fmt: skip
"""The pause before each attempt, varied at random by up to the fraction JITTER."""
JITTER: Final = 0.2
MAX_RETRY_AFTER: Final = timedelta(hours=24)
DISABLED_AFTER: Final = timedelta(days=5)
DISABLED_FAILURES: Final = len(SCHEDULE)
"""A hook is disabled after this many failed attempts in a row, if the first was at least DISABLED_AFTER ago."""
REFUSED_MESSAGES: Final = 3
"""A hook is paused when this many different messages have got error responses without a success in between."""
KEPT: Final = timedelta(days=30)
"""How long finished deliveries are kept and can be replayed."""
MAX_FINISHED: Final = 1_000
"""Maximum number of finished deliveries kept for each hook; older deliveries are deleted."""
_RANDOM: Final = secrets.SystemRandom()
_NEXT: Final = read_sql("service.hooks", "next_delivery")
"""SQL: the next delivery. Deliveries that a wrong clock dated in the future are due, too.

Each part of the query uses an index, so that one hook's many messages do not slow down the search for others.
"""


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
    secrets: tuple[str, ...]  # the secrets to sign with; two while a secret is being rotated


def next_delivery(connection: sqlite3.Connection, now: datetime, full: Iterable[str] = ()) -> tuple[int, str] | None:
    """Return the number and the hook id of the next delivery to send; None if none is due.

    Only organizations not in `full` are considered, and hooks that are not paused and have no delivery in progress. The
    least recently served organization comes first.
    """
    values = {**lease_bounds(now), "full": orjson.dumps([*full]).decode()}
    found: tuple[int, str] | None = connection.execute(_NEXT, values).fetchone()
    return found


def claim(connection: sqlite3.Connection, now: datetime, full: Iterable[str] = ()) -> ClaimedDelivery | None:
    """Claim the next delivery; return None if there is none.

    The caller holds the claim for LEASE and ends it with `finish`; if the caller dies, the delivery is due again after
    the lease.
    """
    found = next_delivery(connection, now, full)
    if found is None:
        return None
    number, hook_id = found
    ((url, secret, previous),) = connection.execute(
        "UPDATE hooks SET turn = (SELECT max(turn) + 1 FROM hooks) WHERE id = ? "
        "RETURNING url, secret, iif(previous_secret_until > ?, previous_secret, NULL)",
        [hook_id, to_text(now)],
    ).fetchall()
    (row,) = connection.execute(
        "UPDATE deliveries SET claimed_until = ? WHERE number = ? "
        "RETURNING id, hook_id, organization, event, job_id, body, attempts, claimed_until",
        [to_text(now + LEASE), number],
    ).fetchall()
    values = [*row, url, (secret, previous) if previous else (secret,)]
    return ClaimedDelivery(*values)


def finish(connection: sqlite3.Connection, claimed: ClaimedDelivery, attempt: Attempt, now: datetime) -> str:
    """Record the outcome of an attempt in the delivery and in its hook; delete finished deliveries beyond MAX_FINISHED.

    Returns `delivered`, `failed` (there will be another attempt) or `dead`. Returns `lost`, without recording anything,
    if the caller's claim has ended: the delivery was claimed again, ended or deleted.
    """
    if not connection.execute(
        "SELECT 1 FROM deliveries WHERE id = ? AND claimed_until = ?", [claimed.id, claimed.claimed_until]
    ).fetchall():
        return "lost"
    attempts, pause = claimed.attempts + 1, timedelta(0)
    outcome = "delivered" if attempt.is_success else "failed"
    if attempt.is_success:
        connection.execute(
            "UPDATE hooks SET last_success_at = ?, consecutive_failures = 0, failing_since = NULL, "
            "paused_until = NULL WHERE id = ?",
            [to_text(now), claimed.hook_id],
        )
    else:
        jitter = _RANDOM.uniform(1 - JITTER, 1 + JITTER)
        paused = _record_failure(connection, claimed, attempt, now, jitter)
        if paused is None or attempts >= len(SCHEDULE):
            outcome = "dead"
        elif not attempt.error:  # otherwise, only the hook's pause delays the message
            pause = max(SCHEDULE[attempts] * jitter, paused)
    at = to_text(now)
    connection.execute(
        "UPDATE deliveries SET status = ?, attempts = ?, due_at = ?, claimed_until = NULL, attempted_at = ?, "
        "status_code = ?, error = ?, ms = ?, finished_at = ? WHERE id = ?",
        [
            "pending" if outcome == "failed" else outcome, attempts, to_text(now + pause), at,
            attempt.status_code, attempt.error, attempt.ms, None if outcome == "failed" else at, claimed.id,
        ],
    )  # fmt: skip
    connection.execute(
        "DELETE FROM deliveries WHERE hook_id = ?1 AND status <> 'pending' AND number <= "
        "(SELECT number FROM deliveries WHERE hook_id = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
        [claimed.hook_id, MAX_FINISHED],
    )
    return outcome


def _record_failure(
    connection: sqlite3.Connection, claimed: ClaimedDelivery, attempt: Attempt, now: datetime, jitter: float
) -> timedelta | None:
    """Record a failed attempt in its hook. Returns how long the hook is paused; None if it is now inactive.

    A hook is disabled when its attempts have failed for too long, or the receiver answers 410 Gone.
    """
    at, hook_id = to_text(now), claimed.hook_id
    rows = connection.execute(
        "UPDATE hooks SET last_failure_at = ?, consecutive_failures = consecutive_failures + 1, "
        "failing_since = coalesce(failing_since, ?) WHERE id = ? RETURNING active, consecutive_failures, failing_since",
        [at, at, hook_id],
    ).fetchall()
    if not rows or not rows[0][0]:
        return None
    _, failures, since = rows[0]
    if attempt.status_code == 410:
        deactivate(connection, hook_id, "The receiver answered 410 Gone.", now)
        return None
    if failures >= DISABLED_FAILURES and since <= to_text(now - DISABLED_AFTER):
        deactivate(connection, hook_id, f"Every attempt failed for {DISABLED_AFTER.days} days.", now)
        return None
    pause = min(attempt.retry_after or timedelta(0), MAX_RETRY_AFTER)
    if attempt.error:
        pause = SCHEDULE[min(failures, len(SCHEDULE) - 1)] * jitter
    else:
        others = connection.execute(  # messages with errors since the hook's last success
            "SELECT 1 FROM deliveries WHERE hook_id = ? AND status = 'pending' "
            "AND coalesce(attempted_at, created_at) >= ? AND status_code IS NOT NULL AND id <> ? LIMIT ?",
            [hook_id, since, claimed.id, REFUSED_MESSAGES - 1],
        ).fetchall()
        if len(others) == REFUSED_MESSAGES - 1:
            pause = max(pause, SCHEDULE[min(failures - REFUSED_MESSAGES + 1, len(SCHEDULE) - 1)] * jitter)
    connection.execute(
        "UPDATE hooks SET paused_until = ? WHERE id = ?", [to_text(now + pause) if pause else None, hook_id]
    )
    return pause


def delete_old(connection: sqlite3.Connection, now: datetime) -> None:
    """Delete deliveries that ended at least KEPT ago, and previous secrets that have expired."""
    connection.execute(
        "DELETE FROM deliveries WHERE status IN ('delivered', 'dead') AND finished_at <= ?", [to_text(now - KEPT)]
    )
    connection.execute(
        "UPDATE hooks SET previous_secret = NULL, previous_secret_until = NULL WHERE previous_secret_until <= ?",
        [to_text(now)],
    )
