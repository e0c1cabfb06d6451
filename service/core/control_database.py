"""The service's SQLite database, control.sqlite: API keys, sessions, shares, jobs and hooks, but no visits."""

import hashlib
import shutil
import sqlite3
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from data import Lake
from data.disk.files import check_identity, identity
from data.manifest.schema import Readers, create_database, transaction
from data.sql import read_sql
from service.core.threads import Arguments, Result, in_thread

CONTROL: Final = "control.sqlite"
MIGRATIONS: Final = tuple(read_sql("service.core", f"control_{number}") for number in (1, 2, 3, 4))
"""Entry n migrates version n to version n + 1; only append entries."""
READ_THREADS: Final = 4
_LOST_KEYS: Final = (
    "so its API keys, jobs and hooks are lost: restore it from a backup, or delete it and create new keys."
)


class ControlDatabase:
    """The open and migrated control.sqlite of a lake. Safe to use from several threads and processes.

    A missing database is created; if the lake was opened read-only, an empty temporary database takes its place. In a
    lake opened read-only, writes raise sqlite3.OperationalError.

    A write may wait up to a minute for another process or for the disk. A read has its own connection, so it never
    waits for writes or other reads. Both block, so an event loop awaits `read` and `write`, which run work in threads.
    Writers wait for each other, so a transaction should only read and write rows; parse and compute before it.
    """

    def __init__(self, lake: Lake) -> None:
        """Raise LakeDamaged if the database cannot be used, or if its file is empty although the lake has visits."""
        self.lake = lake
        path, staging = lake.root / CONTROL, lake.staging
        if not (lake.must_write or path.exists()):
            staging = Path(tempfile.mkdtemp(prefix="traffic-"))
            weakref.finalize(self, shutil.rmtree, staging, ignore_errors=True)
            path = staging / CONTROL
        create_database(path, staging / f"control-{uuid.uuid4()}.sqlite", MIGRATIONS)
        refuse_new = _LOST_KEYS if lake.has_visits() else ""
        with ExitStack() as opened:
            self._writer = opened.enter_context(closing(lake.open_database(path, MIGRATIONS, refuse_new)))
            if not lake.must_write:
                self._writer.execute("PRAGMA query_only = ON")
            if not lake.is_read_only:
                path.chmod(0o600)
            self._opened = path, identity(path)
            self._readers = Readers(self._open_reader)
            opened.pop_all()
        self._writing = threading.Lock()
        self._read_threads = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="control-read")
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="control-write")

    async def read(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Run read-only work in a thread; return its result."""
        return await in_thread(self._read_threads, work, *arguments)

    async def write(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Run work that changes the database, and return its result; calls run in a thread, one after another."""
        return await in_thread(self._write_thread, work, *arguments)

    def write_later(self, work: Callable[[*Arguments], object], *arguments: *Arguments) -> None:
        """Run work like `write`, but ignore its result and errors, and do not wait; for nonessential data."""
        self._write_thread.submit(work, *arguments)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; return its rows. Statements that begin with SELECT are reads.

        A write raises the same exceptions as `transaction`.
        """
        if sql.startswith("SELECT"):
            with self._readers.borrow() as reader:
                return reader.execute(sql, parameters).fetchall()
        with self._writing:
            check_identity(*self._opened)
            return self._writer.execute(sql, parameters).fetchall()

    def organizations_with_keys(self) -> set[str]:
        """Return all organizations that have or had an API key."""
        return {name for (name,) in self.rows("SELECT DISTINCT organization FROM keys")}

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction, which is committed at the end of the context, or rolled back on any error.

        Raises OSError (ESTALE) if the database was moved or replaced: SQLite would keep writing to the old file.
        """
        with self._writing, transaction(self._writer):
            check_identity(*self._opened)
            yield self._writer

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Open a read transaction, in which all statements read the same state."""
        with self._readers.borrow() as reader:
            reader.execute("BEGIN")
            try:
                yield reader
            finally:
                reader.execute("ROLLBACK")

    def _open_reader(self) -> sqlite3.Connection:
        """Open a connection for reads. Raises OSError like `transaction`, or LakeDamaged."""
        check_identity(*self._opened)
        return self.lake.open_database(self._opened[0], MIGRATIONS, "")

    def close(self) -> None:
        """Wait for the work in threads, and close the database."""
        self._read_threads.shutdown()
        self._write_thread.shutdown()
        self._readers.close()
        self._writer.close()


@contextmanager
def opened_control(lake: Path, must_write: bool = False) -> Iterator[ControlDatabase]:
    """Yield the control database of the lake at a path, opened read-only unless `must_write`; then close it."""
    opened = Lake(lake, must_write=must_write)
    with closing(opened.manifest), closing(ControlDatabase(opened)) as control:
        yield control


@contextmanager
def read_control(lake: Lake) -> Iterator[sqlite3.Connection | None]:
    """Yield a read-only connection for operators' commands, without creating anything; None if there is no database."""
    path = lake.root / CONTROL
    if not path.exists():
        yield None
        return
    with closing(lake.read_database(path)) as connection:
        yield connection


def sha256(secret: str) -> str:
    """Return the SHA-256 digest, in hexadecimal, that is stored instead of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
