"""Shares the manifest of a lake between programs, and checks that it was not replaced by an older version of itself.

The manifest counts its commits, files and batches (table `generation`). After each commit, the number of commits is
copied into the lake's file `generation`, which backups leave out. While the copy is ahead of the manifest, or the
manifest contradicts its own counts, nothing is written, since writing could destroy visits that only `traffic rebuild`
finds.
"""

import fcntl
import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from data.disk.locks import exclusive, shared
from data.errors import Conflict, OutdatedManifest
from data.manifest.database import MIGRATIONS, Connect, Database

_LOG: Final = logging.getLogger(__name__)
_MAX_UPGRADE_WAIT_SECONDS: Final = 5.0
"""Maximum time to wait until no other program has the lake open: a program that is just starting closes it soon, but a
server does not.
"""
_NUMBER_OF_CHANGES: Final = "SELECT number FROM generation"
_REMEDY: Final = "nothing is written until all programs are stopped and `traffic rebuild` is run"


class GenerationCopy:
    """The file `generation` in the lake at `root`."""

    def __init__(self, root: Path) -> None:
        self._path = root / "generation"
        self._staged = root / ".staging" / "generation"
        self._has_failed = False

    def number(self) -> int:
        """Return the number in the file; 0 if the file is missing or cannot be read."""
        with suppress(OSError):
            content = self._path.read_bytes()
            if re.fullmatch(rb"[0-9]{1,18}\n", content):
                return int(content)
        return 0

    def raise_to(self, number: int) -> None:
        """Write a number unless the file has an equal or higher one. A failure is logged; the next commit retries."""
        try:
            with self._locked():
                if self.number() < number:
                    self._staged.write_bytes(b"%d\n" % number)
                    self._staged.rename(self._path)
        except OSError as error:
            if not self._has_failed:
                _LOG.warning("%s cannot be written (%s), so an older manifest would go unnoticed.", self._path, error)
            self._has_failed = True
        else:
            self._has_failed = False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file against other writers; create it if it is missing."""
        while True:
            handle = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(handle), self._path.stat()):  # otherwise it was just replaced
                    yield
                    return
            finally:
                os.close(handle)


def generation_problem(database: Database, root: Path) -> str:
    """Return why nothing may be written into the lake at `root`, as a sentence with the remedy; "" if all is well."""
    newest = GenerationCopy(root).number()  # read first: other programs may commit before the manifest is read
    rows = database.rows(
        "SELECT number, files, batches, (SELECT count(*) FROM files), (SELECT count(*) FROM batches) FROM generation"
    )
    if len(rows) != 1 or None in rows[0]:
        return f"{root}/manifest.sqlite is damaged; {_REMEDY}."
    ((number, files, batches, files_there, batches_there),) = rows
    if (files, batches) != (files_there, batches_there):
        return (
            f"{root}/manifest.sqlite was mixed up with the manifest.sqlite-wal of another manifest: it has "
            f"{files_there:,} "
            f"files and {batches_there:,} imports instead of {files:,} and {batches:,}; {_REMEDY}."
        )
    return older_manifest_problem(number, newest, root)


def older_manifest_problem(number: int, newest: int, root: Path) -> str:
    """Return the problem if the manifest's `number` is lower than `newest`, the copy's number; "" if it is not.

    The copy's number must be read first.
    """
    if newest <= number:
        return ""
    return (
        f"{root}/manifest.sqlite is older than the files in the lake (change {number:,} of {newest:,}), "
        f"perhaps because it was restored without them; {_REMEDY}."
    )


class SharedDatabase(Database):
    """The database of a manifest that cannot be rebuilt while it is open, nor written while it is outdated."""

    def __init__(self, path: Path, refuse_new: str, connect: Connect) -> None:
        """Open the database as Database does, but wait while the manifest is being rebuilt.

        A manifest from an older version is migrated first; this raises Conflict if another program keeps the lake open.
        """
        self._root, self._copy = path.parent, GenerationCopy(path.parent)
        with ExitStack() as in_use:
            in_use.enter_context(shared(path.parent))
            if _is_older(path):
                in_use.close()
                _upgrade(path, refuse_new, connect)
                in_use.enter_context(shared(path.parent))
            super().__init__(path, refuse_new, connect)
            in_use.callback(super().close)
            self._problem = ""
            with suppress(sqlite3.DatabaseError):  # damaged; later reads report it
                self._problem = generation_problem(self, self._root)
            self._in_use = in_use.pop_all()

    def check_current(self) -> None:
        """Raise OutdatedManifest if nothing may be written."""
        newest = self._copy.number()  # read first, as in `generation_problem`
        self._check_number(self.rows(_NUMBER_OF_CHANGES), newest)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction as Database does. Raises OutdatedManifest if nothing may be written."""
        with super().transaction() as db:
            number = self._check_number(db.execute(_NUMBER_OF_CHANGES).fetchall(), self._copy.number())
            before = db.total_changes
            yield db
            has_changed = db.total_changes > before
            if has_changed:
                db.execute("UPDATE generation SET number = ?", [number + 1])
        if has_changed:
            self._copy.raise_to(number + 1)

    def _check_number(self, rows: list[tuple[Any, ...]], newest: int) -> int:
        if self._problem:
            raise OutdatedManifest(self._problem)
        number: int = rows[0][0]
        if problem := older_manifest_problem(number, newest, self._root):
            raise OutdatedManifest(problem)
        return number

    def close(self) -> None:
        """Close all connections."""
        self._in_use.close()


def _upgrade(path: Path, refuse_new: str, connect: Connect) -> None:
    """Migrate a manifest from an older version. Raises Conflict if another program keeps the lake open, since that
    program would use old SQL.
    """
    ends_at = time.monotonic() + _MAX_UPGRADE_WAIT_SECONDS
    while _is_older(path):
        try:
            with exclusive(path.parent):
                connect(path, MIGRATIONS, refuse_new).close()
        except Conflict as error:
            if time.monotonic() > ends_at:
                raise Conflict(
                    f"{path} is from an older version and cannot be upgraded while another program has the lake open: "
                    "stop the server, imports and followers of that version, then try again."
                ) from error
            time.sleep(0.05)


def _is_older(path: Path) -> bool:
    """Return whether an older version wrote a manifest; False if the manifest is missing, empty or unreadable.

    Opening the manifest deals with these cases.
    """
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        return 0 < int(version) < len(MIGRATIONS)
    return False
