"""The links that programs read and change one by one."""

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from data import Lake, OutdatedManifest
from data.store.links import Link, LinkEdit, edit_links, link_of
from service.http.errors import Overloaded, StorageUnavailable
from service.priority import lower_priority
from service.threads import in_thread

MAX_WAITING_EDITS: Final = 8
"""Edits of one organization that wait for those under way; further ones are answered with Overloaded."""

Edited = tuple[Link | None, Link | None]
"""A link before and after an edit."""


@dataclass(frozen=True)
class _WaitingEdit:
    edit: LinkEdit
    done: asyncio.Future[Edited]


class LinkEditor:
    """Reads and changes the links of organizations. Belongs to one event loop.

    One thread makes the edits: those of an organization that wait are one change, since each writes its file of links
    anew; organizations take turns. `domain` is "" for the link for every domain.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="links-write", initializer=lower_priority)
        self._waiting: dict[str, list[_WaitingEdit]] = {}
        """By organization, in the order of their turns."""
        self._work: asyncio.Task[None] | None = None

    async def link(self, organization: str, short_code: str, domain: str) -> Link | None:
        """A link; None when there is none. Raises LakeDamaged."""
        return await asyncio.to_thread(link_of, self._lake, organization, short_code, domain)

    async def put(self, organization: str, link: Link) -> tuple[Link, bool]:
        """Add or change a link; the link as it is now, and whether it is new. Raises as `_edit` does."""
        before, after = await self._edit(organization, LinkEdit(link.short_code, link.domain, link))
        return after or link, before is None

    async def remove(self, organization: str, short_code: str, domain: str) -> Link | None:
        """Remove a link; the link that was removed, or None when there is none. Raises as `_edit` does."""
        before, _ = await self._edit(organization, LinkEdit(short_code, domain, None))
        return before

    async def _edit(self, organization: str, edit: LinkEdit) -> Edited:
        """Make an edit durably. Raises Overloaded, StorageUnavailable or LakeDamaged; then nothing was changed."""
        waiting = self._waiting.setdefault(organization, [])
        if len(waiting) >= MAX_WAITING_EDITS:
            raise Overloaded
        waiting.append(_WaitingEdit(edit, asyncio.get_running_loop().create_future()))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._write())
        return await waiting[-1].done

    async def _write(self) -> None:
        while self._waiting:
            organization = next(iter(self._waiting))
            edits = self._waiting.pop(organization)
            try:
                edited = await in_thread(
                    self._writer, edit_links, self._lake, organization, [waiting.edit for waiting in edits]
                )
            except Exception as error:  # noqa: BLE001  # raised in every request
                _finish(edits, [_as_problem(error)] * len(edits))
            else:
                _finish(edits, edited)

    async def close(self) -> None:
        """Wait for the edits and end the thread."""
        if self._work:
            await self._work
        self._writer.shutdown()


def _finish(edits: Sequence[_WaitingEdit], outcomes: Sequence[Edited | Exception]) -> None:
    for waiting, outcome in zip(edits, outcomes, strict=True):
        if waiting.done.cancelled():
            continue  # its client disconnected
        if isinstance(outcome, Exception):
            waiting.done.set_exception(outcome)
        else:
            waiting.done.set_result(outcome)


def _as_problem(error: Exception) -> Exception:
    is_storage = isinstance(error, OSError | sqlite3.OperationalError | OutdatedManifest)
    return StorageUnavailable(error) if is_storage else error
