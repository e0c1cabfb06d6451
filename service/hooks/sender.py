"""Sends what is in the outbox, in threads of the server's own, so that no request waits for a receiver."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from service.clock import to_text
from service.control_database import ControlDatabase
from service.hooks.delivery import Attempt, HookClient
from service.hooks.outbox import ClaimedDelivery, claim, delete_old, finish
from service.hooks.signature import signature_headers
from service.logs import Log, error_fields

THREADS: Final = 4
POLL_SECONDS: Final = 1.0
"""How often each thread looks for deliveries that are due."""
STOP_SECONDS: Final = 2.0
"""How long attempts may go on when the server stops. What is abandoned is sent again after its lease."""
DELETE_AFTER: Final = timedelta(hours=1)
"""Time between two deletions of old deliveries."""
_LOG: Final = logging.getLogger(__name__)

OnDelivered = Callable[[sqlite3.Connection, ClaimedDelivery, datetime], None]
"""Called in the transaction that records a delivery with status 2xx."""


class Sender:
    """Delivers the messages of one lake. Several processes may send from the same lake."""

    def __init__(
        self,
        database: ControlDatabase,
        client: HookClient,
        clock: Callable[[], datetime],
        log: Log | None = None,
        on_delivered: OnDelivered | None = None,
    ) -> None:
        self.outcomes: Counter[str] = Counter(delivered=0, failed=0, dead=0)
        """Attempts since the start by outcome: delivered, failed (to be tried again) and dead."""
        self._database = database
        self._client = client
        self._clock = clock
        self._log = log
        self._on_delivered = on_delivered
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._deleted_at: datetime | None = None
        self._last_warning = ""

    def begin(self) -> None:
        """Start the threads. They are daemons: a process does not wait for a receiver that hangs."""
        names = [f"hooks-{number}" for number in range(THREADS)]
        self._threads = [threading.Thread(target=self._run, name=name, daemon=True) for name in names]
        for thread in self._threads:
            thread.start()

    async def end(self) -> None:
        """Stop the threads; those that still wait for a receiver after STOP_SECONDS are abandoned."""
        self._stopped.set()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            await asyncio.to_thread(thread.join, max(0, deadline - time.monotonic()))

    def pending(self) -> int:
        """The number of deliveries that are to be sent, now or later."""
        ((count,),) = self._database.rows("SELECT count(*) FROM deliveries WHERE status = 'pending'")
        return int(count)

    def send_one(self) -> bool:
        """Attempt the oldest delivery that is due. Returns whether there was one."""
        at = to_text(self._clock())
        claimed = None
        if self._database.rows(
            "SELECT 1 FROM deliveries WHERE status = 'pending' AND due_at <= ? AND coalesce(claimed_until, '') <= ? "
            "LIMIT 1",
            [at, at],
        ):  # a read first, so that an empty outbox is not a write each second
            with self._database.transaction() as connection:
                claimed = claim(connection, self._clock())
        if claimed is None:
            return False
        started_at = self._clock()
        signature = signature_headers(claimed.secrets, claimed.id, int(started_at.timestamp()), claimed.body)
        attempt = asyncio.run(self._client.post(claimed.url, signature, claimed.body, started_at))
        self._finish(claimed, attempt)
        return True

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

    def _run(self) -> None:
        """Send until stopped. Errors are logged once, and end nothing: the lease lets the delivery be sent again."""
        while not self._stopped.is_set():
            has_more = False
            try:
                self._delete_old()
                has_more = self.send_one()
                self._last_warning = ""
            except Exception as error:  # noqa: BLE001  # a bug or a full disk must not end the thread
                if not self._stopped.is_set():
                    self._warn_once(error)
            if not has_more:
                self._stopped.wait(POLL_SECONDS)

    def _delete_old(self) -> None:
        now = self._clock()
        if self._deleted_at is None or abs(now - self._deleted_at) >= DELETE_AFTER:
            self._deleted_at = now
            with self._database.transaction() as connection:
                delete_old(connection, now)

    def _warn_once(self, error: Exception) -> None:
        """Log an error without its message, which could name a URL, unless it is the same as last time."""
        warning = str(error_fields(error))
        if self._last_warning != warning:
            self._last_warning = warning
            _LOG.warning("Hooks cannot be sent: %s", warning)
