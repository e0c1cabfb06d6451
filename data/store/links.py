"""The links of an organization: short codes and their target URLs. An import replaces all of them."""

import csv
import re
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from cachetools import LRUCache

from data.errors import BadInput
from data.hosts import check_host
from data.store.lake import LINKS, Lake
from data.store.link_files import intact_links, replace_links, stored_links
from data.visits import check_organization

COLUMNS: Final = ("short_code", "domain", "target_url", "created_at")
REQUIRED: Final = ("short_code", "target_url")
_SHORT_CODE = re.compile(r"[^\s/?#]{1,256}")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Link:
    """One link. With an empty domain, it works on every domain of the organization."""

    short_code: str
    domain: str
    target_url: str
    created_at: datetime  # UTC, naive


def import_links(lake: Lake, organization: str, path: Path, now: datetime) -> int:
    """Replace the links of an organization by those in a CSV file; return their number.

    The first line names the columns: short_code and target_url, optionally domain and created_at
    (RFC 3339; `now` where missing). Raises BadInput naming the line; then nothing was changed.
    """
    check_organization(organization)
    links = sorted(_read(path, now), key=lambda link: (link.short_code, link.domain))
    columns = [[getattr(link, name) for link in links] for name in ("short_code", "domain", "target_url", "created_at")]
    replace_links(lake, organization, pa.table([[organization] * len(links), *columns], schema=LINKS))
    return len(links)


def links_of(lake: Lake, organization: str) -> list[Link]:
    """All links of an organization, sorted by short code and domain. Raises LakeDamaged."""
    stored = stored_links(lake, organization)
    return _read_links(intact_links(lake, stored)) if stored else []


def _read_links(path: str) -> list[Link]:
    return [Link(**row) for row in pq.ParquetFile(path).read(columns=list(COLUMNS)).to_pylist()]


class LinkIndex:
    """Finds the short code of a target URL. Links are cached until others are imported."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._cache: LRUCache[str, tuple[str, dict[str, str]]] = LRUCache(256)
        self._codes: LRUCache[str, tuple[str, frozenset[str]]] = LRUCache(256)
        self._lock = threading.Lock()

    def short_code_of(self, organization: str, target_url: str) -> str | None:
        """The short code of the newest link to this URL; None when there is no such link. Raises LakeDamaged."""
        stored = stored_links(self._lake, organization)
        if stored is None:
            return None
        cached = self._cache.get(organization)
        if cached is None or cached[0] != stored.path:
            links = _read_links(intact_links(self._lake, stored))
            newest_last = sorted(links, key=lambda link: link.created_at)
            cached = stored.path, {normalized_url(link.target_url): link.short_code for link in newest_last}
            self._cache[organization] = cached
        return cached[1].get(normalized_url(target_url))

    def short_codes(self, organization: str) -> frozenset[str]:
        """The short codes of the links of an organization, on any domain. Thread-safe. Raises LakeDamaged."""
        with self._lock:
            stored = stored_links(self._lake, organization)
            if stored is None:
                return frozenset()
            cached = self._codes.get(organization)
            if cached is None or cached[0] != stored.path:
                links = _read_links(intact_links(self._lake, stored))
                cached = self._codes[organization] = stored.path, frozenset(link.short_code for link in links)
            return cached[1]


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


def _read(path: Path, now: datetime) -> list[Link]:
    links: dict[tuple[str, str], int] = {}
    found: list[Link] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            missing = [name for name in REQUIRED if name not in (rows.fieldnames or ())]
            if missing:
                raise BadInput(
                    f"{path}: its first line must name the columns {', '.join(COLUMNS)}; {missing[0]} is missing."
                )
            for row in rows:
                link = _link(row, f"{path}, line {rows.line_num}", now)
                first = links.setdefault((link.short_code, link.domain), rows.line_num)
                if first != rows.line_num:
                    raise BadInput(
                        f"{path}, line {rows.line_num}: {link.short_code} on this domain is already in line {first}."
                    )
                found.append(link)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} cannot be read as CSV in UTF-8: {error}.") from error
    return found


def _link(row: dict[str, str | None], line: str, now: datetime) -> Link:
    short_code, domain, target_url, created_at = ((row.get(name) or "").strip() for name in COLUMNS)
    if not _SHORT_CODE.fullmatch(short_code):
        raise BadInput(
            f"{line}: {short_code!r} is not a valid short code; use 1 to 256 characters except space, /, ?, #."
        )
    if not target_url.lower().startswith(("http://", "https://")) or len(target_url) > 2048:
        raise BadInput(f"{line}: target_url must be an http or https address of at most 2,048 characters.")
    try:
        moment = datetime.fromisoformat(created_at) if created_at else now
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"{line}: created_at {created_at!r} is not a valid time like 2026-11-20T10:00:00Z.") from None
    host = check_host(domain, f"{line}: domain") if domain else ""
    return Link(short_code, host, target_url, moment.replace(tzinfo=None))
