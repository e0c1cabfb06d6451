"""How classified visits become Parquet files of the lake: staged, synced, hashed, then registered as one batch."""

import secrets
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from data.store.files import move_durably, sha256_of, versioned, write_parquet
from data.store.lake import Lake
from data.store.manifest import Batch, LandedFile, Publisher
from data.visits import COLUMNS, SCHEMA_VERSION, VISITS

_STATISTICS: Final = tuple(column.name for column in COLUMNS if column.has_statistics)
MAX_PARALLEL_MOVES: Final = 8
"""Files that are moved at once: each of them only waits for the disk."""


class Staged(NamedTuple):
    """A Parquet file of one organization's day, written and synced, but not yet where it will be read."""

    path: Path
    organization: str
    day: date
    visits: int
    unfinished_of: int | None = None  # the batch whose last line, without its newline, it holds


class Landing:
    """The files of one batch on their way into the lake. Nothing of it is visible before `commit`."""

    def __init__(self, lake: Lake, organization: str) -> None:
        self.visits = 0
        self.batch = secrets.randbits(62)
        """The number that the batch will have; known before it lands."""
        self._lake = lake
        self._organization = organization
        self._staged: list[Staged] = []

    def stage(self, visits: pa.Table, unfinished: bool = False) -> None:
        """Write visits, a table of `day` and the columns of VISITS sorted by day, one file for each day."""
        days = pc.run_end_encode(visits["day"].combine_chunks())
        bounds = [0, *days.run_ends.to_pylist()]
        parts = [visits.slice(start, end - start) for start, end in pairwise(bounds)]
        new = [
            Staged(new_path(self._lake), self._organization, day, len(part), self.batch if unfinished else None)
            for day, part in zip(days.values.to_pylist(), parts, strict=True)
        ]
        self._staged += new
        with ThreadPoolExecutor(2) as pool:  # the writer leaves the interpreter lock alone
            list(pool.map(write_visits, parts, [staged.path for staged in new]))
        self.visits += len(visits)

    def publisher(self) -> Publisher:
        """Hash what is staged; what is returned moves it to where it will be read."""
        return publisher(self._lake, self._staged)

    def commit(self, batch: Batch, continues: Batch | None) -> None:
        """Make everything staged visible at once, as a batch of the number `self.batch`."""
        self._lake.manifest.commit(replace(batch, id=self.batch), continues, self.publisher())

    def advance(self, batch: Batch) -> None:
        """Make everything staged visible at once, while the batch of `self.batch` comes to stand for more of its log.

        Whoever means a batch that landed before sets `self.batch` to its number first.
        """
        self._lake.manifest.advance(replace(batch, id=self.batch), self.publisher())

    def discard(self) -> None:
        """Remove what was staged and did not come to count."""
        discard(self._lake, self._staged)


def new_path(lake: Lake) -> Path:
    """Where a file that does not count yet is written; its name is its own for good."""
    return lake.staging / f"{uuid.uuid4()}.parquet"


def write_visits(visits: pa.Table | pa.RecordBatchReader, path: Path) -> None:
    """Write the visits of one organization's day, in the order they have, and wait until they are on the disk.

    Columns are taken by name; one that was not given, as visits of an earlier schema version have it not, is null.
    """
    parts = [visits] if isinstance(visits, pa.Table) else map(_table_of, visits)
    schema = pa.schema([_keep_dictionary(field, visits.schema) for field in VISITS])
    write_parquet(
        (_with_columns(part, schema) for part in parts),
        schema,
        path,
        statistics=_STATISTICS,
        metadata=versioned(SCHEMA_VERSION),
    )


def _keep_dictionary(field: pa.Field, given: pa.Schema) -> pa.Field:
    """A field of VISITS; if its values are given as a dictionary they stay one, for that is written faster."""
    kind = given.field(field.name).type if field.name in given.names else field.type
    is_numbered = pa.types.is_dictionary(kind) and kind.value_type == field.type
    return field.with_type(kind) if is_numbered else field


def _with_columns(visits: pa.Table, schema: pa.Schema) -> pa.Table:
    names = set(visits.column_names)
    columns = [visits[field.name] if field.name in names else pa.nulls(len(visits), field.type) for field in schema]
    return pa.table(columns, schema.names).cast(schema)


def _table_of(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def publisher(lake: Lake, staged: Sequence[Staged]) -> Publisher:
    """Hash staged files; what is returned moves them to where they will be read, inside the manifest's transaction."""
    hashes = [sha256_of(file.path) for file in staged]
    return lambda: _publish_all(lake, staged, hashes)


def _publish_all(lake: Lake, staged: Sequence[Staged], hashes: Sequence[str]) -> list[LandedFile]:
    with ThreadPoolExecutor(MAX_PARALLEL_MOVES) as pool:  # waits for the disk are shared
        return list(pool.map(_publish, [lake] * len(staged), staged, hashes))


def discard(lake: Lake, staged: Sequence[Staged]) -> None:
    """Remove those of the files that the manifest does not hold, wherever they lie."""
    for file in staged:
        file.path.unlink(missing_ok=True)
        name = _name(file)
        if not lake.manifest.is_registered(name):
            (lake.root / name).unlink(missing_ok=True)


def _name(staged: Staged) -> str:
    return f"visits/organization={staged.organization}/day={staged.day}/{staged.path.name}"


def _publish(lake: Lake, staged: Staged, sha256: str) -> LandedFile:
    name = _name(staged)
    move_durably(staged.path, lake.root / name)
    stat = (lake.root / name).stat()
    return LandedFile(
        staged.organization, staged.day, name, staged.visits, stat.st_size, sha256, stat.st_ctime_ns, stat.st_ino,
        datetime.now(UTC), staged.unfinished_of,
    )  # fmt: skip
