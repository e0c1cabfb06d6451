"""The priority of threads: queries let the event loop go first."""

import os
import sys
import threading
from contextlib import suppress
from typing import Final

NICENESS: Final = 5
"""Of threads that query, above the process's own: beside another program's busy thread, one gets a quarter of a core.

With 10 it gets a tenth, and queries on a machine that others keep busy run into their time limit. Only for threads that
hardly hold the interpreter's lock: a thread that holds it while others have the core stops the event loop.
"""


def lower_priority() -> None:
    """Let this thread, and those that it will start, go after others.

    Only Linux has a priority of each thread; a sandbox that forbids the system call keeps them all equal.
    """
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
