"""Processes that a process starts for a piece of work."""

import os
import sys
import time


def python_path() -> str:
    """The PYTHONPATH of such a process, which finds the modules that this one finds, wherever it runs."""
    return os.pathsep.join(filter(os.path.isabs, sys.path))


def end_without(parent: int) -> None:
    """End this process, in the middle of anything, within a second after the one that started it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
