"""Cubes: what the visits of closed days come to, counted once and kept beside them, one file for each month.

A cube tells of a day for as long as the live files of that day are the very ones it was counted from; whoever lands,
merges or erases need not know of it. It can be lost: visits are counted again. How it is counted is the queries' part.
"""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from data.errors import Outdated
from data.store.files import move_durably, sha256_of, write_parquet
from data.store.lake import CUBE, Lake
from data.store.manifest import READERS_GRACE, LandedFile, time_text

ROW_GROUP: Final = 60_000
"""Rows of one relation that are read or left out together."""
_STATISTICS: Final = ("relation", "for_domain", "days", "day", "domain", "short_code", "bot_category")
"""The columns by which queries leave them out."""

Sources = Mapping[date, frozenset[str]]
"""The paths of the visit files of each day."""


class Held(NamedTuple):
    """What needs not be counted again: where it lies, and of which days it may be taken."""

    files: list[str]
    days: frozenset[date]


@dataclass(frozen=True)
class Cube:
    """One file of counts on one organization's month, and what they were counted from."""

    organization: str
    month: date  # its first day
    version: str  # of how it was counted
    sources: Sources


class Rows(NamedTuple):
    """Rows of one relation, in tables of its columns."""

    relation: str
    tables: list[pa.Table]


class _Kept(NamedTuple):
    """A live cube, as it lies on disk."""

    path: str
    size: int
    sha256: str
    changed_ns: int
    inode: int
    sources: Sources


def sources_of(files: Iterable[LandedFile]) -> dict[date, frozenset[str]]:
    """The paths of visit files by their days."""
    found: defaultdict[date, list[str]] = defaultdict(list)
    for file in files:
        found[file.day].append(file.path)
    return {day: frozenset(paths) for day, paths in found.items()}


def month_of(day: date) -> date:
    """The first day of its month."""
    return day.replace(day=1)


def cubes_of(lake: Lake, organization: str, version: str, live: Sequence[LandedFile]) -> Held:
    """What is counted already of live visit files. A cube that is not what was written is left out."""
    if not live:
        return Held([], frozenset())
    wanted, files, days = sources_of(live), [], set()
    for kept in _kept(lake, organization, version, month_of(min(wanted)), max(wanted)):
        counted = {day for day, paths in kept.sources.items() if wanted.get(day) == paths}
        if counted and _is_sound(lake, kept):
            files.append(f"{lake.root}/{kept.path}")
            days |= counted
    return Held(files, frozenset(days))


def _kept(lake: Lake, organization: str, version: str, start: date, end: date) -> Iterator[_Kept]:
    rows = lake.manifest.rows(
        "SELECT path, bytes, sha256, changed_ns, inode, sources FROM cubes WHERE organization = ? AND version = ? "
        "AND month BETWEEN ? AND ? AND deletable_at IS NULL ORDER BY month",
        [organization, version, start.isoformat(), end.isoformat()],
    )
    for path, size, sha256, changed_ns, inode, text in rows:
        sources = {date.fromisoformat(day): frozenset(paths) for day, paths in json.loads(text).items()}
        yield _Kept(path, size, sha256, changed_ns, inode, sources)


def _is_sound(lake: Lake, kept: _Kept) -> bool:
    """Whether a cube is what was written; where its looks have changed, by its bytes."""
    try:
        stat = (lake.root / kept.path).stat()
    except OSError:
        return False
    looks = (stat.st_size, stat.st_ctime_ns, stat.st_ino)
    return looks == (kept.size, kept.changed_ns, kept.inode) or _is_as_written(lake, kept.path, kept.sha256)


def _is_as_written(lake: Lake, path: str, sha256: str) -> bool:
    """Whether the bytes of a cube are those that were written, which is remembered. If not, it is live no more."""
    stat, now = _stat_of(lake.root / path, sha256), time_text(datetime.now(UTC))
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


def unsound(lake: Lake, organization: str = "", before: datetime | None = None) -> Iterator[str]:
    """Look at the bytes of the live cubes of an organization, or of any; the paths of those that were damaged.

    With `before`, only those that were last looked at before that moment. Visits are counted again.
    """
    rows = lake.manifest.rows(
        "SELECT path, sha256 FROM cubes WHERE deletable_at IS NULL AND ? IN ('', organization) AND checked_at < ? "
        "ORDER BY path",
        [organization, time_text(before) if before else "~"],
    )
    for path, sha256 in rows:
        if not _is_as_written(lake, path, sha256):
            yield path


def write_cube(relations: Iterable[Rows], path: Path) -> None:
    """Write the rows of all relations, and wait until they are on the disk; each relation has row groups of its own."""
    write_parquet(map(_as_cube, relations), CUBE, path, statistics=_STATISTICS, row_group=ROW_GROUP)


def _as_cube(rows: Rows) -> pa.Table:
    """Rows of one relation with the columns of all; those that are asked for together lie side by side."""
    found = pa.concat_tables(rows.tables, promote_options="default")
    given = dict(zip(found.column_names, found.columns, strict=True))
    given["relation"] = pa.repeat(rows.relation, len(found))
    columns = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(len(found), field.type)
        for field in CUBE
    ]
    return pa.table(columns, schema=CUBE).sort_by([("for_domain", "ascending"), ("day", "ascending")])


def place(lake: Lake, cube: Cube, staged: Path, now: datetime) -> None:
    """Let a staged file be the cube of its month from now on. Raises Outdated when a source is live no more."""
    sha256 = sha256_of(staged)
    name = f"cubes/organization={cube.organization}/month={cube.month}/{staged.name}"
    sources = {day.isoformat(): sorted(paths) for day, paths in sorted(cube.sources.items())}
    with lake.manifest.transaction() as db:
        _check_live(db, [path for paths in sources.values() for path in paths])
        db.execute(
            "UPDATE cubes SET deletable_at = ? WHERE organization = ? AND month = ? AND deletable_at IS NULL",
            [time_text(now + READERS_GRACE), cube.organization, cube.month.isoformat()],
        )
        move_durably(staged, lake.root / name)
        stat = (lake.root / name).stat()
        db.execute(
            "INSERT INTO cubes (organization, month, version, path, bytes, sha256, changed_ns, inode, checked_at, "
            "sources) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [cube.organization, cube.month.isoformat(), cube.version, name, stat.st_size, sha256, stat.st_ctime_ns,
             stat.st_ino, time_text(now), json.dumps(sources)],
        )  # fmt: skip


def _check_live(db: sqlite3.Connection, paths: list[str]) -> None:
    for path in paths:
        if not db.execute("SELECT 1 FROM files WHERE path = ? AND deletable_at IS NULL", [path]).fetchone():
            raise Outdated(f"{path} was replaced by somebody else meanwhile; try again.")
