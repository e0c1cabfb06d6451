"""Measures judging: the time that it adds to the merge of a day, and its memory for a very large day."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.bars import ALONE
from benchmarks.figures import OURS, RUNS, Figure, beside, figure
from benchmarks.importing import LINES, run
from benchmarks.live import DOMAIN
from benchmarks.made import LAST_DAY, ORGANIZATION
from benchmarks.made.lakes import settle_copy
from benchmarks.servers import TRAFFIC
from benchmarks.worlds import Setting
from data import Lake
from data.ingest.importer import Importer, Options
from data.tasks.compaction import Compactor

FILES: Final = 16
"""Number of files for a day: enough for merges even while the day is open."""
LARGE_DAY: Final = 13_900_000
NOON: Final = datetime(LAST_DAY.year, LAST_DAY.month, LAST_DAY.day, 12, tzinfo=UTC)
_DATE: Final = re.compile(r"\[\d\d/\w{3}/\d{4}:")


def judging(setting: Setting, lines: int = LINES, large: int = LARGE_DAY) -> Iterator[Figure]:
    """Compare merging a day's files as on an open day with merging and judging them as on a past day. If the largest
    world has at least `large` visits, also measure the memory of judging a day with that many.
    """
    day = _lake_of_a_day(setting, lines)
    samples: dict[str, list[float]] = {OURS: [], ALONE: []}
    for _ in range(RUNS):
        samples[ALONE].append(_merged(setting, day, NOON))
        samples[OURS].append(_merged(setting, day, NOON + timedelta(days=1)))
    yield from beside("merge of a day with its judging", "s", samples, lines)
    if max(setting.sizes) >= large:
        taken = run([str(TRAFFIC), "compact", "--lake", str(_lake_of_a_day(setting, large))])
        yield figure("memory of judging a day", "MB", [taken.megabytes], large)


def _merged(setting: Setting, day: Path, now: datetime) -> float:
    """Return the seconds that merging a copy of a lake takes at a given time."""
    copy = setting.scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(day, copy)
    lake = Lake(copy)
    settle_copy(lake)
    with closing(lake.manifest):
        started_at = time.perf_counter()
        done = Compactor(lake, lambda: now).run()
        seconds = time.perf_counter() - started_at
    assert (done.files_before, done.files_after) == (FILES, 1)
    return seconds


def _lake_of_a_day(setting: Setting, lines: int) -> Path:
    """Create a lake with the lines of a log in several files, all with the same date."""
    root, piece = setting.scratch / f"day-{lines}", setting.scratch / "piece.log"
    lake = Lake(root, create=True)
    importer = Importer(lake)
    with setting.log(lines).open(encoding="utf-8") as log:
        for number in range(FILES):
            size = lines // FILES + (number < lines % FILES)
            with piece.open("w", encoding="utf-8") as written:
                written.writelines(_DATE.sub(f"[{NOON:%d/%b/%Y}:", line) for line in islice(log, size))
            importer.run(piece, Options(ORGANIZATION, DOMAIN))
    lake.manifest.close()
    return root
