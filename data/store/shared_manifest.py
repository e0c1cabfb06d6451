"""The manifest of a lake, which several programs read and write."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from data.errors import OutdatedManifest
from data.store.generation import GenerationCopy, behind, outdated
from data.store.locks import shared
from data.store.manifest import Connect, Manifest

_NUMBER: Final = "SELECT number FROM generation"


class SharedManifest(Manifest):
    """A manifest that cannot be rebuilt while it is open, and that is not written if it is an older one."""

    def __init__(self, path: Path, refuse_new: str, connect: Connect) -> None:
        """As a Manifest; waits while the manifest is being rebuilt."""
        self._in_use: int | None = shared(path.parent)
        self._root, self._copy = path.parent, GenerationCopy(path.parent)
        try:
            super().__init__(path, refuse_new, connect)
            self._problem = ""
            with suppress(sqlite3.DatabaseError):  # it is damaged, which whoever needs more of it finds out
                self._problem = outdated(self, self._root)
        except BaseException:
            self._release()
            raise

    def check_current(self) -> None:
        """Raise OutdatedManifest if nothing may be written."""
        newest = self._copy.number()  # read first, as in `outdated`
        self._check_number(self.rows(_NUMBER), newest)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """As of a Manifest. Raises OutdatedManifest if nothing may be written."""
        with super().transaction() as db:
            number = self._check_number(db.execute(_NUMBER).fetchall(), self._copy.number())
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
        if problem := behind(number, newest, self._root):
            raise OutdatedManifest(problem)
        return number

    def close(self) -> None:
        """Close the database."""
        super().close()
        self._release()

    def _release(self) -> None:
        in_use, self._in_use = self._in_use, None
        if in_use is not None:
            os.close(in_use)
