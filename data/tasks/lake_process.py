"""Runs a server's memory-intensive work in a separate process, which frees all its memory when it ends.

The server itself would keep some of that memory. If memory runs out, the operating system kills the separate process,
not the server.
"""

import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from data.errors import Conflict, LakeDamaged, TrafficError
from data.processes import end_without, python_path
from data.store.lake import Lake
from data.store.layout import delete_abandoned

NICENESS: Final = 5
"""The niceness that the process adds to the server's, as processes for queries do: the event loop and arriving visits
have priority."""
MAX_VISITS_IN_SERVER: Final = 50_000
"""Maximum number of visits that a server merges, counts or reads for detectors without a separate process. The server's
memory grows by 125 MB while merging 112,000 visits, and by 160 MB while counting 670,000; a process takes 0.3 s to
start."""
RETRY_SECONDS: Final = 3_600.0
"""Time after a failed call (for lack of memory, for example) during which the call fails again without a process."""
_ERRORS: Final = {error.__name__: error for error in (Conflict, LakeDamaged)}


class LakeProcess:
    """Calls one function at a time in a separate process, which another thread may end."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._running: subprocess.Popen[str] | None = None
        self._is_interrupted = False
        self._failures: dict[tuple[str, ...], tuple[float, str]] = {}
        """When and why calls failed, by function and first two arguments; the later arguments are times."""

    def run(self, work: Callable[..., None], *arguments: str) -> None:
        """Call a module-level function, in a new process, with the lake and these arguments.

        Raises the Conflict or LakeDamaged that the function raises, Conflict if `interrupt` was called, and
        TrafficError if the process fails for another reason, such as lack of memory. For RETRY_SECONDS after such a
        failure, the same call raises TrafficError without starting a process.
        """
        call = (work.__name__, *arguments[:2])
        failure = self._failures.get(call)
        if failure and time.monotonic() - failure[0] < RETRY_SECONDS:
            raise TrafficError(failure[1])
        called = [str(self._lake.root), work.__module__, work.__name__, *arguments]
        self._running = subprocess.Popen(  # noqa: S603  # this Python, and a module of ours
            [sys.executable, "-P", "-m", __name__, str(os.getpid()), *called],
            env={"PYTHONPATH": python_path()}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self._is_interrupted:  # before the process was started
            self._running.kill()
        _, written = self._running.communicate()
        delete_abandoned(self._lake.staging)
        if self._is_interrupted:
            raise Conflict(f"{work.__name__} was interrupted.")
        if code := self._running.returncode:
            name, _, message = written.strip().rpartition("\n")[2].partition(": ")
            if name in _ERRORS:
                raise _ERRORS[name](message)
            why = f": {message}" if message else ", probably out of memory"
            why = f"the process for {' '.join(call)} exited with status {code}{why}."
            self._failures[call] = time.monotonic(), why
            raise TrafficError(why)

    def interrupt(self) -> None:
        """End the process from another thread, so that it changes nothing more; later calls raise Conflict."""
        self._is_interrupted = True
        if self._running:
            self._running.kill()


def main() -> None:
    """Call a function. The command's arguments are the caller's process id, the lake, the module, the function, and the
    function's own arguments.
    """
    parent, root, module, name, *arguments = sys.argv[1:]
    threading.Thread(target=end_without, args=(int(parent),), daemon=True).start()
    os.nice(NICENESS)
    try:
        getattr(importlib.import_module(module), name)(Lake(Path(root)), *arguments)
    except TrafficError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
