"""Visitor hashes, and the random salts that they depend on: one for each zone and day.

Salts are stored in a separate file, readable only by its owner, shared by concurrent writers and left out of backups.
A salt is deleted 48 hours after its creation, or if its creation time is in the future because the clock was wrong.
After that, hashes of its day cannot be linked to addresses, and later imports of that day count its visitors as new.
"""

import hashlib
import secrets
import sqlite3
import sys
import uuid
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa

from data.errors import LakeDamaged
from data.local_time import DEFAULT_ZONE
from data.manifest.clock import TOLERANCE
from data.manifest.schema import create_database
from data.sql import read_sql

LIFETIME = timedelta(hours=48)
_BATCH: Final = 4096
"""Number of visitors hashed at a time: a batch fits into the processor's cache, which saves a third of the time."""
_SALTS_ARE_LOST: Final = "so its salts are lost: delete the file; visitors from the last 48 hours will count as new."
_TABLE: Final = read_sql("data.ingest", "sql/salts")


def daily_salts(path: Path, days: Iterable[date], now: datetime, zone: str = DEFAULT_ZONE) -> dict[date, str]:
    """Return the salt for each day in a zone, as 64 hexadecimal digits; create missing salts.

    `now` is a timezone-aware UTC time. Salts older than 48 hours are deleted first. Raises LakeDamaged.
    """
    with _open(path) as db:
        db.execute("BEGIN IMMEDIATE")
        _delete_old(db, now)
        wanted = sorted({day.isoformat() for day in days})
        db.executemany(
            "INSERT OR IGNORE INTO salts VALUES (?, ?, ?, ?)",
            [(zone, day, secrets.token_hex(32), now.timestamp()) for day in wanted],
        )
        rows = dict(db.execute("SELECT day, salt FROM salts WHERE zone = ?", [zone]).fetchall())
        db.execute("COMMIT")
    return {date.fromisoformat(day): rows[day] for day in wanted}


def visitor_hash(salt: str, organization: str, address: str, user_agent: str) -> int:
    """Return the hash that identifies a visitor: the first 64 bits of a SHA-256, signed. See also `visitor_hashes`."""
    digest = hashlib.sha256("\0".join((salt, organization, address, user_agent)).encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def visitor_hashes(salts: Sequence[str], organization: str, days: pa.Array, clients: pa.Array) -> pa.Int64Array:
    """Return each visitor's hash. `days` are indices into `salts`; `clients` are address, NUL and user agent, never
    null.

    OpenSSL uses the processor's SHA instructions, and the prefix shared by a day's visitors is hashed once, so this
    takes half the time of DuckDB's sha256.
    """
    begun = [hashlib.sha256(f"{salt}\0{organization}\0".encode()).copy for salt in salts]
    digests = bytearray()
    for at in range(0, len(clients), _BATCH):
        batch = zip(days.slice(at, _BATCH).to_pylist(), clients.slice(at, _BATCH).to_pylist(), strict=True)
        for day, client in batch:
            digest = begun[day]()
            digest.update(client)
            digests += digest.digest()
    hashes = array("q", digests)[::4]  # the first of the four words of each digest
    if sys.byteorder == "little":
        hashes.byteswap()
    return pa.Int64Array.from_buffers(pa.int64(), len(hashes), [None, pa.py_buffer(hashes)])


def delete_old_salts(path: Path, now: datetime) -> None:
    """Delete salts older than 48 hours from the table and overwrite their bytes in the file. Raises LakeDamaged."""
    with _open(path) as db:
        _delete_old(db, now)


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """Open or create the salt database. Raises LakeDamaged if it is empty or not a database."""
    staging = path.with_name(".staging")
    staging.mkdir(exist_ok=True)
    create_database(path, staging / f"salts-{uuid.uuid4()}.sqlite", [_TABLE])
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA secure_delete = ON")
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'salts'").fetchone():
                raise LakeDamaged(f"{path} is empty, {_SALTS_ARE_LOST}")
            yield db
        except sqlite3.OperationalError:  # a full or failing disk
            raise
        except sqlite3.DatabaseError as error:
            raise LakeDamaged(f"{path} cannot be used ({error}), {_SALTS_ARE_LOST}") from error


def _delete_old(db: sqlite3.Connection, now: datetime) -> None:
    bounds = [(now - LIFETIME).timestamp(), (now + TOLERANCE).timestamp()]
    db.execute("DELETE FROM salts WHERE created_at NOT BETWEEN ? AND ?", bounds)
