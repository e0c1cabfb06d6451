"""Changes of many requests that one thread makes durable together, and that are acknowledged only then."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from data import OutdatedManifest
from service.http.errors import StorageUnavailable
from service.threads import in_thread

Change = TypeVar("Change")
Outcome = TypeVar("Outcome")

STORAGE_ERRORS: Final = (OSError, sqlite3.OperationalError, OutdatedManifest)
"""What is raised when nothing can be stored now."""


class GroupCommit(Generic[Change, Outcome]):
    """One thread that makes the changes of a group that wait as one; groups take turns. Belongs to one event loop."""

    def __init__(self, make: Callable[[str, list[Change]], Sequence[Outcome]], thread: ThreadPoolExecutor) -> None:
        """`make` makes changes of a group durable, all or none, in the thread; it ends with this object."""
        self._thread = thread
        self._make = make
        self._pending: dict[str, list[tuple[Change, asyncio.Future[Outcome]]]] = {}
        """Changes that wait, each with the outcome to be: by group, in the order of their turns."""
        self._work: asyncio.Task[None] | None = None

    def count_pending(self, group: str) -> int:
        """How many changes of a group wait for those under way."""
        return len(self._pending.get(group, ()))

    async def add(self, group: str, change: Change) -> Outcome:
        """Make a change durably. Raises StorageUnavailable and what `make` raises; then nothing was changed."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._pending.setdefault(group, []).append((change, done))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._make_all())
        return await done

    async def _make_all(self) -> None:
        while self._pending:
            group = next(iter(self._pending))
            pending = self._pending.pop(group)
            outcomes: Sequence[Outcome | Exception]
            try:
                outcomes = await in_thread(self._thread, self._make, group, [change for change, _ in pending])
            except STORAGE_ERRORS as error:
                outcomes = [StorageUnavailable(error)] * len(pending)
            except Exception as error:  # noqa: BLE001  # raised in every request
                outcomes = [error] * len(pending)
            for (_, done), outcome in zip(pending, outcomes, strict=True):
                if done.cancelled():
                    continue  # its client disconnected
                if isinstance(outcome, Exception):
                    done.set_exception(outcome)
                else:
                    done.set_result(outcome)

    async def close(self) -> None:
        """Wait for the changes and end the thread."""
        if self._work:
            await self._work
        self._thread.shutdown()
