"""Rollups: precomputed counts of the visits of past days, stored beside them in one file for each month.

A rollup is valid for a day while the live files of that day are exactly those it was computed from, so code that lands,
merges or erases visits need not update it. A lost rollup is computed again. Its columns are declared by the queries.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain, repeat, starmap
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from data.disk.files import RegisteredFile, move_into_lake, sha256_of, write_parquet
from data.errors import BadInput, Conflict, LakeDamaged, OutdatedManifest
from data.manifest.clock import TOLERANCE, format_time, unchecked_bounds
from data.manifest.files import READERS_GRACE, LandedFile
from data.sql import read_sql
from data.store.lake import Lake
from data.store.layout import LakeFolders

ROW_GROUP: Final = 60_000
"""The number of rows in a row group."""
_STATISTICS: Final = ("relation", "for_domain", "days", "day", "domain", "short_code", "bot_category")
"""The columns by which queries skip row groups."""

ROLLUPS_FOLDER: Final = "rollups"
_SEED: Final = f"{ROLLUPS_FOLDER}/organization=_seed/month=1970-01-01/seed.parquet"

_MONTHS_TO_COUNT: Final = read_sql("data.store", "sql/months_to_count")

Schema: TypeAlias = pa.Schema
"""The columns of a rollup, including `relation`, `for_domain` and `day`."""

SourceFiles = Mapping[date, frozenset[str]]
"""The paths of the visit files of each day."""


class LiveRollups(NamedTuple):
    """The rollup files that may be read, and the days for which they are valid."""

    files: list[str]
    days: frozenset[date]
    days_without_domains: frozenset[date]  # those of `days` that have no rows for single domains


@dataclass(frozen=True)
class Rollup:
    """One file of counts on one organization's month, and what they were counted from."""

    organization: str
    month: date  # its first day
    version: str  # of how it was counted
    sources: SourceFiles
    days_without_domains: frozenset[date]  # days that have no rows for single domains, because they had too many


class RelationRows(NamedTuple):
    """Rows of one relation, in tables of its columns."""

    relation: str
    tables: list[pa.Table]


def source_files_by_day(files: Iterable[LandedFile]) -> dict[date, frozenset[str]]:
    """The paths of visit files by their days."""
    paths_by_day: defaultdict[date, list[str]] = defaultdict(list)
    for file in files:
        paths_by_day[file.day].append(file.path)
    return {day: frozenset(paths) for day, paths in paths_by_day.items()}


def month_of(day: date) -> date:
    """The first day of the month of `day`."""
    return day.replace(day=1)


def live_rollups(lake: Lake, organization: str, version: str, live: Sequence[LandedFile]) -> LiveRollups:
    """The rollups that are valid for the given live visit files. Damaged ones are left out."""
    if not live:
        return LiveRollups([], frozenset(), frozenset())
    wanted, files, days, without_domains = source_files_by_day(live), [], set[date](), set[date]()
    rows = lake.manifest.rows(
        "SELECT path, bytes, sha256, changed_ns, inode, sources, days_without_domains FROM rollups "
        "WHERE organization = ? AND version = ? AND month BETWEEN ? AND ? AND deletable_at IS NULL ORDER BY month",
        [organization, version, month_of(min(wanted)).isoformat(), max(wanted).isoformat()],
    )
    for *columns, sources, wide_days in rows:
        stored = RegisteredFile(*columns)
        paths_by_day = {date.fromisoformat(day): paths for day, paths in json.loads(sources).items()}
        counted = {day for day, paths in paths_by_day.items() if wanted.get(day) == frozenset(paths)}
        if counted and _is_intact(lake, stored):
            files.append(f"{lake.root}/{stored.path}")
            days |= counted
            without_domains |= counted.intersection(map(date.fromisoformat, json.loads(wide_days)))
    return LiveRollups(files, frozenset(days), frozenset(without_domains))


def months_to_count(
    lake: Lake, now: datetime, quiet_period: timedelta, version: str, judged_version: str
) -> list[tuple[str, date]]:
    """The organizations and months with a past day that no rollup is valid for, and where nothing landed lately.

    The versions are those of organizations whose behaviour is switched off, and of the others. One query for all.
    """
    rows = lake.manifest.rows("SELECT path, bytes, sha256, changed_ns, inode FROM rollups WHERE deletable_at IS NULL")
    lost = json.dumps([file.path for file in starmap(RegisteredFile, rows) if not _is_intact(lake, file)])
    clock = datetime.now(UTC)  # checked_at is set by the system clock
    bounds = {"after": format_time(clock - quiet_period), "until": format_time(clock + TOLERANCE)}
    versions = {"version": version, "judged_version": judged_version}
    rows = lake.manifest.rows(_MONTHS_TO_COUNT, {"now": now.isoformat(), "lost": lost, **bounds, **versions})
    return [(organization, date.fromisoformat(month)) for organization, month in rows]


def _is_intact(lake: Lake, file: RegisteredFile) -> bool:
    """Whether a rollup is as it was written; else it expires. Hashed only if size, time of change or inode differ."""
    try:
        lake.intact_path(file)
    except (LakeDamaged, OSError):
        _expire(lake, file)
        return False
    return True


def _expire(lake: Lake, damaged: RegisteredFile) -> None:
    with suppress(sqlite3.OperationalError, OutdatedManifest), lake.manifest.transaction() as db:  # or the next time
        db.execute(
            "UPDATE rollups SET deletable_at = ? WHERE path = ? AND deletable_at IS NULL",
            [format_time(datetime.now(UTC)), damaged.path],
        )


def damaged_rollups(lake: Lake, organization: str = "", before: datetime | None = None) -> Iterator[str]:
    """Hash the live rollups of one organization, or of all; yield the paths of damaged ones, which expire.

    With `before`, only rollups that were last checked before that time.
    """
    rows = lake.manifest.rows(
        "SELECT path, bytes, sha256, changed_ns, inode FROM rollups "
        "WHERE deletable_at IS NULL AND ? IN ('', organization) AND checked_at NOT BETWEEN ? AND ? ORDER BY path",
        [organization, *unchecked_bounds(before)],
    )
    for file in starmap(RegisteredFile, rows):
        try:
            lake.recheck(file)
        except (LakeDamaged, OSError):
            _expire(lake, file)
            yield file.path


def seed_path(lake: LakeFolders) -> Path:
    """The path of the empty rollup, which queries read beside all others, so that they always have a file."""
    own = lake.seeds / _SEED
    return own if own.exists() else lake.root / _SEED


def write_seed(lake: LakeFolders, schema: Schema) -> None:
    """Write the empty rollup unless it exists with these columns. Raises BadInput when it cannot be written."""
    try:
        lake.seed(_SEED, schema)
    except OSError as error:
        raise BadInput(f"the lake at {lake.root} cannot be written: {error.strerror}.") from error


def write_rollup(relations: Iterable[RelationRows], schema: Schema, path: Path) -> None:
    """Write and sync the rows of all relations. No row group contains rows of two relations.

    They are not compressed: that takes 40 % more bytes, which are few beside those of visits, and less time to read.
    """
    parts = chain.from_iterable(map(_row_groups, relations, repeat(schema)))  # a loop would keep rows for too long
    write_parquet(parts, schema, path, statistics=_STATISTICS, row_group=ROW_GROUP, compression="none")


def _row_groups(rows: RelationRows, schema: Schema) -> Iterator[pa.Table]:
    """The rows of one relation with all columns of the schema, sorted for skipping row groups, then by their words.

    Equal words beside each other are smaller, and those of a month, which have no day, are grouped in less time.
    Only one row group at a time is sorted and has all columns of the schema: each relation leaves most of them NULL.
    """
    table = pa.concat_tables(rows.tables, promote_options="default")
    fields = [field for field in schema if field.name in table.column_names]
    table = table.select([field.name for field in fields]).cast(pa.schema(fields))
    words = [field.name for field in fields if pa.types.is_string(field.type)]
    keys = [name for name in dict.fromkeys(["for_domain", "day", *words]) if name in table.column_names]
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys])
    for start in range(0, len(table), ROW_GROUP):
        part = table.take(order[start : start + ROW_GROUP])
        part = part.append_column("relation", pa.repeat(rows.relation, len(part)))
        yield pa.concat_tables([schema.empty_table(), part], promote_options="default")


def publish(lake: Lake, rollup: Rollup, staged: Path, now: datetime) -> None:
    """Make a staged file the live rollup of its month. Raises Conflict unless its sources are live."""
    sha256 = sha256_of(staged)
    name = f"{ROLLUPS_FOLDER}/organization={rollup.organization}/month={rollup.month}/{staged.name}"
    sources = {day.isoformat(): sorted(paths) for day, paths in sorted(rollup.sources.items())}
    with lake.manifest.transaction() as db:
        for path in chain(*sources.values()):
            if not db.execute("SELECT 1 FROM files WHERE path = ? AND deletable_at IS NULL", [path]).fetchone():
                raise Conflict(f"{path} was replaced by another process in the meantime; try again.")
        db.execute(
            "UPDATE rollups SET deletable_at = ? WHERE organization = ? AND month = ? AND deletable_at IS NULL",
            [format_time(now + READERS_GRACE), rollup.organization, rollup.month.isoformat()],
        )
        file = move_into_lake(staged, lake.root, name, sha256)
        without_domains = json.dumps(sorted(map(str, rollup.days_without_domains)))
        db.execute(
            "INSERT INTO rollups (organization, month, version, path, bytes, sha256, changed_ns, inode, checked_at, "
            "sources, days_without_domains) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [rollup.organization, rollup.month.isoformat(), rollup.version, *file, format_time(now),
             json.dumps(sources), without_domains],
        )  # fmt: skip
