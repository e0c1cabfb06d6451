"""The peak of resident memory of a program, in a process of its own."""

import subprocess
import sys
from typing import NamedTuple

from tests.support.forks import PROGRAM, without_settings

_MEASURING = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""
"""A small process between: the system counts for a program what the process had that started it."""


class Ended(NamedTuple):
    """How a program ended."""

    code: int
    err: str
    megabytes: float  # at most resident, of the program or of any process that it waited for


def measured(folder, *words):
    """Run `traffic` to its end; its output is thrown away."""
    peak, unit = folder / "peak", 1 << 20 if sys.platform == "darwin" else 1 << 10
    command = [sys.executable, "-S", "-c", _MEASURING, str(peak), str(PROGRAM), *map(str, words)]
    ended = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=without_settings()
    )
    return Ended(ended.returncode, ended.stderr, int(peak.read_text()) / unit)
