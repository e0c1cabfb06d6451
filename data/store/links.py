"""The links of an organization: short codes and their target URLs."""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from cachetools import LRUCache

from data.errors import BadInput, LakeDamaged
from data.hosts import check_host
from data.store.lake import LINKS, Lake
from data.store.link_files import intact_links, replace_links, stored_links
from data.store.locks import locked
from data.visits import check_organization

COLUMNS: Final = ("short_code", "domain", "target_url", "created_at")
MAX_TARGET_URL_LENGTH: Final = 2_048
SHORT_CODE_RULE: Final = "1 to 256 characters except space, /, ?, #"
_SHORT_CODE: Final = re.compile(r"[^\s/?#\x00-\x1f\x7f\ud800-\udfff]{1,256}")
_TARGET_URL: Final = re.compile(r"(?i:https?://)[^\x00-\x1f\x7f\ud800-\udfff]{1,2048}")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Link:
    """One link. With an empty domain, it works on every domain of the organization."""

    short_code: str
    domain: str
    target_url: str
    created_at: datetime  # UTC, naive


class LinkChanges(NamedTuple):
    """How the links of an organization differ afterwards. A link is known by its short code and its domain."""

    added: list[Link]
    changed: list[Link]  # as they are now
    unchanged: list[Link]
    removed: list[Link]

    @property
    def links(self) -> list[Link]:
        """All links afterwards, sorted by short code and domain."""
        return sorted([*self.added, *self.changed, *self.unchanged], key=_key)


def is_short_code(text: str) -> bool:
    """Whether a link may have this short code."""
    return bool(_SHORT_CODE.fullmatch(text))


def new_link(short_code: str, domain: str, target_url: str, now: datetime) -> Link:
    """A link that is created now. Raises BadInput when it is not valid."""
    return parse_link({"short_code": short_code, "domain": domain, "target_url": target_url}, "the link", now)


def change_links(
    lake: Lake, organization: str, links: Sequence[Link], now: datetime, *, replace: bool = False, dry_run: bool = False
) -> LinkChanges:
    """Add links to those of an organization, or change them; with `replace`, remove all others.

    A link to the same URL that would be created now keeps its time. Raises LakeDamaged when the links cannot be read;
    damaged ones can still be replaced.
    """
    check_organization(organization)
    with nullcontext() if dry_run else locked(lake.links_root, wait=True):  # others that change links wait
        changes = _changes(_links_before(lake, organization, replace), links, now, replace)
        if not dry_run and (replace or changes.added or changes.changed):
            _write_links(lake, organization, changes.links)
    return changes


def remove_link(lake: Lake, organization: str, short_code: str, domain: str) -> Link | None:
    """Remove one link; the link that was removed, or None when there is none. Raises LakeDamaged."""
    check_organization(organization)
    with locked(lake.links_root, wait=True):
        left = {_key(link): link for link in links_of(lake, organization)}
        removed = left.pop((short_code, domain), None)
        if removed:
            _write_links(lake, organization, left.values())
    return removed


def _write_links(lake: Lake, organization: str, links: Iterable[Link]) -> None:
    """Make these the links of an organization. The caller has the lock."""
    rows = list(links)
    columns = [[getattr(link, name) for link in rows] for name in COLUMNS]
    replace_links(lake, organization, pa.table([[organization] * len(rows), *columns], schema=LINKS))


def _links_before(lake: Lake, organization: str, replace: bool) -> list[Link]:
    try:
        return links_of(lake, organization)
    except LakeDamaged:
        if not replace:
            raise
        return []


def _changes(before: Sequence[Link], links: Sequence[Link], now: datetime, replace: bool) -> LinkChanges:
    created_now = now.astimezone(UTC).replace(tzinfo=None)
    left = {_key(link): link for link in before}
    changes = LinkChanges([], [], [], [])
    for link in links:
        old = left.pop(_key(link), None)
        if old is None:
            changes.added.append(link)
        elif old == link or (old.target_url == link.target_url and link.created_at == created_now):
            changes.unchanged.append(old)
        else:
            changes.changed.append(link)
    (changes.removed if replace else changes.unchanged).extend(left.values())
    return changes


def _key(link: Link) -> tuple[str, str]:
    return link.short_code, link.domain


def links_of(lake: Lake, organization: str) -> list[Link]:
    """All links of an organization, sorted by short code and domain. Raises LakeDamaged."""
    stored = stored_links(lake, organization)
    return _read_links(intact_links(lake, stored)) if stored else []


def link_of(lake: Lake, organization: str, short_code: str, domain: str) -> Link | None:
    """One link of an organization; None when there is none. Raises LakeDamaged."""
    stored = stored_links(lake, organization)
    if stored is None:
        return None
    key = [("short_code", "=", short_code), ("domain", "=", domain)]
    rows = pq.read_table(intact_links(lake, stored), columns=list(COLUMNS), filters=key, partitioning=None).to_pylist()
    return Link(**rows[0]) if rows else None


def _read_links(path: str) -> list[Link]:
    return [Link(**row) for row in pq.ParquetFile(path).read(columns=list(COLUMNS)).to_pylist()]


class IndexedLinks:
    """The links of an organization as lookups need them."""

    def __init__(self, path: str, links: Iterable[Link]) -> None:
        self.path = path
        """Of the file that they were read from; "": there are none."""
        self.short_codes: set[str] = set()
        """On any domain."""
        self.domains: set[str] = set()
        """Those that the links name."""
        self._by_url: dict[str, str] = {}
        for link in sorted(links, key=lambda link: link.created_at):  # the newest wins
            self.short_codes.add(link.short_code)
            self.domains |= {link.domain} - {""}
            self._by_url[normalized_url(link.target_url)] = link.short_code

    def short_code_of(self, target_url: str) -> str | None:
        """The short code of the newest link to this URL; None when there is no such link."""
        return self._by_url.get(normalized_url(target_url))


NO_LINKS: Final = IndexedLinks("", ())


class LinkIndex:
    """Keeps the links of organizations in memory until others are imported. Safe to use from several threads.

    Parameters are resolved with it: target URLs to their links, and times to days of the organization's zone.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._cache: LRUCache[str, IndexedLinks] = LRUCache(256)
        self._lock = threading.Lock()

    def links(self, organization: str) -> IndexedLinks:
        """The links of an organization. It reads the manifest, and the links if they changed. Raises LakeDamaged."""
        with self._lock:
            stored = stored_links(self._lake, organization)
            if stored is None:
                return NO_LINKS
            cached = self._cache.get(organization)
            if cached is None or cached.path != stored.path:
                cached = IndexedLinks(stored.path, _read_links(intact_links(self._lake, stored)))
                self._cache[organization] = cached
            return cached

    def zone(self, organization: str) -> str:
        """The time zone of an organization."""
        return self._lake.manifest.zone(organization)


def normalized_url(url: str) -> str:
    """A URL normalized for comparison: scheme and host in lower case, no default port, one trailing slash removed."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    user, at, host = parts.netloc.rpartition("@")
    host = host.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme, ""))
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{user}{at}{host}{parts.path.removesuffix('/')}{query}{fragment}"


def parse_link(row: Mapping[str, str | None], line: str, now: datetime) -> Link:
    """A link from its columns as text. One without a created_at was created `now`. Raises BadInput naming `line`."""
    short_code, domain, target_url, created_at = ((row.get(name) or "").strip() for name in COLUMNS)
    if not is_short_code(short_code):
        raise BadInput(f"{line}: {short_code!r} is not a valid short code; use {SHORT_CODE_RULE}.")
    if not _TARGET_URL.fullmatch(target_url) or len(target_url) > MAX_TARGET_URL_LENGTH:
        raise BadInput(f"{line}: target_url must be an http or https address of at most 2,048 characters.")
    try:
        moment = datetime.fromisoformat(created_at) if created_at else now
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"{line}: created_at {created_at!r} is not a valid time like 2026-11-20T10:00:00Z.") from None
    host = check_host(domain, f"{line}: domain") if domain else ""
    return Link(short_code, host, target_url, moment.replace(tzinfo=None))
