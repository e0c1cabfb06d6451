"""Which logs were imported. A log is known by its organization and its content, whatever its name and its domain."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple, replace

from data.errors import BadInput, Conflict
from data.hosts import normalized_host
from data.manifest.arrivals import Arrivals, note_arrivals


class ObjectVersion(NamedTuple):
    """A version of a log object."""

    bucket: str  # s3://bucket, or file:// for a file of a drop folder
    key: str
    etag: str  # another one for each content of the key


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """One import of the content of a log of an organization, as the manifest has it, and the footers of its files.

    Of an import's files, only the footer of the last one has more than id and content. Times are as format_time writes.
    """

    id: int  # 0: its landing has not given it one yet
    domain: str = ""  # as --domain gave it; "": the import was given none
    sha256: str = ""  # of the decompressed content
    size: int = 0  # its length
    whole_size: int = 0  # its length up to the end of the last finished line
    visits: int = 0
    log_format: str = ""
    imported_at: str = ""  # "": whether the import was finished is recorded in its last file
    first_at: str = ""  # the time of its first visit, and of its last; "": it has none
    last_at: str = ""
    object: ObjectVersion | None = None  # whose content it is, in a bucket or drop folder; not of one from the manifest


def longest(prefixes: Iterable[Batch], size: int, domain: str) -> Batch | None:
    """The import that a content of `size` bytes goes on from, of all imports of its prefixes; None if it is new.

    Of equally long ones, the one with this domain. Without any visits, as of a header that many files begin with, only
    an import of the whole content counts, and it has no domain.
    """
    ascending = sorted(prefixes, key=lambda batch: (batch.size, batch.domain == domain))
    if any(batch.visits for batch in ascending):
        return ascending[-1]
    return replace(ascending[-1], domain="") if ascending and ascending[-1].size == size else None


def check_domain(name: object, before: Batch | None, domain: str) -> None:
    """Raise BadInput when a log, called `name` in the message, was begun with another domain than `domain`.

    A log that was begun without a domain may go on with one.
    """
    if before and before.domain and _normal(before.domain) != _normal(domain):
        raise BadInput(
            f"{name} was imported with --domain {before.domain}, and a log counts once; import it with the same."
        )


def _normal(domain: str) -> str:
    return normalized_host(domain) or domain


def batch_of(row: tuple[Any, ...]) -> Batch:
    """The batch of a row of the table."""
    key, _organization, *columns = row
    return Batch(key, *columns)


def put_batch(db: sqlite3.Connection, organization: str, batch: Batch, arrived: Arrivals | None) -> None:
    """Register a new batch, or extend the one of its id to a longer content of the same log.

    Of a registered one, `visits` counts the new visits. With it come what arrived, if its source goes on, and the
    object that it landed.
    The caller has begun a transaction. Raises sqlite3.IntegrityError for a content that is already registered, Conflict
    if that has another domain.
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
        raise Conflict(f"another process imported this log with {named} in the meantime; nothing was changed.")
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
    """Record which batches landed the contents of objects. The caller has begun a transaction."""
    db.executemany(
        "INSERT OR IGNORE INTO objects (organization, bucket, key, etag, batch) VALUES (?, ?, ?, ?, ?)",
        [(organization, *version, batch) for version, batch in read],
    )
