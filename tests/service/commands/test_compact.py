"""`traffic compact` beside another one and readers; what it prints is in transcripts/lake.txt."""

import re
import time
from datetime import datetime

from tests.support.lakes import numbers, paths, strays
from tests.support.visits import land, visit


def test_two_at_the_same_time_and_readers_all_come_to_an_end(lake, forks):
    days = range(1, 11)
    for number in range(3):  # a file of each day, with two visits
        rows = [visit(visited_at=datetime(2026, 3, day, 12, 0, number), path=f"/{day}-{number}") for day in days]
        land(lake, "acme", rows * 2)
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
    assert numbers(lake) == dict.fromkeys(days, 1)
    assert paths(lake) == before
    assert strays(lake) == ([], set())
