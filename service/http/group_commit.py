"""Changes of many requests that one thread makes durable together, and that are acknowledged only then."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final, Generic, TypeVar

from data import OutdatedManifest
from service.http.errors import StorageUnavailable
from service.threads import in_thread

Change = TypeVar("Change")
Outcome = TypeVar("Outcome")

STORAGE_ERRORS: Final = (OSError, sqlite3.OperationalError, OutdatedManifest)
"""Raised when nothing can be stored now."""


class GroupCommit(Generic[Change, Outcome]):
    """One thread that makes the changes of a group that wait as one; groups take turns. Belongs to one event loop."""

    def __init__(
        self,
        make: Callable[[str, list[Change]], Sequence[Outcome]],
        thread: ThreadPoolExecutor,
        needs_rest: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`make` makes changes of a group durable, all or none, in the thread; it ends with this object.

        A group rests for as long as its changes took if `needs_rest` says so when they are made.
        """
        self._thread = thread
        self._make = make
        self._needs_rest = needs_rest
        self._resting = set[str]()
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
        self._begin()
        return await done

    def _begin(self) -> None:
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._make_all())

    async def _make_all(self) -> None:
        while (group := next((one for one in self._pending if one not in self._resting), None)) is not None:
            pending, started_at = self._pending.pop(group), monotonic()
            outcomes: Sequence[Outcome | Exception]
            try:
                outcomes = await in_thread(self._thread, self._make, group, [change for change, _ in pending])
            except STORAGE_ERRORS as error:
                outcomes = [StorageUnavailable(error)] * len(pending)
            except Exception as error:  # noqa: BLE001  # raised in every request
                outcomes = [error] * len(pending)
            if self._needs_rest(group):
                self._resting.add(group)
                asyncio.get_running_loop().call_later(monotonic() - started_at, self._end_rest, group)
            for (_, done), outcome in zip(pending, outcomes, strict=True):
                if done.cancelled():
                    continue  # its client disconnected
                if isinstance(outcome, Exception):
                    done.set_exception(outcome)
                else:
                    done.set_result(outcome)

    def _end_rest(self, group: str) -> None:
        self._resting.discard(group)
        if group in self._pending:
            self._begin()

    async def close(self) -> None:
        """Make the changes that wait, without rests, and end the thread."""
        self._needs_rest = lambda _: False
        self._resting.clear()
        if self._pending:
            self._begin()
        if self._work:
            await self._work
        self._thread.shutdown()
