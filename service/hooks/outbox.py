"""The outbox of messages to hooks: rows in control.sqlite, written in the transaction that changes the job.

A pending message becomes `delivered` with a 2xx response, and `dead` when its last attempt fails or its hook becomes
inactive. It may arrive more than once, always with the same id and the same bytes. attempts.py selects what to send.
"""

import json
import logging
import secrets
import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from data import BadInput
from service.core.clock import to_text
from service.core.encoding import encode, record
from service.core.http.errors import StateConflict
from service.hooks.records import Delivery

TEST_EVENT: Final = "hook.test"
MAX_PENDING: Final = 100
"""Maximum number of messages about people's actions that may be pending for one hook."""
LEASE: Final = timedelta(seconds=60)
"""How long a delivery is reserved for the sender that claimed it: longer than an attempt can take."""
_IS_CLAIMED: Final = "coalesce(claimed_until > :at AND claimed_until <= :longest, 0)"
"""SQL: whether a delivery is being attempted. `lease_bounds` returns its parameters."""
MAX_DELIVERIES: Final = 100
"""Maximum number of deliveries in a list."""
MAX_MESSAGE_BYTES: Final = 20_000
MAX_ROWS: Final = 10
"""Maximum number of evidence rows in a message."""
_LOG: Final = logging.getLogger(__name__)


def lease_bounds(now: datetime) -> dict[str, str]:
    """Return _IS_CLAIMED's parameters. A lease that ends later than two LEASEs from now was set by a wrong clock."""
    return {"at": to_text(now), "longest": to_text(now + 2 * LEASE)}


class HookConflict(StateConflict, BadInput):
    """The hook's state does not allow the request."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, text=problem)


def enqueue(
    connection: sqlite3.Connection,
    organization: str,
    event: str,
    job: Mapping[str, Any],
    now: datetime,
    *,
    by_service: bool = False,
) -> int:
    """Add a message about a job for each active hook that subscribes to `event`, in the caller's transaction.

    `job` is the record of GET /jobs/{id} without its history and deliveries. With `by_service`, the message replaces
    the service's pending messages about the job. Otherwise, a hook with MAX_PENDING pending messages is disabled if it
    is paused; if it is not, HookConflict is raised. Returns the number of messages added.
    """
    rows = connection.execute(
        "SELECT id, name, events, paused_until FROM hooks WHERE organization = ? AND active ORDER BY created_at, rowid",
        [organization],
    ).fetchall()
    address, bodies, count = read_address(connection), dict[str, bytes](), 0
    for hook_id, name, events, paused_until in rows:
        if event not in json.loads(events):
            continue
        named = event
        if by_service:
            withdrawn = connection.execute(
                "DELETE FROM deliveries WHERE hook_id = :hook AND job_id = :job AND status = 'pending' "
                f"AND is_replaceable AND NOT {_IS_CLAIMED} RETURNING event",
                {"hook": hook_id, "job": job["id"], **lease_bounds(now)},
            ).fetchall()
            if withdrawn and event == "job.updated":  # a receiver that does not know the job gets job.created
                named = withdrawn[0][0]
        else:
            try:
                check_room(connection, hook_id, name)
            except HookConflict:
                if paused_until is None or paused_until <= to_text(now):
                    raise
                reason = f"{MAX_PENDING} messages were pending, and the receiver did not respond."
                deactivate(connection, hook_id, reason, now)
                continue
        body = bodies[named] = bodies.get(named) or message(organization, named, job, now, address)
        add_delivery(
            connection, organization, hook_id, named, body, job_id=job["id"], now=now, is_replaceable=by_service
        )
        count += 1
    return count


def is_awaited(connection: sqlite3.Connection, organization: str, event: str) -> bool:
    """Return whether an organization has an active hook that subscribes to an event."""
    rows = connection.execute("SELECT events FROM hooks WHERE organization = ? AND active", [organization])
    return any(event in json.loads(events) for (events,) in rows)


def check_room(connection: sqlite3.Connection, hook_id: str, name: str) -> None:
    """Raise HookConflict if a hook has MAX_PENDING pending messages about people's actions."""
    ((count,),) = connection.execute(
        "SELECT count(*) FROM deliveries INDEXED BY deliveries_pending "  # not the index of all its deliveries
        "WHERE hook_id = ? AND status = 'pending' AND NOT is_replaceable",
        [hook_id],
    ).fetchall()
    if count >= MAX_PENDING:
        raise HookConflict(
            f"{MAX_PENDING} messages are pending for the hook {name!r} ({hook_id}), which is the maximum; "
            "try again when some of them are delivered, or make the hook inactive."
        )


def add_delivery(
    connection: sqlite3.Connection,
    organization: str,
    hook_id: str,
    event: str,
    body: bytes,
    *,
    job_id: str | None,
    now: datetime,
    is_replaceable: bool = False,
) -> str:
    """Add a message for one hook, due immediately. Returns the delivery's id."""
    delivery_id, at = f"evt_{secrets.token_hex(10)}", to_text(now)
    connection.execute(
        "INSERT INTO deliveries (id, hook_id, organization, event, job_id, body, is_replaceable, status, created_at, "
        "due_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
        [delivery_id, hook_id, organization, event, job_id, body, is_replaceable, at, at],
    )
    return delivery_id


def read_address(connection: sqlite3.Connection) -> str:
    """Return the base URL for links in messages; "" if no server has run yet."""
    row = connection.execute("SELECT url FROM server_address").fetchone()
    return str(row[0]) if row else ""


def read_deliveries(
    connection: sqlite3.Connection, organization: str, *, hook_id: str = "", job_id: str = ""
) -> list[Delivery]:
    """Return the newest MAX_DELIVERIES deliveries to a hook, or about a job, newest first."""
    rows = connection.execute(
        "SELECT id, hook_id, event, job_id, status, attempts, status_code, error, ms, created_at, attempted_at, "
        "iif(status = 'pending', max(due_at, coalesce((SELECT paused_until FROM hooks WHERE id = hook_id), '')), NULL) "
        "FROM deliveries "
        "WHERE organization = ? AND (hook_id = ? OR job_id = ?) ORDER BY number DESC LIMIT ?",
        [organization, hook_id, job_id, MAX_DELIVERIES],
    )
    return [record(Delivery, row) for row in rows]


def delete_messages(connection: sqlite3.Connection, job_id: str) -> None:
    """Delete all messages about a job, sent or not, since they repeat its content."""
    connection.execute("DELETE FROM deliveries WHERE job_id = ?", [job_id])


def message(organization: str, event: str, job: Mapping[str, Any], now: datetime, base_url: str) -> bytes:
    """Return the body of a message: type, timestamp and data, as Standard Webhooks recommends. Links begin with
    `base_url`.

    At most MAX_ROWS evidence rows are included; they are dropped from the end while the body is larger than
    MAX_MESSAGE_BYTES. The job's `evidence_rows` is the original number of rows.
    """
    shown = dict(job)
    path = f"{base_url}/jobs/{job['id']}"
    links = {"self": path, "actions": f"{path}/actions", "implementations": f"{path}/implementations"}
    links["dashboard"] = f"{base_url}/app/jobs/{job['id']}"
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


def deactivate(connection: sqlite3.Connection, hook_id: str, reason: str | None, now: datetime) -> None:
    """Make a hook inactive, with a reason if the service deactivates it. Its pending messages become dead.

    An attempt in progress is completed, but is the last attempt.
    """
    rows = connection.execute(
        "UPDATE hooks SET active = 0, paused_until = NULL, disabled_reason = ? WHERE id = ? RETURNING organization",
        [reason, hook_id],
    ).fetchall()
    connection.execute(
        "UPDATE deliveries SET status = 'dead', finished_at = :at, claimed_until = NULL "
        f"WHERE hook_id = :hook AND status = 'pending' AND NOT {_IS_CLAIMED}",
        {"hook": hook_id, **lease_bounds(now)},
    )
    if reason:
        _LOG.warning("The hook %s of %s is disabled: %s", hook_id, rows[0][0], reason)
