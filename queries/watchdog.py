"""Ends the queries that ran out of time or that nobody wants any more: one thread for all queries of a Warehouse."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

INTERRUPT_INTERVAL_SECONDS: Final = 0.01
"""An interrupt that falls between two statements of a query is lost, so it is repeated until the query is over."""


class Interruptible(Protocol):
    """What a query runs on; nothing else ever runs there, so a late interrupt hits nobody."""

    def interrupt(self) -> None:
        """Let what runs now end with an error."""


class Watchdog:
    """Safe to use from several threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[Interruptible, tuple[float, threading.Event]] = {}
        self._condition = threading.Condition()
        self._is_closed = False
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextmanager
    def watching(self, query: Interruptible, cancelled: threading.Event) -> Iterator[None]:
        """Interrupt a query after its time, or soon after `cancelled` is set and `look` is called."""
        with self._condition:  # nobody is woken: every look is over before a query that begins now has run out of time
            self._running[query] = time.monotonic() + self._seconds, cancelled
        try:
            yield
        finally:
            with self._condition:
                del self._running[query]

    def look(self) -> None:
        """Look now whether a query is to end."""
        with self._condition:
            self._condition.notify()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self.look()

    def _watch(self) -> None:
        with self._condition:
            while not self._is_closed:
                self._condition.wait(self._interrupt_expired())

    def _interrupt_expired(self) -> float:
        """Interrupt every query that is to end; the seconds until the next look."""
        now = time.monotonic()
        expired = [query for query, (end, cancelled) in self._running.items() if now >= end or cancelled.is_set()]
        for query in expired:
            query.interrupt()
        if expired:
            return INTERRUPT_INTERVAL_SECONDS
        return min((end for end, _ in self._running.values()), default=now + self._seconds) - now
