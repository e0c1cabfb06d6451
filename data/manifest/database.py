"""Connections to a manifest's SQLite database. Its tables are declared in sql/; only this package queries them."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from data.disk.files import check_identity, identity
from data.local_time import DEFAULT_ZONE, today
from data.manifest.schema import Readers, open_database, transaction
from data.sql import read_sql

Connect = Callable[[Path, Sequence[str], str], sqlite3.Connection]
MIGRATIONS: Final = tuple(read_sql("data.manifest", f"sql/manifest_{one}") for one in (1, 2, 3, 4, 5, 6, 7))
"""The migrations of the manifest, in order. Append new ones; never change existing ones."""


class Database:
    """An open database. It is thread-safe, and several processes may open it at the same time."""

    def __init__(self, path: Path, refuse_new: str = "", connect: Connect = open_database) -> None:
        """Open or create the database with `connect`. Arguments and exceptions are the same as for open_database."""
        self.path = path
        self._connect = connect
        with ExitStack() as opened:
            self._writer = opened.enter_context(closing(connect(path, MIGRATIONS, refuse_new)))
            self._identity = identity(path)
            self._readers = Readers(self.reader)
            opened.callback(self._readers.close)
            self._opened = opened.pop_all()
        self._writing = threading.Lock()

    def reader(self) -> sqlite3.Connection:
        """Open another connection for reading; the caller must close it. Raises OSError as `transaction` does."""
        self.check_identity()
        connection = self._connect(self.path, MIGRATIONS, "")
        connection.create_function("today_in", 2, _today_in, deterministic=True)
        return connection

    def rows(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
        """Return the result of a SELECT on committed data, without waiting for writers or other readers."""
        with self._readers.borrow() as reader:
            return reader.execute(sql, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction, which is committed at the end of the context or rolled back on any error.

        Raises OSError (ESTALE) if the manifest was moved or replaced, since SQLite would keep writing to the old file.
        """
        with self.locked():
            yield self._writer

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads and processes from moving and registering files. Raises OSError as `transaction` does."""
        with self._writing, transaction(self._writer):
            self.check_identity()
            yield

    def check_identity(self) -> None:
        """Raise OSError (ESTALE) if the file was moved or replaced, since SQLite would keep using the old file."""
        check_identity(self.path, self._identity)

    def check_current(self) -> None:
        """Do nothing: only SharedDatabase checks whether the manifest is outdated."""

    def close(self) -> None:
        """Close all connections."""
        self._opened.close()


def _today_in(zone: str | None, now: str) -> str:
    """Implement the SQL function today_in(zone, now): the date in a zone (null: UTC) at an ISO 8601 time."""
    return today(zone or DEFAULT_ZONE, datetime.fromisoformat(now)).isoformat()
