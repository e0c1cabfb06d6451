"""Two programs on one lake: the first is stopped halfway, the second waits for the lock, and both finish correctly.

Without the lock, each pair of programs ends with a wrong result or an error.
"""

import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from data.ingest.importer import Importer, Options
from tests.faults.lakes import assert_sound, batches, log
from tests.faults.victims import INTO, nothing
from tests.support.forks import PAUSE_SECONDS
from tests.support.lakes import opened
from tests.support.visits import land, visit

ERASE = ("traffic", "erase", "--org", "acme", "--domain", "go.example", "--yes", "--lake", "lake")
COMPACT = ("traffic", "compact", "--lake", "lake")


class Pair(NamedTuple):
    """A program that is stopped when it syncs its first new file, and a second program that is started then."""

    prepare: Callable[[Path], None]
    first: tuple[str, ...]
    second: tuple[str, ...]
    visits: dict[str, int]
    """The number of visits in each batch at the end."""
    codes: tuple[int, int] = (0, 0)


def copy_of_a_log(folder):
    """Prepare a log and a later, longer copy of it."""
    nothing(folder)
    (folder / "a.log").write_text(log("a", 4, days=1))
    (folder / "later.log").write_text(log("a", 8, days=1))


def two_domains(folder):
    """Prepare two files of one day, each with a visit to erase and a visit to keep, and a log with visits to erase."""
    (folder / "a.log").write_text(log("a", 4, days=1))
    with opened(folder / "lake", create=True) as lake:
        for part in range(2):
            goes, stays = visit(path=f"/goes/{part}", domain="go.example"), visit(path=f"/stays/{part}", domain=None)
            land(lake, "acme", [goes, stays])


def half_a_line(folder):
    """Prepare a one-day log that was imported with an unfinished fourth line and has grown since."""
    (folder / "a.log").write_text(log("a", 4, days=1)[:-20])
    with opened(folder / "lake", create=True) as lake:
        Importer(lake).run(folder / "a.log", Options("acme"))
    (folder / "a.log").write_text(log("a", 6, days=1))


def log_in_a_drop(folder):
    """Prepare a folder with a log that is old enough to be read."""
    nothing(folder)
    (folder / "drop").mkdir()
    (folder / "drop" / "a.log").write_text(log("a", 4, days=1))
    os.utime(folder / "drop" / "a.log", (1, 1))


PAIRS = {
    "import, import of a longer copy": Pair(
        copy_of_a_log, ("traffic", "import", "a.log", *INTO), ("traffic", "import", "later.log", *INTO), {"a": 8}
    ),
    "follow, import of a longer copy": Pair(
        copy_of_a_log, ("follow", "lake", "a.log", "go.example"), ("traffic", "import", "later.log", *INTO), {"a": 8}
    ),
    "import, erase": Pair(two_domains, ("traffic", "import", "a.log", *INTO), ERASE, {"stays": 2}),
    "import, zone set": Pair(
        copy_of_a_log,
        ("traffic", "import", "a.log", *INTO),
        ("traffic", "zone", "set", "Europe/Berlin", "--org", "acme", "--lake", "lake"),
        {"a": 4},
        (0, 2),
    ),
    "erase, compact": Pair(two_domains, ERASE, COMPACT, {"stays": 2}),
    "import of the rest of a line, retain": Pair(
        half_a_line,
        ("traffic", "import", "a.log", *INTO),
        ("traffic", "retain", "--days", "100", "--yes", "--trust-clock", "--lake", "lake"),
        {},
    ),
    "follow of a folder, follow of a folder": Pair(
        log_in_a_drop,
        ("traffic", "follow", "drop", "--once", *INTO),
        ("traffic", "follow", "drop", "--once", *INTO),
        {"a": 4},
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_second_program_waits_for_the_first(pair, program, traceable, tmp_path):
    folder, undisturbed = tmp_path / "a", tmp_path / "undisturbed"
    folder.mkdir()
    pair.prepare(folder)
    shutil.copytree(folder, undisturbed)
    synced = [call for call in program.trace(undisturbed, "in_order", *pair.first).calls if call.name == "fsync"]
    written = next(call for call in synced if re.search(r"\.staging/.*\.parquet>", call.text))
    with program.stopped(folder, written, "in_order", *pair.first) as first:
        second = program.start(folder, "in_order", *pair.second)
        while second.runs() and f"-> FLOCK  ADVISORY  WRITE {second.process} " not in locks():
            time.sleep(PAUSE_SECONDS)
        first.kill(signal.SIGCONT)
        runs = first.wait(), second.wait()
    assert [run.code for run in runs] == [*pair.codes], runs
    with opened(folder / "lake") as lake:
        assert batches(lake) == pair.visits
        assert_sound(lake)


def locks():
    return Path("/proc/locks").read_text()
