"""Measures imports compared with GoAccess: their duration, processor time and memory."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.bars import GOACCESS
from benchmarks.figures import OURS, RUNS, Figure, beside, figure
from benchmarks.made import ORGANIZATION
from benchmarks.servers import TRAFFIC
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from queries import ENTRIES, Warehouse

FEW_LINES: Final = 100
LINES: Final = 1_000_000
MANY_LINES: Final = 10_000_000


class Ran(NamedTuple):
    """Resources used by a finished program."""

    seconds: float
    processor_seconds: float  # of all cores together
    megabytes: float  # peak
    lines: list[tuple[float, str]]  # of standard error, each with the seconds after which it was written

    def seconds_until(self, text: str) -> float:
        """Return the seconds until a line with this text was written. Raises StopIteration if there is no such line."""
        return next(seconds for seconds, line in self.lines if text in line)


def importing(setting: Setting) -> Iterator[Figure]:
    """Import a million lines, compared with GoAccess, and a small log. If the largest world has at least MANY_LINES
    visits, also import that many lines once.
    """
    if not shutil.which("goaccess"):
        raise SystemExit("goaccess is missing: apt-get install goaccess, or name other cases with --only.")
    log = setting.log(LINES)
    ours, theirs = [], []
    for run in range(RUNS + 1):
        pair = _imported(log, setting.scratch / "lake", LINES), _counted(log, setting.scratch / "counted.json", LINES)
        if run:  # the first run warms up
            ours.append(pair[0])
            theirs.append(pair[1])
    samples = {OURS: [one.seconds for one in ours], GOACCESS: [one.seconds for one in theirs]}
    yield from beside("import", "s", samples, LINES)
    samples[OURS] = [one.seconds_until("imported from") for one in ours]
    yield from beside("import until visits are stored", "s", samples, LINES)
    samples = {OURS: [one.processor_seconds for one in ours], GOACCESS: [one.processor_seconds for one in theirs]}
    yield from beside("processor time of an import", "s", samples, LINES)
    yield figure("memory of an import", "MB", [one.megabytes for one in ours], LINES)
    few = _few_lines(log, setting.scratch / "few.log")
    short = [_imported(few, setting.scratch / "lake", FEW_LINES) for _ in range(RUNS)]
    yield figure("import of a small log", "s", [one.seconds for one in short], FEW_LINES)
    if max(setting.sizes) >= MANY_LINES:
        once = _imported(setting.log(MANY_LINES), setting.scratch / "lake", MANY_LINES)
        yield figure("import", "s", [once.seconds], MANY_LINES)
        yield figure("memory of an import", "MB", [once.megabytes], MANY_LINES)


def _imported(log: Path, lake: Path, lines: int) -> Ran:
    """Import a log into a new lake, and check that all of its visits can be queried there."""
    shutil.rmtree(lake, ignore_errors=True)
    command = [str(TRAFFIC), "import", str(log), "--org", ORGANIZATION, "--domain", "go.example.com"]
    taken = run([*command, "--lake", str(lake)])
    warehouse = Warehouse(Lake(lake), seconds=600)
    answer = warehouse.answer(ENTRIES["traffic-overview"], warehouse.snapshot(WHOLE))
    warehouse.close()
    assert isinstance(answer, dict)
    _check("traffic import", answer["total_visits"], lines)
    return taken


def _counted(log: Path, output: Path, lines: int) -> Ran:
    command = ["goaccess", str(log), "--log-format=COMBINED", "--no-global-config", "--no-progress", "-o", str(output)]
    taken = run(command)
    _check("goaccess", json.loads(output.read_text("utf-8"))["general"]["valid_requests"], lines)
    return taken


def _few_lines(log: Path, to: Path) -> Path:
    """Write the first lines of a log to another file."""
    with log.open(encoding="utf-8") as lines:
        to.write_text("".join(islice(lines, FEW_LINES)), "utf-8")
    return to


def _check(who: str, counted: int, lines: int) -> None:
    if counted != lines:
        raise SystemExit(f"{who} counted {counted:,} of {lines:,} lines.")


def run(command: list[str], until: str = "") -> Ran:
    """Run a program to its end, or until it writes a line that contains `until`. Raises CalledProcessError if it fails,
    or ends without such a line.
    """
    measured = [sys.executable, "-m", "benchmarks.measured", until, *command]
    return Ran(**json.loads(subprocess.run(measured, check=True, stdout=subprocess.PIPE).stdout))
