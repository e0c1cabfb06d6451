"""The sender of the outbox's messages, in a separate event loop, so that no request waits for a receiver."""

import asyncio
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from service.core.clock import Clock
from service.core.control_database import ControlDatabase
from service.core.logs import Log, error_fields
from service.core.setting_values import Network
from service.core.threads import in_daemon_thread
from service.hooks.attempts import ClaimedDelivery, claim, delete_old, finish, next_delivery
from service.hooks.delivery import Attempt, post
from service.hooks.signature import signature_headers

SLOTS: Final = 128
"""Maximum number of concurrent attempts. An organization gets another slot only while more slots are free than it uses.
"""
POLL_SECONDS: Final = 1.0
"""Maximum time between two searches for deliveries that are due."""
STOP_SECONDS: Final = 2.0
"""How long the server waits for attempts in progress when it stops. Abandoned messages are sent again after their
lease."""
DELETE_AFTER: Final = timedelta(hours=1)
"""Time between two deletions of old deliveries."""
_LOG: Final = logging.getLogger(__name__)

OnDelivered = Callable[[sqlite3.Connection, ClaimedDelivery, datetime], None]
"""A callback for a successful delivery, called in the transaction that records it."""


class Sender:
    """A sender of one lake's messages. Several processes may send from the same lake."""

    def __init__(
        self,
        database: ControlDatabase,
        networks: tuple[Network, ...],
        clock: Clock,
        log: Log | None = None,
        on_delivered: OnDelivered | None = None,
    ) -> None:
        self.outcomes: Counter[str] = Counter(delivered=0, failed=0, dead=0)
        """Attempts since the start, by outcome: delivered, failed (to be tried again), dead, and lost (the claim
        ended before the outcome was recorded)."""
        self._database = database
        self._networks = networks
        self._clock = clock
        self._log = log
        self._on_delivered = on_delivered
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()), name="hooks", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._is_stopped = False
        self._under_way: Counter[str] = Counter()
        """Number of attempts in progress, by organization."""
        self._attempts: set[asyncio.Task[None]] = set()
        self._deleted_at: datetime | None = None
        self._last_warning = ""

    def begin(self) -> None:
        """Start sending. The thread is a daemon, so the process does not wait for a receiver that hangs."""
        self._thread.start()

    async def end(self) -> None:
        """Stop sending; abandon attempts that are still waiting for a receiver after STOP_SECONDS."""
        self._is_stopped = True
        if self._loop:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake.set)
        await asyncio.to_thread(self._thread.join, STOP_SECONDS + POLL_SECONDS)

    def pending(self) -> int:
        """Return the number of deliveries that are still to be sent, now or later."""
        return int(self._database.rows("SELECT count(*) FROM deliveries WHERE status = 'pending'")[0][0])

    def dead(self) -> int:
        """Return the number of dead deliveries, which can be replayed."""
        return int(self._database.rows("SELECT count(*) FROM deliveries WHERE status = 'dead'")[0][0])

    def disabled(self) -> int:
        """Return the number of hooks that the service has disabled."""
        return int(self._database.rows("SELECT count(*) FROM hooks WHERE disabled_reason IS NOT NULL")[0][0])

    def claim(self) -> ClaimedDelivery | None:
        """Claim the next delivery. Returns None if none is due, or if each organization with a due delivery already
        uses its share of the slots.
        """
        free = SLOTS - self._under_way.total()
        full = [organization for organization, count in self._under_way.items() if count >= free]
        with self._database.snapshot() as connection:  # read first: an empty outbox needs no writes
            if not free or next_delivery(connection, self._clock(), full) is None:
                return None
        with self._database.transaction() as connection:
            return claim(connection, self._clock(), full)

    async def deliver(self, claimed: ClaimedDelivery) -> None:
        """Attempt a delivery, and record the outcome."""
        started_at = self._clock()
        signature = signature_headers(claimed.secrets, claimed.id, int(started_at.timestamp()), claimed.body)
        attempt = await post(claimed.url, signature, claimed.body, started_at, self._networks)
        await in_daemon_thread(self._finish, claimed, attempt)

    def _finish(self, claimed: ClaimedDelivery, attempt: Attempt) -> None:
        now = self._clock()
        with self._database.transaction() as connection:
            outcome = finish(connection, claimed, attempt, now)
            if outcome == "delivered" and self._on_delivered:
                self._on_delivered(connection, claimed, now)
        self.outcomes[outcome] += 1
        if self._log:
            self._log.line(
                "info", "hook", id=claimed.id, hook=claimed.hook_id, organization=claimed.organization,
                type=claimed.event, attempt=claimed.attempts + 1, outcome=outcome, status=attempt.status_code,
                error=attempt.error, ms=attempt.ms,
            )  # fmt: skip

    async def _send(self) -> None:
        """Send all due deliveries until stopped; look for more whenever an attempt ends or a second has passed."""
        self._loop = asyncio.get_running_loop()
        while not self._is_stopped:
            self._wake.clear()
            while not self._is_stopped and (claimed := await self._next()):
                task = asyncio.create_task(self._attempt(claimed))
                self._attempts.add(task)
                task.add_done_callback(self._attempts.discard)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=STOP_SECONDS)

    async def _next(self) -> ClaimedDelivery | None:
        """Claim the next delivery and count it as in progress. Errors are logged once and not raised."""
        try:
            claimed = await in_daemon_thread(self._look)
        except Exception as error:  # noqa: BLE001  # a bug or a full disk must not end the thread
            self._warn_once(error)
            return None
        if claimed:
            self._under_way[claimed.organization] += 1
        return claimed

    async def _attempt(self, claimed: ClaimedDelivery) -> None:
        """Attempt a delivery. Errors are logged once and not raised: the delivery is sent again after its lease."""
        try:
            await self.deliver(claimed)
            self._last_warning = ""
        except Exception as error:  # noqa: BLE001  # as above
            self._warn_once(error)
        finally:
            self._under_way[claimed.organization] -= 1
            self._wake.set()

    def _look(self) -> ClaimedDelivery | None:
        """Claim the next delivery; once an hour, delete old deliveries first."""
        now = self._clock()
        if self._deleted_at is None or abs(now - self._deleted_at) >= DELETE_AFTER:
            self._deleted_at = now
            with self._database.transaction() as connection:
                delete_old(connection, now)
        return self.claim()

    def _warn_once(self, error: Exception) -> None:
        """Log an error without its message, which could name a URL, unless it is the same as the last error."""
        warning = str(error_fields(error))
        if self._last_warning != warning and not self._is_stopped:
            self._last_warning = warning
            _LOG.warning("Messages to hooks cannot be sent: %s", warning)
