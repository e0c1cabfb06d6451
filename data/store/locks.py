"""Locks between the programs that use one lake. The system releases them when a program dies."""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data.errors import Conflict
from data.store.files import make_durably
from data.store.manifest import Manifest


class SharedManifest(Manifest):
    """The manifest of a lake, which cannot be rebuilt while it is open."""

    def __init__(
        self, path: Path, refuse_new: str, connect: Callable[[Path, Sequence[str], str], sqlite3.Connection]
    ) -> None:
        """As a Manifest; waits while the manifest is being rebuilt."""
        self._in_use: int | None = os.open(path.parent / ".staging", os.O_RDONLY)
        try:
            fcntl.flock(self._in_use, fcntl.LOCK_SH)
            super().__init__(path, refuse_new, connect)
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        """Close the database."""
        super().close()
        self._release()

    def _release(self) -> None:
        in_use, self._in_use = self._in_use, None
        if in_use is not None:
            os.close(in_use)


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Keep the lake at `root` closed to all other programs. Raises Conflict while one has it open."""
    make_durably(root / ".staging")
    with locked(root / ".staging", wait=False) as has_lock:
        if not has_lock:
            raise Conflict("another program uses the lake: stop the server, imports and followers first.")
        yield


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[bool]:
    """Lock a folder; yields whether this process has the lock."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        has_lock = True
    except BlockingIOError:
        has_lock = False
    try:
        yield has_lock
    finally:
        os.close(handle)
