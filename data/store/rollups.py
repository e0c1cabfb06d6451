"""Rollups: what the visits of closed days come to, counted once and stored beside them, one file for each month.

A rollup covers a day for as long as the live files of that day are the very ones it was counted from; whoever lands,
merges or erases need not know of it. It can be lost: visits are counted again. What is counted, and so the columns, is
the queries' part. On disk rollups are called cubes, as at first: the folder, and the table of the manifest.
"""

import json
import os
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import BadInput, Conflict
from data.store.files import move_durably, sha256_of, write_durably, write_parquet
from data.store.lake import Lake
from data.store.manifest import READERS_GRACE, LandedFile, format_time

ROW_GROUP: Final = 60_000
"""Rows of one relation that are read or left out together."""
_STATISTICS: Final = ("relation", "for_domain", "days", "day", "domain", "short_code", "bot_category")
"""The columns by which queries leave them out."""

ROLLUPS_FOLDER: Final = "cubes"

Schema: TypeAlias = pa.Schema
"""The columns of a rollup, with `relation`, `for_domain` and `day` among them."""

SourceFiles = Mapping[date, frozenset[str]]
"""The paths of the visit files of each day."""


class LiveRollups(NamedTuple):
    """The files of rollups that may be read, and the days that they cover."""

    files: list[str]
    days: frozenset[date]


@dataclass(frozen=True)
class Rollup:
    """One file of counts on one organization's month, and what they were counted from."""

    organization: str
    month: date  # its first day
    version: str  # of how it was counted
    sources: SourceFiles


class RelationRows(NamedTuple):
    """Rows of one relation, in tables of its columns."""

    relation: str
    tables: list[pa.Table]


class _StoredRollup(NamedTuple):
    """A live rollup, as it lies on disk."""

    path: str
    size: int
    sha256: str
    changed_ns: int
    inode: int
    sources: SourceFiles


def source_files_by_day(files: Iterable[LandedFile]) -> dict[date, frozenset[str]]:
    """The paths of visit files by their days."""
    found: defaultdict[date, list[str]] = defaultdict(list)
    for file in files:
        found[file.day].append(file.path)
    return {day: frozenset(paths) for day, paths in found.items()}


def month_of(day: date) -> date:
    """The first day of its month."""
    return day.replace(day=1)


def live_rollups(lake: Lake, organization: str, version: str, live: Sequence[LandedFile]) -> LiveRollups:
    """What is counted already of live visit files. A rollup that is not what was written is left out."""
    if not live:
        return LiveRollups([], frozenset())
    wanted, files, days = source_files_by_day(live), [], set()
    for stored in _stored_rollups(lake, organization, version, month_of(min(wanted)), max(wanted)):
        counted = {day for day, paths in stored.sources.items() if wanted.get(day) == paths}
        if counted and _is_sound(lake, stored):
            files.append(f"{lake.root}/{stored.path}")
            days |= counted
    return LiveRollups(files, frozenset(days))


def _stored_rollups(lake: Lake, organization: str, version: str, start: date, end: date) -> Iterator[_StoredRollup]:
    rows = lake.manifest.rows(
        "SELECT path, bytes, sha256, changed_ns, inode, sources FROM cubes WHERE organization = ? AND version = ? "
        "AND month BETWEEN ? AND ? AND deletable_at IS NULL ORDER BY month",
        [organization, version, start.isoformat(), end.isoformat()],
    )
    for path, size, sha256, changed_ns, inode, text in rows:
        sources = {date.fromisoformat(day): frozenset(paths) for day, paths in json.loads(text).items()}
        yield _StoredRollup(path, size, sha256, changed_ns, inode, sources)


def _is_sound(lake: Lake, stored: _StoredRollup) -> bool:
    """Whether a rollup is what was written; where its size, time of change or inode differ, by its bytes."""
    try:
        stat = (lake.root / stored.path).stat()
    except OSError:
        return False
    is_unchanged = (stat.st_size, stat.st_ctime_ns, stat.st_ino) == (stored.size, stored.changed_ns, stored.inode)
    return is_unchanged or _verify_bytes(lake, stored.path, stored.sha256)


def _verify_bytes(lake: Lake, path: str, sha256: str) -> bool:
    """Whether the bytes of a rollup are those that were written, which is remembered. If not, it is live no more."""
    stat, now = _stat_of(lake.root / path, sha256), format_time(datetime.now(UTC))
    with suppress(sqlite3.OperationalError), lake.manifest.transaction() as db:  # on a full disk the next one looks
        if stat:
            db.execute(
                "UPDATE cubes SET changed_ns = ?, inode = ?, checked_at = ? WHERE path = ?",
                [stat.st_ctime_ns, stat.st_ino, now, path],
            )
        else:
            db.execute("UPDATE cubes SET deletable_at = ? WHERE path = ? AND deletable_at IS NULL", [now, path])
    return stat is not None


def _stat_of(path: Path, sha256: str) -> os.stat_result | None:
    """How a file lies on disk, if its bytes have this SHA-256."""
    try:
        stat = path.stat()
        return stat if sha256_of(path) == sha256 else None
    except OSError:
        return None


def damaged_rollups(lake: Lake, organization: str = "", before: datetime | None = None) -> Iterator[str]:
    """Look at the bytes of the live rollups of an organization, or of any; the paths of those that were damaged.

    With `before`, only those that were last looked at before that moment. Visits are counted again.
    """
    rows = lake.manifest.rows(
        "SELECT path, sha256 FROM cubes WHERE deletable_at IS NULL AND ? IN ('', organization) AND checked_at < ? "
        "ORDER BY path",
        [organization, format_time(before) if before else "~"],
    )
    for path, sha256 in rows:
        if not _verify_bytes(lake, path, sha256):
            yield path


def seed_path(lake: Lake) -> Path:
    """Where the empty rollup lies, with which queries can be planned before there is any other."""
    return lake.root / ROLLUPS_FOLDER / "organization=_seed/month=1970-01-01/seed.parquet"


def write_seed(lake: Lake, schema: Schema) -> None:
    """Write the empty rollup, unless it is there with these columns. Raises BadInput when it cannot be written."""
    path = seed_path(lake)
    with suppress(OSError, pa.ArrowException):  # it is missing or damaged
        if pq.read_schema(path).equals(schema):
            return
    try:
        write_durably(schema.empty_table(), lake.staging / f"seed-{uuid.uuid4().hex}.parquet", path)
    except OSError as error:
        raise BadInput(f"the lake at {lake.root} cannot be written: {error.strerror}.") from error


def write_rollup(relations: Iterable[RelationRows], schema: Schema, path: Path) -> None:
    """Write the rows of all relations, and wait until they are on the disk; each relation has row groups of its own."""
    write_parquet(
        (_rollup_table(rows, schema) for rows in relations), schema, path, statistics=_STATISTICS, row_group=ROW_GROUP
    )


def _rollup_table(rows: RelationRows, schema: Schema) -> pa.Table:
    """Rows of one relation with the columns of all; those that are asked for together lie side by side."""
    found = pa.concat_tables(rows.tables, promote_options="default")
    given = dict(zip(found.column_names, found.columns, strict=True))
    given["relation"] = pa.repeat(rows.relation, len(found))
    columns = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(len(found), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema).sort_by([("for_domain", "ascending"), ("day", "ascending")])


def publish(lake: Lake, rollup: Rollup, staged: Path, now: datetime) -> None:
    """Let a staged file be the rollup of its month from now on. Raises Conflict when a source is live no more."""
    sha256 = sha256_of(staged)
    name = f"{ROLLUPS_FOLDER}/organization={rollup.organization}/month={rollup.month}/{staged.name}"
    sources = {day.isoformat(): sorted(paths) for day, paths in sorted(rollup.sources.items())}
    with lake.manifest.transaction() as db:
        _check_live(db, [path for paths in sources.values() for path in paths])
        db.execute(
            "UPDATE cubes SET deletable_at = ? WHERE organization = ? AND month = ? AND deletable_at IS NULL",
            [format_time(now + READERS_GRACE), rollup.organization, rollup.month.isoformat()],
        )
        move_durably(staged, lake.root / name)
        stat = (lake.root / name).stat()
        db.execute(
            "INSERT INTO cubes (organization, month, version, path, bytes, sha256, changed_ns, inode, checked_at, "
            "sources) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [rollup.organization, rollup.month.isoformat(), rollup.version, name, stat.st_size, sha256,
             stat.st_ctime_ns, stat.st_ino, format_time(now), json.dumps(sources)],
        )  # fmt: skip


def _check_live(db: sqlite3.Connection, paths: list[str]) -> None:
    for path in paths:
        if not db.execute("SELECT 1 FROM files WHERE path = ? AND deletable_at IS NULL", [path]).fetchone():
            raise Conflict(f"{path} was replaced by somebody else meanwhile; try again.")
