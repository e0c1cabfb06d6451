"""Processes that a process starts for a piece of work."""

import os
import sys
import time
from collections.abc import Callable


def python_path() -> str:
    """The PYTHONPATH of such a process, which finds the modules that this one finds, wherever it runs."""
    return os.pathsep.join(filter(os.path.isabs, sys.path))


def end_without(parent: int, clean_up: Callable[[], None] = lambda: None) -> None:
    """End this process, in the middle of anything, within a second after the one that started it; clean up first."""
    while os.getppid() == parent:
        time.sleep(1)
    clean_up()
    os._exit(1)
