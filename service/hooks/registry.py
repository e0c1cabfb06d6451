"""Organizations' hooks and their deliveries, stored in control.sqlite."""

import json
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from data import BadInput, check_organization
from data.hosts import normalized_host
from service.core.clock import Clock, to_text, utc_now
from service.core.control_database import ControlDatabase
from service.core.encoding import record
from service.core.http.errors import NotFound
from service.core.setting_values import Network
from service.hooks import outbox
from service.hooks.outbox import TEST_EVENT, HookConflict
from service.hooks.records import DEFAULT_EVENTS, EVENTS, MAX_NAME_LENGTH, MAX_URL_LENGTH, Delivery, Hook, HookChanges
from service.hooks.signature import new_secret

MAX_HOOKS: Final = 20
"""Maximum number of hooks per organization."""
ROTATION: Final = timedelta(hours=24)
"""How long messages are also signed with the previous secret."""
_PRINTABLE_ASCII: Final = re.compile(r"[!-~]+")  # urlsplit silently removes tabs and line ends


class NoSuchHook(NotFound, BadInput):
    """The organization has no hook with this id, or the hook has no delivery with this id."""

    def __init__(self, problem: str) -> None:
        super().__init__("Hook or delivery not found.", "List the hooks to see their ids.", text=problem)


class Hooks:
    """The hooks of one lake. Safe to use from several threads and processes.

    All methods block, so an event loop calls them through the database's `read` and `write`.
    """

    def __init__(
        self,
        database: ControlDatabase,
        networks: tuple[Network, ...] = (),
        public_url: str = "",
        clock: Clock = utc_now,
    ) -> None:
        """Hook URLs may begin with http:// only if there are `networks`, and may not have the host of `public_url`, the
        server's own origin.
        """
        self.database = database
        self._clock = clock
        self._allows_http = bool(networks)
        self._own_host = urlsplit(public_url).hostname if public_url else None

    def create(
        self,
        organization: str,
        name: str,
        url: str,
        events: Sequence[str] = DEFAULT_EVENTS,
        *,
        active: bool = True,
        created_by: str | None = None,
    ) -> tuple[Hook, str]:
        """Create a hook. Returns the hook and its secret, which is returned only here. Raises BadInput for an invalid
        argument, or if there are already MAX_HOOKS hooks.
        """
        check_organization(organization)
        self._check(name, url, events)
        hook_id, secret, now = f"hook_{secrets.token_hex(10)}", new_secret(), to_text(self._clock())
        with self.database.transaction() as connection:
            ((count,),) = connection.execute("SELECT count(*) FROM hooks WHERE organization = ?", [organization])
            if count >= MAX_HOOKS:
                raise BadInput(f"{organization} has {MAX_HOOKS} hooks, which is the maximum; delete one first.")
            connection.execute(
                "INSERT INTO hooks (id, organization, name, url, events, active, created_at, created_by, secret) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [hook_id, organization, name, url, _events_text(events), active, now, created_by, secret],
            )
        return self.hook(organization, hook_id), secret

    def of(self, organization: str, hook_id: str = "") -> list[Hook]:
        """Return an organization's hooks, oldest first, or only the hook with the id `hook_id`, if given."""
        rows = self.database.rows(
            "SELECT id, name, url, events, active, created_at, created_by, substr(secret, -4), "
            "secret_rotated_at, previous_secret_until, last_success_at, last_failure_at, consecutive_failures, "
            "paused_until, disabled_reason FROM hooks "
            "WHERE organization = ? AND ? IN ('', id) ORDER BY created_at, rowid",
            [organization, hook_id],
        )
        return [record(Hook, (*row[:3], json.loads(row[3]), bool(row[4]), *row[5:])) for row in rows]

    def hook(self, organization: str, hook_id: str) -> Hook:
        """Return one hook. Raises NoSuchHook."""
        found = self.of(organization, hook_id) if hook_id else []
        if not found:
            raise _no_such_hook(organization, hook_id)
        return found[0]

    def change(self, organization: str, hook_id: str, changes: HookChanges) -> Hook:
        """Change a hook. Activation clears its failures, and deactivation ends its pending messages; both, and a new
        URL, end its pause. Raises NoSuchHook, or BadInput for an invalid value.
        """
        known: dict[str, Any] = msgspec.to_builtins(changes)  # without unchanged fields
        name, url, events = known.get("name"), known.get("url"), known.get("events")
        self._check(name, url, events)
        with self._change(organization, hook_id) as connection:
            connection.execute(
                "UPDATE hooks SET name = coalesce(?1, name), url = coalesce(?2, url), events = coalesce(?3, events), "
                "paused_until = iif(?2 IS NULL, paused_until, NULL) WHERE id = ?4",
                [name, url, None if events is None else _events_text(events), hook_id],
            )
            if changes.active is True:
                connection.execute(
                    "UPDATE hooks SET active = 1, disabled_reason = NULL, consecutive_failures = 0, "
                    "failing_since = NULL, paused_until = NULL WHERE id = ?",
                    [hook_id],
                )
            elif changes.active is False:
                outbox.deactivate(connection, hook_id, None, self._clock())
        return self.hook(organization, hook_id)

    def delete(self, organization: str, hook_id: str) -> Hook:
        """Delete a hook and its deliveries; return its last state. Raises NoSuchHook."""
        deleted = self.hook(organization, hook_id)
        with self._change(organization, hook_id) as connection:
            connection.execute("DELETE FROM deliveries WHERE hook_id = ?", [hook_id])
            connection.execute("DELETE FROM hooks WHERE id = ?", [hook_id])
        return deleted

    def rotate(self, organization: str, hook_id: str) -> tuple[Hook, str]:
        """Rotate a hook's secret. Returns the hook and the new secret, which is returned only here. Raises NoSuchHook.

        For ROTATION, messages are also signed with the old secret.
        """
        secret, now = new_secret(), self._clock()
        with self._change(organization, hook_id) as connection:
            connection.execute(
                "UPDATE hooks SET previous_secret = secret, previous_secret_until = ?, secret = ?, "
                "secret_rotated_at = ? WHERE id = ?",
                [to_text(now + ROTATION), secret, to_text(now), hook_id],
            )
        return self.hook(organization, hook_id), secret

    def send_test(self, organization: str, hook_id: str) -> str:
        """End a hook's pause and queue a test job for it, even if it is inactive; return the delivery's id.

        Raises NoSuchHook, or HookConflict while an earlier test or too many messages are pending.
        """
        now = self._clock()
        with self._change(organization, hook_id) as connection:
            pending = connection.execute(
                "SELECT id FROM deliveries WHERE hook_id = ? AND event = ? AND status = 'pending'",
                [hook_id, TEST_EVENT],
            ).fetchone()
            if pending:
                raise HookConflict(f"the test {pending[0]} is still pending; replay it to send it now.")
            _prepare(connection, hook_id)
            job = {
                "id": "job_00000000000000000000", "organization": organization, "type": "manual", "status": "approved",
                "title": "A test of this hook", "created_at": now, "updated_at": now,
                "summary": "This job does not exist. It shows that messages arrive with valid signatures.",
                "is_test": True,
            }  # fmt: skip
            body = outbox.message(organization, TEST_EVENT, job, now, outbox.read_address(connection))
            return outbox.add_delivery(connection, organization, hook_id, TEST_EVENT, body, job_id=None, now=now)

    def deliveries(self, organization: str, hook_id: str) -> list[Delivery]:
        """Return the newest MAX_DELIVERIES deliveries to a hook, newest first. Raises NoSuchHook."""
        self.hook(organization, hook_id)
        with self.database.snapshot() as connection:
            return outbox.read_deliveries(connection, organization, hook_id=hook_id)

    def store_address(self, url: str) -> None:
        """Store the base URL for links in messages: the server's public origin and base path."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM server_address")
            connection.execute("INSERT INTO server_address VALUES (?)", [url])

    def replay(self, organization: str, hook_id: str, delivery_id: str) -> str:
        """End a hook's pause and queue a message again, with the same id and bytes and a new series of attempts; return
        its id.

        Raises NoSuchHook, also for a deleted delivery, or HookConflict if too many other messages are pending.
        """
        with self._change(organization, hook_id) as connection:
            statuses = connection.execute(
                "SELECT status FROM deliveries WHERE id = ? AND hook_id = ?", [delivery_id, hook_id]
            ).fetchall()
            if not statuses:
                raise NoSuchHook(f"the hook {hook_id} has no delivery {delivery_id!r}.")
            _prepare(connection, hook_id, is_waiting=statuses == [("pending",)])
            connection.execute(
                "UPDATE deliveries SET status = 'pending', attempts = 0, due_at = ?, finished_at = NULL WHERE id = ?",
                [to_text(self._clock()), delivery_id],
            )
        return delivery_id

    @contextmanager
    def _change(self, organization: str, hook_id: str) -> Iterator[sqlite3.Connection]:
        """Open a transaction that changes one hook. Raises NoSuchHook."""
        with self.database.transaction() as connection:
            if not connection.execute(
                "SELECT 1 FROM hooks WHERE organization = ? AND id = ?", [organization, hook_id]
            ).fetchall():
                raise _no_such_hook(organization, hook_id)
            yield connection

    def _check(self, name: str | None, url: str | None, events: Sequence[str] | None) -> None:
        """Check the arguments that are not None. Raises BadInput."""
        if name is not None and not (1 <= len(name) <= MAX_NAME_LENGTH and name.isprintable()):
            raise BadInput(f"a hook's name must be 1 to {MAX_NAME_LENGTH} printable characters.")
        if url is not None:
            _check_url(url, self._allows_http, self._own_host)
        if events is not None:
            unknown = [event for event in events if event not in EVENTS]
            if unknown or not events:
                problem = f"{unknown[0]!r} is not an event" if unknown else "choose at least one event"
                raise BadInput(f"{problem}; use any of {', '.join(EVENTS)}.")


def _check_url(url: str, allows_http: bool, own_host: str | None) -> None:
    """Raise BadInput for a URL that hooks may not use. Its host's addresses may change, so each attempt checks them.

    `own_host` is the host of this service. With `allows_http`, the scheme may also be http.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", 0
    bracketed = f"[{host}]" if ":" in host else host
    is_valid = len(url) <= MAX_URL_LENGTH and _PRINTABLE_ASCII.fullmatch(url) and normalized_host(bracketed)
    if not is_valid or port == 0:
        raise BadInput(
            "the URL is invalid; use an address like https://automation.example/hook, of at most "
            f"{MAX_URL_LENGTH:,} ASCII characters without spaces."
        )
    if parts.scheme != "https" and (parts.scheme != "http" or not allows_http):
        raise BadInput("the URL must begin with https://; plain http is only for networks in TRAFFIC_HOOK_NETWORKS.")
    if "@" in parts.netloc or "#" in url:
        raise BadInput("the URL must have no user, password or fragment (#); put a token into its path or query.")
    if host.removesuffix(".") == own_host:
        raise BadInput("the URL is this service's own (TRAFFIC_PUBLIC_URL); use the address of your receiver.")


def _prepare(connection: sqlite3.Connection, hook_id: str, *, is_waiting: bool = False) -> None:
    """End a hook's pause before a user sends a message. Raises HookConflict if too many messages are pending,
    unless the message itself is already pending (`is_waiting`).
    """
    ((name,),) = connection.execute("UPDATE hooks SET paused_until = NULL WHERE id = ? RETURNING name", [hook_id])
    if not is_waiting:
        outbox.check_room(connection, hook_id, name)


def _no_such_hook(organization: str, hook_id: str) -> NoSuchHook:
    return NoSuchHook(f"{organization} has no hook {hook_id!r}; `traffic hooks list --org {organization}` shows them.")


def _events_text(events: Sequence[str]) -> str:
    return json.dumps([event for event in EVENTS if event in events])
