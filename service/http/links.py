"""The links that programs read and change one by one."""

import asyncio
from functools import partial
from typing import Final

from data import Lake
from data.store.links import Link, LinkEdit, edit_links, link_of
from service.http.errors import Overloaded
from service.http.group_commit import GroupCommit
from service.priority import lower_priority

MAX_WAITING_EDITS: Final = 8
"""Edits of one organization that wait for those under way; further ones are answered with Overloaded."""

Edited = tuple[Link | None, Link | None]
"""A link before and after an edit."""


class LinkEditor:
    """Reads and changes the links of organizations. Belongs to one event loop.

    Edits of an organization that wait are one change, since each writes its file of links anew. `domain` is "" for the
    link for every domain.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._edits: GroupCommit[LinkEdit, Edited] = GroupCommit(
            "links-write", partial(edit_links, lake), lower_priority
        )

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
        if self._edits.count_pending(organization) >= MAX_WAITING_EDITS:
            raise Overloaded
        return await self._edits.add(organization, edit)

    async def close(self) -> None:
        """Wait for the edits and end the thread."""
        await self._edits.close()
