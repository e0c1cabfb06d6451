"""Memory peaks: the resident memory of a program in its own process, and Python's allocations during some work."""

import subprocess
import sys
import tracemalloc
from typing import NamedTuple

from tests.support.forks import PROGRAM, without_settings

_MEASURING = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""
"""A small process between the tests and the program: the system counts a parent's memory for its child, too."""


class Ended(NamedTuple):
    """The result of a program that has ended."""

    code: int
    err: str
    megabytes: float  # peak resident memory of the program or of any process that it waited for


def measured(folder, *words):
    """Run `traffic` until it ends, and return its result without its output on stdout."""
    peak, unit = folder / "peak", 1 << 20 if sys.platform == "darwin" else 1 << 10
    command = [sys.executable, "-S", "-c", _MEASURING, str(peak), str(PROGRAM), *map(str, words)]
    ended = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=without_settings()
    )
    return Ended(ended.returncode, ended.stderr, int(peak.read_text()) / unit)


def traced_peak(work, times=3):
    """Return Python's peak memory during some work: the minimum of several runs, since other threads count, too."""
    peaks = []
    for _ in range(times):
        tracemalloc.start()
        try:
            work()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
