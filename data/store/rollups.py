"""Rollups: precomputed counts of the visits on past days, stored alongside the visits in one file for each month.

A rollup is valid for a day while the live files of that day are exactly its sources, so code that lands, merges or
erases visits need not update the rollup. A lost rollup is computed again. The columns of rollups are declared in
queries/.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from data.disk.files import RegisteredFile, move_into_lake, sha256_of, write_parquet
from data.errors import BadInput, LakeDamaged, OutdatedManifest
from data.manifest.files import LandedFile
from data.manifest.rollups import Rollup, Versions
from data.store.lake import Lake
from data.store.layout import LakeFolders

ROW_GROUP: Final = 60_000
"""The maximum number of rows in a row group."""
_STATISTICS: Final = ("relation", "for_domain", "days", "day", "domain", "short_code", "bot_category")
"""The columns that queries use to skip row groups."""

ROLLUPS_FOLDER: Final = "rollups"
_SEED: Final = f"{ROLLUPS_FOLDER}/organization=_seed/month=1970-01-01/seed.parquet"

Schema: TypeAlias = pa.Schema
"""The columns of a rollup, including `relation`, `for_domain` and `day`."""


class LiveRollups(NamedTuple):
    """The rollup files that may be read, and the days for which they are valid."""

    files: list[str]
    days: frozenset[date]
    days_without_domains: frozenset[date]  # the subset of `days` without rows for single domains


class RelationRows(NamedTuple):
    """The rows of one relation, in tables with its columns."""

    relation: str
    tables: list[pa.Table]


def source_files_by_day(files: Iterable[LandedFile]) -> dict[date, frozenset[str]]:
    """Return the paths of visit files by day."""
    paths_by_day: defaultdict[date, list[str]] = defaultdict(list)
    for file in files:
        paths_by_day[file.day].append(file.path)
    return {day: frozenset(paths) for day, paths in paths_by_day.items()}


def month_of(day: date) -> date:
    """Return the first day of the month of `day`."""
    return day.replace(day=1)


def live_rollups(lake: Lake, organization: str, version: str, live: Sequence[LandedFile]) -> LiveRollups:
    """Return the rollups that are intact and valid for the given live visit files."""
    if not live:
        return LiveRollups([], frozenset(), frozenset())
    wanted, files, days, without_domains = source_files_by_day(live), [], set[date](), set[date]()
    for rollup in lake.manifest.rollups.live(organization, version, month_of(min(wanted)), max(wanted)):
        counted = {day for day, paths in rollup.sources.items() if wanted.get(day) == paths}
        if counted and _is_intact(lake, rollup.file):
            files.append(f"{lake.root}/{rollup.file.path}")
            days |= counted
            without_domains |= counted & rollup.days_without_domains
    return LiveRollups(files, frozenset(days), frozenset(without_domains))


def months_to_count(lake: Lake, now: datetime, quiet_period: timedelta, versions: Versions) -> list[tuple[str, date]]:
    """Return the organizations and months with a past day that lacks a valid rollup and has received no files for
    `quiet_period`.
    """
    lost = [file.path for file in lake.manifest.rollups.all_live() if not _is_intact(lake, file)]
    return lake.manifest.rollups.months_to_count(now, quiet_period, versions, lost)


def _is_intact(lake: Lake, file: RegisteredFile) -> bool:
    """Return whether a rollup is unchanged, and expire it if not. Hash it only if its size, change time or inode
    differs.
    """
    try:
        lake.intact_path(file)
    except (LakeDamaged, OSError):
        _expire(lake, file)
        return False
    return True


def _expire(lake: Lake, damaged: RegisteredFile) -> None:
    with suppress(sqlite3.OperationalError, OutdatedManifest):  # if this fails, the next check records it
        lake.manifest.rollups.expire(damaged.path)


def damaged_rollups(lake: Lake, organization: str = "", before: datetime | None = None) -> Iterator[str]:
    """Hash the live rollups of one organization, or of all; expire damaged rollups and yield their paths.

    With `before`, check only rollups that were last checked before that time.
    """
    for file in lake.manifest.rollups.all_live(organization, before):
        try:
            lake.recheck(file)
        except (LakeDamaged, OSError):
            _expire(lake, file)
            yield file.path


def seed_path(lake: LakeFolders) -> Path:
    """Return the path of the empty rollup, which queries read with the others so that there is always a file to
    read.
    """
    own = lake.seeds / _SEED
    return own if own.exists() else lake.root / _SEED


def write_seed(lake: LakeFolders, schema: Schema) -> None:
    """Write the empty rollup unless it exists with these columns. Raises BadInput if it cannot be written."""
    try:
        lake.seed(_SEED, schema)
    except OSError as error:
        raise BadInput(f"the lake at {lake.root} cannot be written: {error.strerror}.") from error


def write_rollup(relations: Iterable[RelationRows], schema: Schema, path: Path) -> None:
    """Write and sync the rows of all relations. Each row group contains rows of only one relation.

    The rows are not compressed: they need 40 % more space, which is little compared with the visits, but are faster to
    read.
    """
    parts = chain.from_iterable(map(_row_groups, relations, repeat(schema)))  # a loop would keep rows for too long
    write_parquet(parts, schema, path, statistics=_STATISTICS, row_group=ROW_GROUP, compression="none")


def _row_groups(rows: RelationRows, schema: Schema) -> Iterator[pa.Table]:
    """Yield the row groups of one relation, with all columns of the schema.

    Rows are sorted so that readers can skip row groups, then by their strings, which saves space and speeds up grouping
    over a month. Only one row group at a time is copied and extended to all columns, most of which are NULL for any one
    relation.
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


def replace_rollup(lake: Lake, rollup: Rollup, staged: Path, now: datetime) -> None:
    """Make a staged file the live rollup of its month. Raises Conflict unless the rollup's sources are live."""
    sha256 = sha256_of(staged)
    name = f"{ROLLUPS_FOLDER}/organization={rollup.organization}/month={rollup.month}/{staged.name}"
    lake.manifest.rollups.replace(rollup, lambda: move_into_lake(staged, lake.root, name, sha256), now)
