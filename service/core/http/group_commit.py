"""Group commit: one thread makes the changes of many requests durable together, before they are acknowledged."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final, Generic, TypeVar

from data import OutdatedManifest
from service.core.http.errors import StorageUnavailable
from service.core.http.scheduler import Scheduler
from service.core.threads import in_thread

Change = TypeVar("Change")
Outcome = TypeVar("Outcome")

STORAGE_ERRORS: Final = (OSError, sqlite3.OperationalError, OutdatedManifest)
"""Exceptions raised when nothing can be stored."""


class GroupCommit(Generic[Change, Outcome]):
    """A thread that commits all waiting changes of a group together; groups take turns. For use in one event loop."""

    def __init__(
        self,
        make: Callable[[str, list[Change]], Sequence[Outcome]],
        thread: ThreadPoolExecutor,
        needs_rest: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`make` runs in the thread, makes a group's changes durable, all or none, and returns the outcome of each.

        After its changes, a group rests for as long as they took if `needs_rest` returns true.
        """
        self._thread = thread
        self._make = make
        self._needs_rest = needs_rest
        self._scheduler = Scheduler(1)
        self._pending: dict[str, list[tuple[Change, asyncio.Future[Outcome]]]] = {}
        """Waiting changes by group, each with a future for its outcome."""
        self._making = set[asyncio.Task[None]]()

    def count_pending(self, group: str) -> int:
        """Return the number of waiting changes in a group."""
        return len(self._pending.get(group, ()))

    async def add(self, group: str, change: Change) -> Outcome:
        """Make a change durable; return its outcome. If this raises StorageUnavailable or an exception of `make`,
        nothing was changed.
        """
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if group not in self._pending:
            self._pending[group] = []
            making = asyncio.create_task(self._make_pending(group))
            self._making.add(making)
            making.add_done_callback(self._making.discard)
        self._pending[group].append((change, done))
        return await done

    async def _make_pending(self, group: str) -> None:
        await self._scheduler.acquire(group)
        pending, started_at = self._pending.pop(group), monotonic()
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await in_thread(self._thread, self._make, group, [change for change, _ in pending])
        except STORAGE_ERRORS as error:
            outcomes = [StorageUnavailable(error)] * len(pending)
        except Exception as error:  # noqa: BLE001  # raised in every request
            outcomes = [error] * len(pending)
        self._scheduler.release(group, monotonic() - started_at if self._needs_rest(group) else 0)
        for (_, done), outcome in zip(pending, outcomes, strict=True):
            if done.cancelled():
                continue  # its client disconnected
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

    async def close(self) -> None:
        """Commit the waiting changes without rests, and end the thread."""
        self._scheduler.end_rests()
        while self._making:
            await asyncio.wait(self._making)
        self._thread.shutdown()
