"""The process in which a server has a large day merged and judged: the memory that this needs is gone when it ends.

The server would keep some of it; and where there is not enough, the system ends this process and not the server.
"""

import os
import shutil
import subprocess
import sys
import threading
from datetime import date, datetime
from pathlib import Path
from typing import Final

from data.errors import Conflict, LakeDamaged, TrafficError
from data.maintenance.compaction import Compactor
from data.maintenance.rewriting import Partition
from data.processes import end_without
from data.store.lake import Lake

NICENESS: Final = 5
"""Above the server's own: queries go first."""
_ERRORS: Final = {error.__name__: error for error in (Conflict, LakeDamaged)}


class MergeProcess:
    """Merges and judges one day at a time in a process of its own, which another thread may end."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._running: subprocess.Popen[str] | None = None
        self._is_interrupted = False

    def merge(self, partition: Partition, now: datetime) -> None:
        """Merge and judge a past day. The caller has the lock for rewriting files of its organization.

        Raises Conflict when the day changes meanwhile or the process is interrupted, LakeDamaged for a damaged file,
        and TrafficError when the process fails otherwise, such as without memory.
        """
        asked = [str(self._lake.root), partition.organization, partition.day.isoformat(), now.isoformat()]
        self._running = subprocess.Popen(  # noqa: S603  # this Python, and a module of ours
            [sys.executable, "-P", "-m", __name__, *asked, str(os.getpid())],
            env={"PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self._is_interrupted:  # before there was a process to end
            self._running.kill()
        _, written = self._running.communicate()
        for folder in self._lake.staging.glob(f"engine-{self._running.pid}-*"):  # spilled, if it was ended
            shutil.rmtree(folder, ignore_errors=True)
        if self._is_interrupted:
            raise Conflict("the merge was interrupted.")
        if code := self._running.returncode:
            name, _, message = written.strip().rpartition("\n")[2].partition(": ")
            raise _ERRORS.get(name, TrafficError)(
                message if name in _ERRORS
                else f"{partition.day} of {partition.organization} was not merged: the process ended with {code}"
                f"{f': {message}' if message else ', probably for lack of memory'}."
            )  # fmt: skip

    def interrupt(self) -> None:
        """End the process, from another thread. It changes nothing then."""
        self._is_interrupted = True
        if self._running:
            self._running.kill()


def main() -> None:
    """Merge and judge the day that the arguments name: lake, organization, day, the time now, the process that asks."""
    root, organization, day, now, parent = sys.argv[1:]
    threading.Thread(target=end_without, args=(int(parent),), daemon=True).start()
    os.nice(NICENESS)
    compactor = Compactor(Lake(Path(root)), lambda: datetime.fromisoformat(now))
    try:
        compactor.merge_day(Partition(organization, date.fromisoformat(day)))
    except TrafficError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
