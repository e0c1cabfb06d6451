"""Processes that a process starts for a piece of work."""

import os
import time


def end_without(parent: int) -> None:
    """End this process, in the middle of anything, within a second after the one that started it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
