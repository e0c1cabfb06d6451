"""Locks between programs that use the same lake. The operating system releases them when a program dies."""

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from data.disk.files import make_durably
from data.errors import Conflict

_LOG: Final = logging.getLogger(__name__)
NOTICE_AFTER_SECONDS: Final = 2.0
"""Time to wait for a lock before logging a warning."""


def shared(root: Path) -> AbstractContextManager[bool]:
    """Hold a shared lock on the lake at `root`, so that no program can open the lake exclusively."""
    return locked(root / ".staging", wait=True, is_shared=True)


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Hold an exclusive lock on the lake at `root`. Raises Conflict if another program has the lake open."""
    make_durably(root / ".staging")
    with locked(root / ".staging", wait=False) as has_lock:
        if not has_lock:
            raise Conflict("another program is using the lake: stop the server, imports and followers first.")
        yield


@contextmanager
def locked(folder: Path, wait: bool, *, is_shared: bool = False) -> Iterator[bool]:
    """Lock a folder; yield whether the lock was acquired. With `wait`, wait for the lock, and log a warning if that
    takes a long time.

    Several programs may hold a shared lock. Two threads of one process exclude each other like two processes.
    """
    message = "%s is locked by another program, such as an import, a merge or a rebuild; waiting until it is done."
    handle, kind = os.open(folder, os.O_RDONLY), fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        has_lock = True
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            has_lock = False
        if wait and not has_lock:
            notice = threading.Timer(NOTICE_AFTER_SECONDS, _LOG.warning, (message, folder))
            notice.daemon = True
            notice.start()
            try:
                fcntl.flock(handle, kind)
            finally:
                notice.cancel()
        yield has_lock or wait
    finally:
        os.close(handle)
