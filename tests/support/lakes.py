"""The content of a test's lake, and ways to damage it."""

import errno
import hashlib
import re
import shutil
import sqlite3
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from data.manifest.clock import format_time
from data.manifest.files import READERS_GRACE, LandedFile
from data.recovery.rebuild import Rebuild, locked_for_rebuild
from data.store.lake import Lake
from data.visits import VISITS
from tests.support.manifests import database_of
from tests.support.visits import Visit


@contextmanager
def opened(root: Path, create: bool = False) -> Iterator[Lake]:
    """Open a lake while in this context."""
    with closing((lake := Lake(root, create)).manifest):
        yield lake


def remove_manifest(root: Path) -> None:
    for path in root.glob("manifest.sqlite*"):
        path.unlink()


@contextmanager
def rebuilt(lake: Lake, is_lost: bool = True) -> Iterator[Lake]:
    """Rebuild a lake's manifest, and yield the lake. If the old manifest `is_lost`, only the lake's files are used."""
    lake.manifest.close()
    if is_lost:
        remove_manifest(lake.root)
    with locked_for_rebuild(lake.root) as root:
        rebuild = Rebuild(root)
        rebuild.run()
        assert rebuild.plan.questions == []
    with opened(lake.root) as again:
        yield again


def read(lake: Lake, file: LandedFile) -> list[Visit]:
    """Return the visits of a live file, which must have the schema of visits."""
    rows = pq.ParquetFile(lake.verified_path(file)).read()
    assert rows.schema.equals(VISITS)
    return list(rows.to_pylist())


def files_of(lake: Lake, organization: str = "acme") -> list[LandedFile]:
    return lake.manifest.files.live(organization)


def dead_files(lake: Lake) -> dict[str, datetime]:
    """Return, by path, the time from which each dead file may be deleted."""
    rows = database_of(lake.manifest).rows("SELECT path, deletable_at FROM files WHERE deletable_at IS NOT NULL")
    return {path: datetime.fromisoformat(moment) for path, moment in rows}


def rows_of(lake: Lake, organization: str = "acme") -> list[Visit]:
    """Return every live visit of an organization."""
    return [row for file in files_of(lake, organization) for row in read(lake, file)]


def landed(lake: Lake, organization: str = "acme") -> dict[date, list[list[Visit]]]:
    """Return, by day, the visits in each live file, in their order; the files of a day are sorted by content."""
    days = defaultdict(list)
    for file in files_of(lake, organization):
        days[file.day].append(read(lake, file))
    return {day: sorted(files, key=str) for day, files in days.items()}


def links_path(lake: Lake, organization: str = "acme") -> Path:
    """Return the path of the live base file with an organization's links."""
    stored = lake.manifest.links.live(organization).whole
    assert stored
    return lake.root / stored.path


def paths(lake: Lake, organization: str = "acme") -> Counter[str]:
    """Return the number of live visits to each path."""
    return Counter(row["path"] for row in rows_of(lake, organization))


def numbers(lake: Lake, organization: str = "acme") -> dict[int, int]:
    """Return the number of live files for each day of the month."""
    return dict(Counter(file.day.day for file in files_of(lake, organization)))


def strays(lake: Lake) -> tuple[list[str], set[str]]:
    """Return leftover staged files, and visit files that the manifest does not list."""
    there = {str(path.relative_to(lake.root)) for path in lake.root.glob("visits/organization=[!_]*/*/*")}
    known = {path for (path,) in database_of(lake.manifest).rows("SELECT path FROM files")}
    return [path.name for path in lake.staging.rglob("*") if path.is_file()], there - known


def bytes_on_disk(lake: Lake) -> dict[Path, str | bool]:
    """Return the hash of every file in the lake, and False for every folder. SQLite's shared memory is left out, since
    SQLite may write into it even when it only reads.
    """
    return {
        path.relative_to(lake.root): path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest()
        for path in lake.root.rglob("*")
        if not path.name.endswith("-shm")
    }


def everything_in(folder: Path) -> bytes:
    """Return all bytes of all files, and all text compressed in Parquet files, in lower case."""
    found = b""
    for path in folder.rglob("*"):
        found += path.read_bytes() if path.is_file() else b""
        if path.suffix == ".parquet":
            found += str(pq.ParquetFile(path).read().to_pylist()).encode()
    return found.lower()


def flip(path: Path, place: int = 50) -> None:
    """Flip one bit in a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@contextmanager
def flipped(path: Path) -> Iterator[None]:
    """Flip one bit in a file while in this context."""
    content = path.read_bytes()
    flip(path)
    yield
    path.write_bytes(content)


def kept_manifest(root: Path) -> Path:
    """Copy the manifest to a file next to the lake, and return its path. Programs may be using the original."""
    copy = root.with_name(f"{root.name}-kept-{uuid.uuid4().hex[:8]}.sqlite")
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db, closing(sqlite3.connect(copy)) as target:
        db.backup(target)
    return copy


def put_back(copy: Path, root: Path) -> None:
    """Replace the manifest by a copy from kept_manifest()."""
    for path in root.glob("manifest.sqlite*"):
        if ".before-" not in path.name:
            path.unlink()
    shutil.copy(copy, root / "manifest.sqlite")


def rot(lake: Lake, path: Path, place: int = 50) -> None:
    """Change a file as bit rot would: only its bytes reveal the change."""
    flip(path, place)
    with database_of(lake.manifest).transaction() as db:
        seen = path.stat().st_ctime_ns
        for table in ("files", "links", "link_changes"):
            db.execute(f"UPDATE {table} SET changed_ns = ? WHERE path = ?", [seen, str(path.relative_to(lake.root))])


def turn_an_index(manifest: Path) -> None:
    """Damage an index without making the manifest unreadable."""
    with closing(sqlite3.connect(manifest)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'IS NULL', 'IS NOT NULL') WHERE name = 'live_files'")
        db.commit()


def date_ahead(lake: Lake) -> None:
    """Date everything as if it had landed, and become deletable, while the clock was a year ahead."""
    ahead = datetime.now(UTC) + timedelta(days=365)
    now, dead = [format_time(ahead)], [format_time(ahead + READERS_GRACE)]
    with database_of(lake.manifest).transaction() as db:
        for table in ("files", "links", "link_changes", "rollups"):
            db.execute(f"UPDATE {table} SET checked_at = ?", now)
        db.execute("UPDATE pending SET received_at = ?", now)
        for table in ("files", "links", "link_changes"):
            db.execute(f"UPDATE {table} SET deletable_at = ? WHERE deletable_at IS NOT NULL", dead)


def kill_at_commit(work: Callable[[], object], tidying: str, committing: str) -> None:
    """Do some work as if the program were killed once its files are placed.

    The commit of the files in the module `committing` fails, and the clean-up in `tidying` does nothing.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{tidying}.discard", lambda *_: None)
        patch.setattr(f"{committing}.insert_files", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            work()


def fail_at(
    patch: pytest.MonkeyPatch,
    target: Any,
    name: str,
    call: int = 1,
    is_done: bool = False,
    error: BaseException | None = None,
) -> None:
    """Make the n-th call to a function fail with `error`, by default as on a full disk, before or after its work.

    `target` is the object that has the function, or the name of its module.
    """
    owner = sys.modules[target] if isinstance(target, str) else target
    original, calls = getattr(owner, name), count(1)

    def failing(*args: Any, **kwargs: Any) -> Any:
        fails = next(calls) == call
        result = original(*args, **kwargs) if is_done or not fails else None
        if fails:
            raise error or OSError(errno.ENOSPC, "No space left on device")
        return result

    patch.setattr(owner, name, failing)


@contextmanager
def failing_at(
    target: Any, name: str, call: int = 1, is_done: bool = False, error: BaseException | None = None
) -> Iterator[None]:
    """Make the n-th call to a function fail in the `with` block, and check that the block raises that error."""
    error = error or OSError(errno.ENOSPC, "No space left on device")
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, target, name, call, is_done, error)
        with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
            yield
