"""The imported logs. A log is identified by its organization and content, not by its name or domain."""

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple, replace

from data.errors import BadInput, Conflict
from data.hosts import normalized_host
from data.manifest.arrivals import Arrivals, note_arrivals
from data.manifest.database import Database


class ObjectVersion(NamedTuple):
    """A version of a log object."""

    bucket: str  # s3://bucket, or file:// for a file in a drop folder
    key: str
    etag: str  # differs if the key's content differs


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """An import of a log's content for one organization, as recorded in the manifest and in the footers of its files.

    Only the footer of an import's last file has more than the id and the content. Times are in format_time's format.
    """

    id: int  # 0: not yet assigned
    domain: str = ""  # the value of --domain; "": none was given
    sha256: str = ""  # of the decompressed content
    size: int = 0  # its length
    whole_size: int = 0  # its length up to the end of the last finished line
    visits: int = 0
    log_format: str = ""
    imported_at: str = ""  # "" in the footers of all files but the last, which alone records the end of the import
    first_at: str = ""  # the times of its first and last visit; "": it has no visits
    last_at: str = ""
    object: ObjectVersion | None = None  # source of the content, in a bucket or drop folder; not read back


def continued_batch(prefixes: Iterable[Batch], size: int, domain: str) -> Batch | None:
    """Return the import that content of `size` bytes continues; None if the content is new.

    This is the longest of `prefixes`, the imports of the content's beginnings; if several are equally long, an import
    with this domain is preferred. If no import has visits (the content may be only a header that many files share),
    only an import of the whole content counts, and it is returned without its domain.
    """
    ascending = sorted(prefixes, key=lambda batch: (batch.size, batch.domain == domain))
    if any(batch.visits for batch in ascending):
        return ascending[-1]
    return replace(ascending[-1], domain="") if ascending and ascending[-1].size == size else None


def check_domain(name: object, before: Batch | None, domain: str) -> None:
    """Raise BadInput if a log, called `name` in the message, was first imported with a domain other than `domain`.

    A log that was first imported without a domain may be continued with any domain.
    """
    if before and before.domain and _normal(before.domain) != _normal(domain):
        raise BadInput(
            f"{name} was imported with --domain {before.domain}, and a log counts only once; use the same domain."
        )


def _normal(domain: str) -> str:
    return normalized_host(domain) or domain


_LONGER: Final = "SELECT * FROM batches NOT INDEXED WHERE organization = ? AND bytes > ? AND bytes <= ? \
AND whole_bytes >= ?"
"""This query runs for each block. With an index, it would take 0.27 s instead of 0.02 s for 200,000 imports."""


class Logs:
    """The imports of logs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def batches(self, organization: str, domain: str | None = None) -> list[Batch]:
        """Return all imports of an organization or, with `domain`, those for that domain; longest content first."""
        rows = self._database.rows(
            "SELECT * FROM batches WHERE organization = ? AND domain = coalesce(?, domain) ORDER BY bytes DESC",
            [organization, domain],
        )
        return [batch_of(row) for row in rows]

    def batches_by_id(self, ids: Iterable[int]) -> list[Batch]:
        """Return the imports with these ids."""
        rows = self._database.rows(
            "SELECT * FROM batches WHERE id IN (SELECT value FROM json_each(?))", [json.dumps([*ids])]
        )
        return [batch_of(row) for row in rows]

    def longer(self, organization: str, landed: int, size: int, offset: int) -> list[Batch]:
        """Return the imports of more than `landed` and at most `size` bytes that have whole lines up to `offset` or
        beyond.
        """
        return [batch_of(row) for row in self._database.rows(_LONGER, [organization, landed, size, offset])]

    def is_registered(self, batch: Batch) -> bool:
        """Return whether an import is registered with exactly this content."""
        content = [batch.id, batch.sha256, batch.size]
        return bool(self._database.rows("SELECT 1 FROM batches WHERE id = ? AND sha256 = ? AND bytes = ?", content))

    def times(self, batch: int) -> list[tuple[str, str]]:
        """Return one row with the times of an import's first and last visits; no row if it is not registered."""
        rows = self._database.rows("SELECT first_at, last_at FROM batches WHERE id = ?", [batch])
        return [(first_at, last_at) for first_at, last_at in rows]


def skip_rest(db: sqlite3.Connection, batches: Iterable[int]) -> None:
    """Skip the rest of each import's unfinished last line, so that no later import lands it.

    The caller must have begun a transaction.
    """
    db.executemany("UPDATE batches SET whole_bytes = bytes WHERE id = ?", [(batch,) for batch in batches])


def batch_of(row: tuple[Any, ...]) -> Batch:
    """Return the batch from a row of the table `batches`."""
    key, _organization, *columns = row
    return Batch(key, *columns)


def put_batch(db: sqlite3.Connection, organization: str, batch: Batch, arrived: Arrivals | None) -> None:
    """Register a new batch, or extend the batch with its id to longer content of the same log.

    When a batch is extended, `visits` is the number added. This also records arrivals from a continuous source, and the
    object that the content was read from. The caller must have begun a transaction. Raises sqlite3.IntegrityError if
    the content is already registered, or Conflict if it is registered with another domain.
    """
    if arrived:
        note_arrivals(db, organization, arrived, datetime.fromisoformat(batch.imported_at))
    other = db.execute(
        "SELECT domain FROM batches "
        "WHERE organization = ? AND sha256 = ? AND domain <> ? AND visits > 0 AND id IS NOT ?",
        [organization, batch.sha256, batch.domain, batch.id],
    ).fetchone()
    if other:
        (domain,) = other
        named = f"--domain {domain}" if domain else "no domain"
        raise Conflict(f"another process has since imported this log with {named}; nothing was changed.")
    key, *columns, version = astuple(batch)
    db.execute(
        "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "domain = excluded.domain, sha256 = excluded.sha256, bytes = excluded.bytes, "
        "whole_bytes = excluded.whole_bytes, visits = visits + excluded.visits, log_format = excluded.log_format, "
        "imported_at = excluded.imported_at, first_at = excluded.first_at, last_at = excluded.last_at",
        [key, organization, *columns],
    )
    if version:
        insert_objects(db, organization, [(version, key)])


def insert_objects(db: sqlite3.Connection, organization: str, read: Iterable[tuple[ObjectVersion, int]]) -> None:
    """Record which batches landed the contents of objects. The caller must have begun a transaction."""
    db.executemany(
        "INSERT OR IGNORE INTO objects (organization, bucket, key, etag, batch) VALUES (?, ?, ?, ?, ?)",
        [(organization, *version, batch) for version, batch in read],
    )
