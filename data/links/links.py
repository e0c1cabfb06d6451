"""The links of an organization: short codes and their target URLs."""

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput, LakeDamaged
from data.hosts import check_host
from data.links.tags import check_tags
from data.manifest.links import LiveLinks
from data.store.lake import Lake
from data.store.layout import LINK_CHANGES, LINKS
from data.store.link_files import editing, find_links, intact_links, lay_over, link_batches, read_links, replace_links
from data.visits import check_organization

COLUMNS: Final = ("short_code", "domain", "target_url", "created_at", "tags")
MAX_TARGET_URL_LENGTH: Final = 2_048
ANY_VERSION: Final = "*"
SHORT_CODE_RULE: Final = "1 to 256 characters except space, /, ?, #"
_SHORT_CODE: Final = re.compile(r"[^\s/?#\x00-\x1f\x7f\ud800-\udfff]{1,256}")
_TARGET_URL: Final = re.compile(r"(?i:https?://)[^\x00-\x1f\x7f\ud800-\udfff]{1,2048}")


@dataclass(frozen=True)
class Link:
    """A link. With an empty domain, it works on every domain of the organization."""

    short_code: str
    domain: str
    target_url: str
    created_at: datetime  # UTC, naive
    tags: tuple[str, ...] | None = None  # sorted; None: the link keeps its tags


class LinkChanges(NamedTuple):
    """Changes to the links of an organization. Short code and domain identify a link."""

    added: list[Link]
    changed: list[Link]  # as they are after the change
    unchanged: list[Link]
    removed: list[Link]

    @property
    def links(self) -> list[Link]:
        """All links after the changes, sorted by short code and domain."""
        return sorted([*self.added, *self.changed, *self.unchanged], key=_key)


class LinkEdit(NamedTuple):
    """The desired state of the link with this short code and domain. Without `link` and `tags`, the link is removed."""

    short_code: str
    domain: str
    link: Link | None
    tags: tuple[str, ...] | None = None  # new tags for the existing link, instead of `link`
    version: str | None = None
    """The version that the link must have; otherwise, nothing is changed. ANY_VERSION: the link must exist."""

    def fits(self, link: Link | None) -> bool:
        """Return whether the link has the version that this edit requires."""
        return self.version is None or (link is not None and self.version in {ANY_VERSION, version_of(link)})


def version_of(link: Link) -> str:
    """Return a string that changes with a link's target, tags and creation time."""
    values = link.target_url, link.created_at.replace(microsecond=0).isoformat(), *(link.tags or ())
    return hashlib.sha256("\0".join(values).encode()).hexdigest()[:32]


def is_short_code(text: str) -> bool:
    """Return whether a link may have this short code."""
    return bool(_SHORT_CODE.fullmatch(text))


def new_link(
    short_code: str, domain: str, target_url: str, now: datetime, tags: Iterable[object] | None = None
) -> Link:
    """Return a link created now; without `tags`, an existing link keeps its tags. Raises BadInput if it is invalid."""
    row = {"short_code": short_code, "domain": domain, "target_url": target_url}
    return parse_link(row, "the link", now, tags)


def change_links(
    lake: Lake,
    organization: str,
    links: Sequence[Link],
    now: datetime,
    *,
    replace: bool = False,
    added_tags: Callable[[Link], Iterable[str]] = lambda _: (),
    dry_run: bool = False,
) -> LinkChanges:
    """Add or change an organization's links; with `replace`, remove all others. With `dry_run`, only return changes.

    A stored link to the same URL keeps its creation time if the new link was created `now`. `added_tags` returns extra
    tags for a link. Raises BadInput for invalid tags, and without `replace`, LakeDamaged if links cannot be read.
    """
    check_organization(organization)
    live = lake.manifest.links.live
    with nullcontext(live(organization)) if dry_run else editing(lake, organization) as read:
        try:
            before = links_of(lake, organization)
        except LakeDamaged:
            if not replace:
                raise
            before = []
        left, changes = {_key(link): link for link in before}, LinkChanges([], [], [], [])
        created_now = now.astimezone(UTC).replace(tzinfo=None)
        for link in links:
            old = left.pop(_key(link), None)
            stored = _with_tags(link, old, added_tags(link))
            if old and old.target_url == link.target_url and link.created_at == created_now:
                stored = dataclasses.replace(stored, created_at=old.created_at)
            group = changes.added if old is None else changes.unchanged if old == stored else changes.changed
            group.append(stored)
        (changes.removed if replace else changes.unchanged).extend(left.values())
        if not dry_run:
            now_so = [*changes.added, *changes.changed]
            if replace:
                replace_links(lake, organization, read, _table(organization, changes.links))
            elif now_so:
                lay_over(lake, organization, read, _changes(organization, {_key(link): link for link in now_so}))
    return changes


def edit_links(lake: Lake, organization: str, edits: Sequence[LinkEdit]) -> list[tuple[Link | None, Link | None]]:
    """Apply edits in order and write them together. Returns the link before and after each edit.

    A link that already leads to the same URL keeps its creation time; a link without new tags keeps its tags. An edit
    for another version of the link changes nothing. Raises BadInput for an invalid organization name, and LakeDamaged.
    """
    check_organization(organization)
    with editing(lake, organization) as read:
        done, changes = _apply_edits(lake, organization, read, edits)
        if len(changes):
            lay_over(lake, organization, read, changes)
    return done


def edit_links_once(lake: Lake, organization: str, waiting: Callable[[], Mapping[str, LinkEdit]]) -> list[str]:
    """Apply an organization's pending edits, each exactly once, even if the process is killed and the call repeated.

    `waiting` returns the edits by id, in order, and is called while a lock excludes other link edits. Returns the ids
    of the applied edits, which the caller may delete; the manifest records these ids until then. Raises LakeDamaged.
    """
    check_organization(organization)
    with editing(lake, organization) as read:
        edits = waiting()
        known = lake.manifest.links.made_edits(organization)
        if left := [edit for edit_id, edit in edits.items() if edit_id not in known]:
            _, changes = _apply_edits(lake, organization, read, left)
            if len(changes):
                lay_over(lake, organization, read, changes, edits)
            else:
                lake.manifest.links.note_made(organization, edits)
    return [*edits]


_EditedLinks = list[tuple[Link | None, Link | None]]


def _apply_edits(
    lake: Lake, organization: str, read: LiveLinks, edits: Sequence[LinkEdit]
) -> tuple[_EditedLinks, pa.Table]:
    """Apply edits in memory. Return the link before and after each edit, and a table with the schema LINK_CHANGES."""
    near = {
        _key(link): link for link in _links(find_links(intact_links(lake, read), {edit.short_code for edit in edits}))
    }
    changed: dict[tuple[str, str], Link | None] = {}
    done: _EditedLinks = []
    for edit in edits:
        key = edit.short_code, edit.domain
        before = near.get(key)
        if not edit.fits(before):
            done.append((before, before))
            continue
        near.pop(key, None)
        wanted = edit.link if edit.tags is None else before and dataclasses.replace(before, tags=edit.tags)
        after = wanted and _with_tags(wanted, before)
        if before and after and before.target_url == after.target_url:
            after = dataclasses.replace(after, created_at=before.created_at)
        if after:
            near[key] = after
        if before != after:
            changed[key] = after
        done.append((before, after))
    return done, _changes(organization, changed)


def check_links(lake: Lake, organization: str) -> None:
    """Raise LakeDamaged if the links of an organization cannot be read."""
    intact_links(lake, lake.manifest.links.live(organization))


def remove_link(lake: Lake, organization: str, short_code: str, domain: str) -> Link | None:
    """Remove a link. Returns the removed link, or None if it does not exist. Raises LakeDamaged."""
    ((removed, _),) = edit_links(lake, organization, [LinkEdit(short_code, domain, None)])
    return removed


def _with_tags(link: Link, before: Link | None, added: Iterable[str] = ()) -> Link:
    """Return a link with its tags (if None, its previous tags) and the `added` tags. Raises BadInput for too many."""
    own = link.tags if link.tags is not None else (before and before.tags) or ()
    return dataclasses.replace(link, tags=check_tags({*own, *added}, f"the link {link.short_code}"))


def _table(organization: str, links: Iterable[Link]) -> pa.Table:
    rows = list(links)
    columns = [[getattr(link, name) for link in rows] for name in COLUMNS[:4]]
    tags = [link.tags or None for link in rows]
    return pa.table([[organization] * len(rows), *columns, tags], schema=LINKS)


def _changes(organization: str, links: Mapping[tuple[str, str], Link | None]) -> pa.Table:
    """Return changes by short code and domain as a table with the schema LINK_CHANGES; None removes a link."""
    rows = [
        {"organization": organization, "short_code": short_code, "domain": domain, "removed": link is None}
        | (vars(link) | {"tags": link.tags or None} if link else {})
        for (short_code, domain), link in links.items()
    ]
    return pa.Table.from_pylist(rows, schema=LINK_CHANGES)


def _links(table: pa.Table | pa.RecordBatch) -> list[Link]:
    rows = table.select(list(COLUMNS)).to_pylist()
    return [Link(**row | {"tags": tuple(row["tags"] or ())}) for row in rows]


def _key(link: Link) -> tuple[str, str]:
    return link.short_code, link.domain


def links_of(lake: Lake, organization: str) -> list[Link]:
    """Return all links of an organization, sorted by short code and domain. Raises LakeDamaged."""
    paths = intact_links(lake, lake.manifest.links.live(organization))
    links = _links(read_links(paths, COLUMNS))
    return sorted(links, key=_key) if paths.changes else links


def first_links(lake: Lake, organization: str, search: str, most: int) -> tuple[list[Link], bool]:
    """Return the first `most` links in the order of short code and domain, and whether there are more.

    Only links with `search` in the short code, domain or target URL are returned; case is ignored. Reading stops once
    enough links are found. Raises LakeDamaged, or BadInput if `search` is longer than any target URL.
    """
    if len(search) > MAX_TARGET_URL_LENGTH:
        raise BadInput(f"search must have at most {MAX_TARGET_URL_LENGTH:,} characters.")
    paths, found = intact_links(lake, lake.manifest.links.live(organization)), list[Link]()
    for batch in link_batches(paths, 4_096):
        found += _links(_containing(batch, search).slice(0, most + 1 - len(found)))
        if len(found) > most:
            break
    changed = _links(_containing(read_links(paths._replace(whole="")), search))
    found = sorted([*found, *changed], key=_key)
    return found[:most], len(found) > most


def _containing(links: pa.Table, search: str) -> pa.Table:
    """Return the links that contain a string in the short code, domain or target URL, ignoring case."""
    texts = [pc.match_substring(pc.utf8_lower(links[name]), search.lower()) for name in COLUMNS[:3]]
    return links.filter(reduce(pc.or_, texts))


def link_of(lake: Lake, organization: str, short_code: str, domain: str) -> Link | None:
    """Return a link of an organization; None if it does not exist. Raises LakeDamaged."""
    return next((link for link in links_with(lake, organization, short_code) if link.domain == domain), None)


def links_with(lake: Lake, organization: str, short_code: str) -> list[Link]:
    """Return the links with a short code, sorted by domain. Raises LakeDamaged."""
    near = find_links(intact_links(lake, lake.manifest.links.live(organization)), {short_code})
    return sorted(_links(near), key=_key)


def parse_link(row: Mapping[str, str | None], line: str, now: datetime, tags: Iterable[object] | None = None) -> Link:
    """Parse a link from its columns; created_at defaults to `now`. Raises BadInput with `line` in its message."""
    short_code, domain, target_url, created_at = ((row.get(name) or "").strip() for name in COLUMNS[:4])
    if not is_short_code(short_code):
        raise BadInput(f"{line}: {short_code!r} is not a valid short code; use {SHORT_CODE_RULE}.")
    if not _TARGET_URL.fullmatch(target_url) or len(target_url) > MAX_TARGET_URL_LENGTH:
        raise BadInput(f"{line}: target_url must be an http or https address of at most 2,048 characters.")
    try:
        moment = datetime.fromisoformat(created_at) if created_at else now
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(
            f"{line}: created_at {created_at!r} is not a valid time; write it like 2026-11-20T10:00:00Z."
        ) from None
    host = check_host(domain, f"{line}: domain") if domain else ""
    checked = None if tags is None else check_tags(tags, line)
    return Link(short_code, host, target_url, moment.replace(tzinfo=None), checked)
