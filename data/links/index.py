"""The links of organizations, looked up by short code, domain or target URL."""

import threading
from functools import cached_property, lru_cache
from itertools import product
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from data.store.lake import Lake
from data.store.link_files import LinkPaths, intact_links, read_links

MAX_RESOLVED: Final = 1_024
"""Maximum number of entries in each of an organization's caches: for target URLs, tags and short codes."""
MAX_TAGGED: Final = 1_000
"""Maximum number of links that a filter by tag accepts: each visit is compared with all of them."""
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class IndexedLinks:
    """The links in a set of files. They are read only when needed, since there may be hundreds of thousands."""

    def __init__(self, paths: LinkPaths) -> None:
        """Use the link files at `paths`. Link files never change."""
        self._paths = paths
        self._resolve = lru_cache(MAX_RESOLVED)(self._find)
        self.with_tag = lru_cache(MAX_RESOLVED)(self._with_tag)
        self.has_short_code = lru_cache(MAX_RESOLVED)(self._has_short_code)

    @cached_property
    def short_codes(self) -> pa.Array:
        """The short codes of all links, on any domain."""
        return self._values("short_code")

    @cached_property
    def domains(self) -> frozenset[str]:
        """The domains that the links name."""
        return frozenset(self._values("domain").to_pylist()) - {""}

    def short_code_of(self, target_url: str) -> str | None:
        """Return the short code of the newest link to a URL; None if no link leads there."""
        return self._resolve(normalized_url(target_url))[0]

    def codes_to(self, target_url: str) -> int:
        """Return the number of short codes that lead to a URL."""
        return self._resolve(normalized_url(target_url))[1]

    def _values(self, column: str) -> pa.Array:
        return pc.unique(read_links(self._paths, [column])[column])

    def _has_short_code(self, short_code: str | None) -> bool:
        return bool(pc.any(pc.equal(self.short_codes, short_code)).as_py())

    def _find(self, url: str) -> tuple[str | None, int]:
        """Return the short code of the newest link to a normalized URL, and the number of short codes leading to it."""
        links = read_links(self._paths, ["short_code", "target_url", "created_at"])
        same = _same(links, url)
        newest = same.filter(pc.equal(same["created_at"], pc.max(same["created_at"])))
        return pc.max(newest["short_code"]).as_py(), pc.count_distinct(same["short_code"]).as_py()

    def _with_tag(self, tag: str) -> "TaggedLinks":
        """Return the links that carry a tag."""
        links = read_links(self._paths, ["short_code", "domain", "tags"]).combine_chunks()
        tags = links["tags"].combine_chunks()
        carrying = links.take(pc.list_parent_indices(tags).filter(pc.equal(pc.list_flatten(tags), tag)))
        if len(carrying) > MAX_TAGGED:
            return TaggedLinks("", len(carrying))
        near = links.filter(pc.is_in(links["short_code"], carrying["short_code"].combine_chunks()))
        places, others = (
            {(row["short_code"], row["domain"]) for row in table.to_pylist()} for table in (carrying, near)
        )
        anywhere = {code for code, domain in places if not domain}
        words = {code for code, _ in places}
        if places != others or len(anywhere) < len(places):
            words |= {f"{domain}/{code}" for code, domain in places}
            words |= {f"?{domain}/{code}" for code, domain in others - places if code in anywhere}
        return TaggedLinks(" ".join(sorted(words)), len(places))


class TaggedLinks(NamedTuple):
    """The links that carry a tag."""

    words: str
    """Their short codes, separated by spaces, for is_tagged() in prelude/3_scope.sql. If domains matter, also
    `domain/code` for each link (`/code` for a link on every domain), and `?domain/code` for links without the tag that
    take precedence on their own domain."""
    found: int  # the number of links; above MAX_TAGGED, `words` is empty


NO_LINKS: Final = IndexedLinks(LinkPaths())


class LinkIndex:
    """The current links and the time zone of each organization. Thread-safe.

    It resolves query parameters: target URLs to short codes, and times to days in the organization's zone.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._cache: LRUCache[str, tuple[list[str], IndexedLinks]] = LRUCache(256)
        self._lock = threading.Lock()

    def links(self, organization: str) -> IndexedLinks:
        """Return the links of an organization. Reads the manifest. Raises LakeDamaged."""
        live = self._lake.manifest.links.live(organization)
        with self._lock:
            known, links = self._cache.get(organization, ([], NO_LINKS))
            if known != live.paths:
                links = IndexedLinks(intact_links(self._lake, live))
                self._cache[organization] = live.paths, links
            return links

    def zone(self, organization: str) -> str:
        """Return the time zone of an organization."""
        return self._lake.manifest.organizations.zone(organization)


def normalized_url(url: str) -> str:
    """Normalize a URL for comparison: scheme and host in lower case, no default port, one trailing slash removed."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    user, at, host = parts.netloc.rpartition("@")
    host = _lower(host).removesuffix(_DEFAULT_PORTS.get(parts.scheme, ""))
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{user}{at}{host}{parts.path.removesuffix('/')}{query}{fragment}"


def _lower(text: str) -> str:
    """Return a string in lower case, converted letter by letter in the same way as pyarrow converts a column."""
    lower: str = pc.utf8_lower(text).as_py()
    return lower


def _same(links: pa.Table, url: str) -> pa.Table:
    """Return the links to a normalized target URL.

    Every spelling of the URL is looked up, since there may be hundreds of thousands of URLs, too many to normalize.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return links.filter(pc.equal(links["target_url"], url))
    scheme, login = f"{parts.scheme}://", "".join(parts.netloc.rpartition("@")[:2])
    hosts = _with_and_without(parts.netloc, _DEFAULT_PORTS.get(parts.scheme, ""))
    starts = pa.array([_lower(scheme + host) for host in hosts])
    queries = [f"?{parts.query}"] if parts.query else ["", "?"]
    fragments = [f"#{parts.fragment}"] if parts.fragment else ["", "#"]
    found = []
    for rest in map("".join, product(_with_and_without(parts.path, "/"), queries, fragments)):
        some = links.filter(pc.ends_with(links["target_url"], rest))
        start = pc.utf8_slice_codeunits(some["target_url"], 0, -len(rest) or None)
        is_login = pc.equal(pc.utf8_slice_codeunits(start, len(scheme), len(scheme + login)), login)
        found.append(some.filter(pc.and_(is_login, pc.is_in(pc.utf8_lower(start), starts))))
    return pa.concat_tables(found)


def _with_and_without(text: str, end: str) -> list[str]:
    """Return the spellings that become this string once an optional `end` is removed."""
    return [text + end] if text.endswith(end) else [text, text + end]
