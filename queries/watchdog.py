"""Interrupts queries that time out or are cancelled, with one thread for all queries of an engine."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

INTERRUPT_INTERVAL_SECONDS: Final = 0.01
"""Interval at which an interrupt is repeated, since an interrupt between two statements of a query has no effect."""


class Interruptible(Protocol):
    """A query on a cluster, or a DuckDB cursor that runs a single query, so a late interrupt hits no other query."""

    def interrupt(self) -> None:
        """Make the running statement fail."""


class Watchdog:
    """Interrupts queries after `seconds` or when they are cancelled. Safe to use from several threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[Interruptible, tuple[float, threading.Event]] = {}
        self._condition = threading.Condition()
        self._is_closed = False
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextmanager
    def watching(self, query: Interruptible, cancelled: threading.Event) -> Iterator[None]:
        """Interrupt the query in this context at the timeout, or once `cancelled` is set and check_now() is called."""
        with self._condition:  # no notify: the thread wakes up before a query that starts now can time out
            self._running[query] = time.monotonic() + self._seconds, cancelled
        try:
            yield
        finally:
            with self._condition:
                del self._running[query]

    def check_now(self) -> None:
        """Wake the thread so that it checks for expired or cancelled queries now."""
        with self._condition:
            self._condition.notify()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self.check_now()

    def _watch(self) -> None:
        """Interrupt every expired or cancelled query, then wait until the next one expires or check_now() is called."""
        with self._condition:
            while not self._is_closed:
                now = time.monotonic()
                running = self._running.items()
                expired = [query for query, (end, cancelled) in running if now >= end or cancelled.is_set()]
                for query in expired:
                    query.interrupt()
                next_end = min((end for end, _ in self._running.values()), default=now + self._seconds)
                self._condition.wait(INTERRUPT_INTERVAL_SECONDS if expired else next_end - now)
