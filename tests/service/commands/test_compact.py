"""`traffic compact`: what it prints where, and that two of them and readers come to an end."""

import re
import time
from datetime import UTC, datetime

from data.maintenance.compaction import Compactor
from data.store.manifest import READERS_GRACE
from tests.support.lakes import numbers, paths, strays
from tests.support.visits import land, visit


def land_files(lake, days, files):
    """Land so many files of each day, with two visits in each."""
    for number in range(files):
        rows = [visit(visited_at=datetime(2026, 3, day, 12, 0, number), path=f"/{day}-{number}") for day in days]
        land(lake, "acme", rows * 2)


def test_replaced_files_are_swept_once_their_grace_is_over(lake, traffic):
    land(lake, "acme", [visit()] * 1_500)
    land(lake, "acme", [visit()])
    Compactor(lake, lambda: datetime.now(UTC) - READERS_GRACE).run()
    land(lake, "acme", [visit()] * 2)
    merged = "Merged 2 files with 1,503 visits into 1, in 1 day, 1 now judged"
    said = f"{merged}; built rollups for 1 month; deleted 2 obsolete files.\n"
    assert traffic("compact") == (0, "", said)
    assert sum(paths(lake).values()) == 1_503


def test_two_at_the_same_time_and_readers_all_come_to_an_end(lake, forks):
    land_files(lake, range(1, 11), 3)
    before = paths(lake)
    running = [forks.start("compact", "--lake", lake.root) for _ in range(2)]
    reads = 0
    while any(process.poll() is None for process in running):
        assert paths(lake) == before
        reads += 1
        time.sleep(0.02)  # leave the processor to those that merge
    told = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    merged = [int(re.search(r"Merged (\d+) files", one)[1]) for one in told]
    assert sum(merged) == 30  # each file was merged by one of them
    assert reads > 0
    assert numbers(lake) == dict.fromkeys(range(1, 11), 1)
    assert paths(lake) == before
    assert strays(lake) == ([], set())
