"""Writes visits into Parquet files in the lake: stages, syncs and hashes the files, then registers them as one
batch.
"""

import secrets
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, date, datetime
from functools import reduce
from itertools import pairwise
from operator import or_
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from data.disk.files import move_durably, sha256_of, write_parquet
from data.manifest.arrivals import Arrivals, hours_of
from data.manifest.clock import format_time
from data.manifest.coverage import span
from data.manifest.files import LandedFile, Move
from data.manifest.logs import Batch
from data.rules.exclusions import NONE_EXCLUDED, ExcludedVisits, Exclusion
from data.signals import FACTS, NETWORKS
from data.store.footers import Footer, PendingRange, footer_of, readable_visit_file, replacing_footer
from data.store.lake import Lake
from data.visits import COLUMNS, VISITS

_STATISTICS: Final = tuple(column.name for column in COLUMNS if column.has_statistics)
MAX_PARALLEL_MOVES: Final = 8
"""Maximum number of files moved in parallel. Moving only waits for the disk."""


class StagedFile(NamedTuple):
    """A Parquet file for one day of an organization, written and synced, but not yet moved to its final path."""

    path: Path
    organization: str
    day: date
    visits: int
    unfinished_of: int | None = None  # the batch of the unfinished last line (without a newline) that it contains
    name: str = ""  # name of the file at its final path, without suffix; "": the same as in the staging folder
    behaviour_version: int = 0  # as in LandedFile
    facts: int = 0  # as in LandedFile
    is_overwriting: bool = False  # it will overwrite a file with this name that the manifest does not list


class Landing:
    """The files of one batch that is being written. They become visible with `commit`."""

    def __init__(self, lake: Lake, organization: str, content: str = "", pending: PendingRange | None = None) -> None:
        """Begin an empty batch. `content` identifies the visits to land, for example by a log's SHA-256, so that their
        files always get the same names.

        After an interrupted landing, the next attempt thus overwrites the files of that landing. It overwrites no other
        unregistered file with the same name, since an older manifest may have been restored.
        `pending` is the range of pending rows to be moved.
        """
        self.visits = 0
        self.counts_hours = pending is not None
        """True if `arrived` is filled, as for reported visits and for visits landed by a follower."""
        self.batch = secrets.randbits(62)  # the id of the batch, chosen before it is committed
        self._lake = lake
        self.organization = organization
        self._content = content
        self._pending = pending
        self.zone = lake.manifest.organizations.zone(organization)
        """The time zone in which the visits are dated; a commit fails if the zone has changed since."""
        self._staged: list[StagedFile] = []
        self._last_part: pa.Table | None = None  # not written yet: its footer records the whole batch
        self._span = "", ""  # the times of the first and the last visit
        self.arrived = Counter[int]()
        """The number of staged visits by hour, without the visit from an unfinished line, which will land again."""
        self._excluded = Counter[Exclusion]()  # also without the visit from an unfinished line

    def stage(self, visits: pa.Table, unfinished: bool = False, excluded: ExcludedVisits = NONE_EXCLUDED) -> None:
        """Write a table with the schema VISITS_OF_DAYS, sorted by day, into one file for each day; `commit` or
        `prepare_move` writes the last file.

        `unfinished` means that the visit is from an unfinished last line. `excluded` is the number of visits that each
        of the owner's rules sets aside.
        """
        if not len(visits):
            return
        if not unfinished:
            self._excluded.update(excluded)
        times = pc.min_max(visits["visited_at"]).as_py()
        first_at, last_at = (format_time(times[name].replace(tzinfo=UTC)) for name in ("min", "max"))
        self._span = span(self._span, (first_at, last_at))
        if self.counts_hours and not unfinished:
            self.arrived.update(hours_of(visits))
        days = pc.run_end_encode(visits["day"].combine_chunks())
        bounds = [0, *days.run_ends.to_pylist()]
        parts = [visits.slice(start, end - start) for start, end in pairwise(bounds)]
        written = [] if self._last_part is None else [(self._staged[-1], self._last_part)]
        for day, part in zip(days.values.to_pylist(), parts, strict=True):
            self._add(day, len(part), self.batch if unfinished else None, _facts(part))
            written.append((self._staged[-1], part))
        _, self._last_part = written.pop()
        content = Batch(self.batch, sha256=self._content)
        footers = [self._footer(staged, [content]) for staged, _ in written]
        with ThreadPoolExecutor(2) as pool:  # the Parquet writer releases the interpreter lock
            list(pool.map(lambda part, footer: write_visits(part[1], part[0].path, footer), written, footers))
        self.visits += len(visits)

    def commit(self, batch: Batch, continues: Batch | None, arrived: Arrivals | None = None) -> Batch:
        """Make all staged files visible together, as the batch with the id `self.batch`, and return the batch.

        The batch is new unless the caller, before staging, has set `self.batch` to the id of an earlier batch to
        extend. `continues` is the batch that imported the beginning of the same content, if any; the visit from its
        unfinished last line is replaced. `arrived` counts the new visits by hour, if the source is continuous.
        Raises the exceptions of `Manifest.land`.
        """
        before = self._lake.manifest.logs.times(continues.id) if continues else []
        first_at, last_at = span(self._span, *before)
        batch = replace(batch, id=self.batch, first_at=first_at, last_at=last_at)
        has_line = continues and self._lake.manifest.files.with_unfinished_line(continues.id)
        # if the line's file were rewritten in the meantime, a rebuild would keep that newer file instead of the landed
        # file
        with self._lake.rewrite_lock(organization=self.organization) if has_line else nullcontext():
            unfinished = self._lake.manifest.files.with_unfinished_line(continues.id) if continues else []
            if unfinished and not self._staged:  # record that these files were removed without a replacement
                self._add(unfinished[-1].day, 0, None)
                self._last_part = VISITS.empty_table()
            move = self._prepare_move(batch, unfinished)
            self._lake.manifest.land(
                self.organization, batch, continues, move, zone=self.zone, arrived=arrived, excluded=self._excluded
            )
        return batch

    def prepare_move(self) -> Move:
        """Write and hash the staged files of pending visits; return the function that moves these files into place."""
        return self._prepare_move(Batch(self.batch, imported_at=format_time(datetime.now(UTC))), [])

    def discard(self) -> None:
        """Delete the staged files that were not committed."""
        discard(self._lake, self._staged)

    def _prepare_move(self, batch: Batch, replaced: list[LandedFile]) -> Move:
        """Write the last file, which records the batch and the `replaced` files; hash all files.

        Returns the function that moves them into place.
        """
        if self._last_part is not None:
            batches, replaces = [batch], tuple[str, ...]()
            if replaced:
                earlier = replacing_footer(self._lake, replaced)
                batches, replaces = [batch, *earlier.batches], earlier.replaces
            write_visits(self._last_part, self._staged[-1].path, self._footer(self._staged[-1], batches, replaces))
            self._last_part = None
        return prepare_move(self._lake, self._staged)

    def _footer(self, staged: StagedFile, batches: Iterable[Batch], replaces: Sequence[str] = ()) -> Footer:
        pending = [self._pending] if self._pending else []
        footer = footer_of(
            staged.organization, staged.day, batches, pending=pending, replaces=replaces,
            unfinished_of=staged.unfinished_of, zone=self.zone,
        )  # fmt: skip
        return replace(footer, facts=staged.facts)

    def _add(self, day: date, visits: int, unfinished_of: int | None, facts: int = 0) -> None:
        number = sum(staged.day == day for staged in self._staged)
        key = f"{self.organization}/{self._content}/{day}/{number}"
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, key))
        path = _path(self.organization, day, name)
        is_there = (self._lake.root / path).exists()
        if (
            not self._content
            or self._lake.manifest.files.is_registered(path)
            or (is_there and not self._has_all_of(self._lake.root / path, visits))
        ):
            name, is_there = str(uuid.uuid4()), False
        staged = StagedFile(new_path(self._lake), self.organization, day, visits, unfinished_of, name, facts=facts)
        self._staged.append(staged._replace(is_overwriting=is_there))

    def _has_all_of(self, path: Path, visits: int) -> bool:
        """Return whether an unregistered file contains only visits that are landing now."""
        file = readable_visit_file(path)
        if file is None:
            return False
        if self._pending:
            return bool(file.footer.pending) and all(map(self._pending.contains, file.footer.pending))
        return file.visits <= visits and any(batch.sha256 == self._content for batch in file.footer.batches)


def _facts(visits: pa.Table) -> int:
    """Return the request facts that any of the visits has, and NETWORKS, since networks were looked up."""
    if "signals" not in visits.column_names:
        return NETWORKS
    return reduce(or_, pc.unique(visits["signals"]).drop_null().to_pylist(), 0) & FACTS | NETWORKS


def new_path(lake: Lake) -> Path:
    """Return a new path in the staging folder, with a unique name."""
    return lake.staging / f"{uuid.uuid4()}.parquet"


@contextmanager
def atomic_write(path: Path, staging: Path) -> Iterator[Path]:
    """Yield a path for writing a visit file. If the context ends without an error, move the file durably to `path`."""
    staged = staging / f"{uuid.uuid4()}.parquet"
    try:
        yield staged
        move_durably(staged, path)
    finally:
        staged.unlink(missing_ok=True)


def write_visits(visits: pa.Table | Iterable[pa.RecordBatch], path: Path, footer: Footer) -> None:
    """Write and sync the visits of one day of an organization, in the given order.

    Columns are matched by name; missing columns, such as in visits of an earlier schema version, are null.
    """
    parts: Iterable[pa.Table]
    compression, schema = dict.fromkeys(VISITS.names, "zstd"), VISITS
    if isinstance(visits, pa.Table):
        parts = [visits]
        for place, field in enumerate(VISITS):
            kind = visits.schema.field(field.name).type if field.name in visits.column_names else field.type
            if pa.types.is_dictionary(kind) and kind.value_type == field.type:
                schema = schema.set(place, field.with_type(kind))  # faster to write
                if all(len(chunk.dictionary) <= 1 for chunk in visits[field.name].chunks):
                    compression[field.name] = "none"  # compressing a constant column takes longer than writing it
    else:
        parts = (pa.Table.from_batches([batch]) for batch in visits)
    write_parquet(
        (_with_columns(part, schema) for part in parts),
        schema,
        path,
        statistics=_STATISTICS,
        compression=compression,
        metadata=footer.metadata,
    )


def _with_columns(visits: pa.Table, schema: pa.Schema) -> pa.Table:
    names = set(visits.column_names)
    columns = [visits[field.name] if field.name in names else pa.nulls(len(visits), field.type) for field in schema]
    return pa.table(columns, schema.names).cast(schema)


def prepare_move(lake: Lake, staged: Sequence[StagedFile]) -> Move:
    """Hash staged files; return the function that, inside a manifest transaction, moves them to their final paths.

    The last file is moved last: once it exists, all the others do.
    """
    hashes = [sha256_of(file.path) for file in staged]

    def move() -> list[LandedFile]:
        with ThreadPoolExecutor(MAX_PARALLEL_MOVES) as pool:
            moved = list(pool.map(_move, [lake] * len(staged[:-1]), staged[:-1], hashes[:-1]))
        return [*moved, *map(_move, [lake], staged[-1:], hashes[-1:])]

    return move


def discard(lake: Lake, staged: Sequence[StagedFile]) -> None:
    """Delete the staged files, and moved files that are not registered in the manifest.

    A file that overwrote another file stays, since the other file may have been unregistered only because an older
    manifest was restored.
    """
    moved = []
    for file in staged:
        file.path.unlink(missing_ok=True)
        path = _path_of(file)
        if not file.is_overwriting and (lake.root / path).exists() and not lake.manifest.files.is_registered(path):
            moved.append(path)
    if moved:
        lake.delete_uncommitted(moved)


def _path_of(staged: StagedFile) -> str:
    return _path(staged.organization, staged.day, staged.name or staged.path.stem)


def _path(organization: str, day: date, name: str) -> str:
    """Return the final path of a file, relative to the lake."""
    return f"visits/organization={organization}/day={day}/{name}.parquet"


def _move(lake: Lake, staged: StagedFile, sha256: str) -> LandedFile:
    name = _path_of(staged)
    move_durably(staged.path, lake.root / name)
    stat = (lake.root / name).stat()
    return LandedFile(
        staged.organization, staged.day, name, staged.visits, stat.st_size, sha256, stat.st_ctime_ns, stat.st_ino,
        datetime.now(UTC), staged.unfinished_of, behaviour_version=staged.behaviour_version,
        facts=staged.facts,
    )  # fmt: skip
