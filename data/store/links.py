"""The links of an organization: which short code leads where. Replaced whole by an import, never edited."""

import csv
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from cachetools import LRUCache

from data.errors import BadInput
from data.store.files import write_durably
from data.store.lake import LINKS, Lake
from data.visits import check_organization

COLUMNS: Final = ("short_code", "domain", "target_url", "created_at")
REQUIRED: Final = ("short_code", "target_url")
_SHORT_CODE = re.compile(r"[^\s/?#]{1,256}")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Link:
    """One link. An empty domain: it works on every domain of the organization."""

    short_code: str
    domain: str
    target_url: str
    created_at: datetime  # UTC, naive


def import_links(lake: Lake, organization: str, path: Path, now: datetime) -> int:
    """Replace the links of an organization by those of a CSV file and return their number.

    The first line names the columns: short_code and target_url, optionally domain and created_at
    (RFC 3339; `now` where missing). Raises BadInput naming the line; then nothing was changed.
    """
    check_organization(organization)
    links = sorted(_read(path, now), key=lambda link: (link.short_code, link.domain))
    columns = [[getattr(link, name) for link in links] for name in ("short_code", "domain", "target_url", "created_at")]
    table = pa.table([[organization] * len(links), *columns], schema=LINKS)
    write_durably(table, lake.staging / f"links-{os.getpid()}.parquet", lake.links(organization))
    return len(links)


def links_of(lake: Lake, organization: str) -> list[Link]:
    """Every link of an organization, by short code and domain."""
    path = lake.links(organization)
    if not path.exists():
        return []
    rows = pq.ParquetFile(path).read(columns=list(COLUMNS)).to_pylist()
    return [Link(**row) for row in rows]


class LinkIndex:
    """Finds the short code of a target URL. What it read of a file is kept until the file changes."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: LRUCache[str, tuple[tuple[int, int], dict[str, str]]] = LRUCache(256)

    def short_code_of(self, organization: str, target_url: str) -> str | None:
        """The short code of the newest link to this URL; None when there is no such link."""
        try:
            stat = self._lake.links(organization).stat()
        except OSError:
            return None
        version = (stat.st_mtime_ns, stat.st_ino)
        cached = self._known.get(organization)
        if cached is None or cached[0] != version:
            newest_last = sorted(links_of(self._lake, organization), key=lambda link: link.created_at)
            cached = version, {normalized_url(link.target_url): link.short_code for link in newest_last}
            self._known[organization] = cached
        return cached[1].get(normalized_url(target_url))


def normalized_url(url: str) -> str:
    """A URL as it is compared: scheme and host in lower case, without default port and one trailing slash."""
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
                        f"{path}, line {rows.line_num}: {link.short_code} on this domain is in line {first} already."
                    )
                found.append(link)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} cannot be read as CSV in UTF-8: {error}.") from error
    return found


def _link(row: dict[str, str | None], line: str, now: datetime) -> Link:
    short_code, domain, target_url, created_at = ((row.get(name) or "").strip() for name in COLUMNS)
    if not _SHORT_CODE.fullmatch(short_code):
        raise BadInput(f"{line}: {short_code!r} is no short code; use 1 to 256 characters without space, /, ? or #.")
    if not target_url.lower().startswith(("http://", "https://")) or len(target_url) > 2048:
        raise BadInput(f"{line}: target_url must be an http or https address of at most 2,048 characters.")
    try:
        moment = datetime.fromisoformat(created_at) if created_at else now
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"{line}: created_at {created_at!r} is no time like 2026-11-20T10:00:00Z.") from None
    return Link(short_code, domain.lower(), target_url, moment.replace(tzinfo=None))
