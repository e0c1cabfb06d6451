"""The random salt of each UTC day, under which client addresses become visitor hashes.

Salts live in a file of their own, readable by its owner only, shared by concurrent writers and left
out of backups. A salt is deleted 48 hours after it was made: from then on nobody can link that day's
hashes to addresses, and a day imported once more counts its visitors anew.
"""

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path

LIFETIME = timedelta(hours=48)


def daily_salts(path: Path, days: Iterable[date], now: datetime) -> dict[date, str]:
    """The salt of every one of `days`, 64 hexadecimal digits each, made now where there is none.

    `now` is an aware UTC time. Salts older than 48 hours are deleted first.
    """
    with _open(path) as db:
        db.execute("BEGIN IMMEDIATE")
        _delete_old(db, now)
        wanted = sorted({day.isoformat() for day in days})
        db.executemany(
            "INSERT OR IGNORE INTO salts VALUES (?, ?, ?)",
            [(day, secrets.token_hex(32), now.timestamp()) for day in wanted],
        )
        rows = dict(db.execute("SELECT day, salt FROM salts").fetchall())
        db.execute("COMMIT")
    return {date.fromisoformat(day): rows[day] for day in wanted}


def visitor_hash(salt: str, organization: str, address: str, user_agent: str) -> int:
    """The hash that stands for a visitor: the first 64 bits of SHA-256.

    For one request; sql/visitor_hashes.sql computes the same for the requests of a block.
    """
    digest = hashlib.sha256("\0".join((salt, organization, address, user_agent)).encode()).digest()
    return int.from_bytes(digest[:8])


def delete_old_salts(path: Path, now: datetime) -> None:
    """Delete the salts that are older than 48 hours, from the table and from the file's bytes."""
    with _open(path) as db:
        _delete_old(db, now)


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete = ON")
        db.execute(
            "CREATE TABLE IF NOT EXISTS salts (day TEXT PRIMARY KEY, salt TEXT NOT NULL, created_at REAL NOT NULL)"
        )
        yield db


def _delete_old(db: sqlite3.Connection, now: datetime) -> None:
    db.execute("DELETE FROM salts WHERE created_at < ?", [(now - LIFETIME).timestamp()])
