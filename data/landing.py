"""How classified visits become Parquet files of the lake: staged, synced, hashed, then registered as one batch."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from data.lake import Lake, move_durably, sha256_of, write_parquet
from data.manifest import Batch, LandedFile
from data.visits import VISITS


class Landing:
    """The files of one batch on their way into the lake. Nothing of it is visible before `commit`."""

    def __init__(self, lake: Lake, organization: str) -> None:
        self.visits = 0
        self._lake = lake
        self._organization = organization
        self._staged: list[tuple[Path, date, int, bool]] = []

    def stage(self, visits: pa.Table, unfinished: bool = False) -> None:
        """Write visits, a table of `day` and the columns of VISITS sorted by day, one file for each day."""
        days = pc.run_end_encode(visits["day"].combine_chunks())
        bounds = [0, *days.run_ends.to_pylist()]
        table = visits.select(VISITS.names).cast(VISITS)
        parts = [table.slice(start, end - start) for start, end in pairwise(bounds)]
        paths = [self._lake.staging / f"{uuid.uuid4()}.parquet" for _ in parts]
        self._staged += [
            (path, day, len(part), unfinished)
            for path, day, part in zip(paths, days.values.to_pylist(), parts, strict=True)
        ]
        with ThreadPoolExecutor(2) as pool:  # the writer leaves the interpreter lock alone
            list(pool.map(write_parquet, parts, paths))
        self.visits += len(visits)

    def commit(self, batch: Batch, continues: Batch | None) -> None:
        """Make everything staged visible at once."""
        hashes = [sha256_of(path) for path, *_ in self._staged]
        self._lake.manifest.commit(batch, continues, lambda: self._place(hashes))

    def discard(self) -> None:
        """Remove what was staged."""
        for path, *_ in self._staged:
            path.unlink(missing_ok=True)

    def _place(self, hashes: Sequence[str]) -> list[LandedFile]:
        return [
            self._placed(path, day, visits, sha256, unfinished)
            for (path, day, visits, unfinished), sha256 in zip(self._staged, hashes, strict=True)
        ]

    def _placed(self, path: Path, day: date, visits: int, sha256: str, unfinished: bool) -> LandedFile:
        name = f"visits/organization={self._organization}/day={day}/{path.name}"
        move_durably(path, self._lake.root / name)
        stat = (self._lake.root / name).stat()
        return LandedFile(
            self._organization, day, name, visits, stat.st_size, sha256, stat.st_mtime_ns, stat.st_ino, unfinished
        )
