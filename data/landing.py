"""How classified visits become Parquet files of the lake: staged, synced, hashed, then registered as one batch."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
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
        spans = [(day, bounds[i], bounds[i + 1]) for i, day in enumerate(days.values.to_pylist())]
        table = visits.select(VISITS.names).cast(VISITS)

        def write(span: tuple[date, int, int]) -> tuple[Path, date, int, bool]:
            day, start, end = span
            path = self._lake.staging / f"{uuid.uuid4()}.parquet"
            write_parquet(table.slice(start, end - start), path)
            return path, day, end - start, unfinished

        with ThreadPoolExecutor(2) as pool:  # the writer leaves the interpreter lock alone
            self._staged += pool.map(write, spans)
        self.visits += len(visits)

    def commit(self, batch: Batch, known: Sequence[Batch], continues: Batch | None) -> bool:
        """Make everything staged visible at once; False when another import came between (see Manifest.commit)."""
        hashes = [sha256_of(path) for path, *_ in self._staged]
        done = self._lake.manifest.commit(batch, known, continues, lambda: self._place(hashes))
        if not done:
            self.discard()
        return done

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
