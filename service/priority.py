"""The priority of threads: what nobody waits for within milliseconds lets the event loop go first."""

import os
import sys
import threading
from typing import Final

NICENESS: Final = 10
"""Of threads that query, merge and count, above the process's own: beside the event loop one gets a tenth of a core."""


def lower_priority() -> None:
    """Let this thread, and those that it will start, go after others. Only Linux has a priority of each thread."""
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
