"""The links that programs read and change one by one."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final, TypeVar

from data import Lake, OutdatedManifest
from data.store.links import Link, change_links, link_of, remove_link
from service.http.errors import Overloaded, StorageUnavailable

MAX_PENDING_CHANGES: Final = 64
"""Changes that wait for those before them; further ones are answered with Overloaded."""

Result = TypeVar("Result")


class LinkEditor:
    """Reads and changes the links of organizations. Belongs to one event loop.

    One thread makes the changes, one after the other: each writes the organization's file of links anew, and waits for
    other programs that do. `domain` is "" for the link for every domain.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="links-write")
        self._pending = 0

    async def link(self, organization: str, short_code: str, domain: str) -> Link | None:
        """A link; None when there is none. Raises LakeDamaged."""
        return await asyncio.to_thread(link_of, self._lake, organization, short_code, domain)

    async def put(self, organization: str, link: Link, now: datetime) -> tuple[Link, bool]:
        """Add or change a link; the link as it is now, and whether it is new. Raises as `_change` does."""

        def put() -> tuple[Link, bool]:
            changes = change_links(self._lake, organization, [link], now)
            key = link.short_code, link.domain
            return next(one for one in changes.links if (one.short_code, one.domain) == key), bool(changes.added)

        return await self._change(put)

    async def remove(self, organization: str, short_code: str, domain: str) -> Link | None:
        """Remove a link; the link that was removed, or None when there is none. Raises as `_change` does."""
        return await self._change(lambda: remove_link(self._lake, organization, short_code, domain))

    async def _change(self, work: Callable[[], Result]) -> Result:
        """The result of a change. Raises Overloaded, StorageUnavailable or LakeDamaged; then nothing was changed."""
        if self._pending >= MAX_PENDING_CHANGES:
            raise Overloaded
        self._pending += 1
        try:
            change = asyncio.get_running_loop().run_in_executor(self._writer, work)
            return await asyncio.shield(change)
        except (OSError, sqlite3.OperationalError, OutdatedManifest) as error:
            raise StorageUnavailable(error) from error
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Wait for the changes that are under way and end the thread."""
        self._writer.shutdown()
