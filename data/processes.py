"""Utilities for helper processes: their module search path, and their exit once the parent process has ended."""

import os
import sys
import time
from collections.abc import Callable


def python_path() -> str:
    """Return a PYTHONPATH that lets a helper process in any folder import the same modules as this process."""
    return os.pathsep.join(filter(os.path.isabs, sys.path))


def end_without(parent: int, clean_up: Callable[[], None] = lambda: None) -> None:
    """Wait until the parent process, with the id `parent`, has ended; then call `clean_up` and exit with status 1.

    The parent is checked once per second. The exit does not wait for other threads.
    """
    while os.getppid() == parent:
        time.sleep(1)
    clean_up()
    os._exit(1)
