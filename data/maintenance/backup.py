"""A consistent copy of a lake, taken while others write into it. Salts are never in it; restoring is copying back.

The copied manifest is one moment of the lake; the visits copied after it are the files that were live at that moment.
"""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from data.errors import BadInput, Conflict, LakeDamaged
from data.maintenance.verification import DATABASES, integrity_error
from data.store.files import move_durably
from data.store.lake import Lake

ATTEMPTS: Final = 5
"""Moments of the lake that are tried before a backup gives up: one may lose a file to an erasure while it is copied."""
CHUNK_BYTES: Final = 1 << 20
_MANIFEST, _CONTROL = DATABASES
_FOLDERS: Final = ("links", "ip-lists", "rejects")
"""What is copied as it lies. Every file in it is replaced as a whole, so that a copy is whole, too."""
_LIVE: Final = "SELECT path, visits, bytes, sha256 FROM files WHERE deletable_at IS NULL ORDER BY path"

Progress = Callable[[int, int], None]
"""Called with the bytes copied so far and the bytes to copy."""


class BackupResult(NamedTuple):
    """What a backup holds."""

    files: int
    visits: int
    pending: int  # visits that were acknowledged, and wait in the manifest for a file
    size: int


class _File(NamedTuple):
    path: str  # relative to the lake
    visits: int
    size: int
    sha256: str


def back_up(lake: Lake, folder: Path, progress: Progress | None = None) -> BackupResult:
    """Copy the lake into a new folder, which appears when it is complete and on the disk.

    Raises BadInput for a folder that cannot be it, LakeDamaged for what is not as it was written, and Conflict
    when visits were erased meanwhile again and again.
    """
    target = folder.resolve()
    _check(target, lake)
    _remove_leftovers(target)
    partial = _partial(target, os.getpid())
    try:
        partial.mkdir()
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {error.strerror}.") from error
    try:
        copied = _fill(lake, partial, progress)
        move_durably(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return copied


def _check(target: Path, lake: Lake) -> None:
    """Raise BadInput for a folder that no backup can be put into."""
    root = lake.root.resolve()
    if target.is_relative_to(root) or root.is_relative_to(target):
        raise BadInput(f"{target} and the lake at {root} overlap; choose another folder.")
    if not target.parent.is_dir():
        raise BadInput(f"the folder {target.parent} does not exist; create it, or mount its disk.")
    if target.is_mount():
        raise BadInput(f"{target} is a mount point; choose a new folder on it.")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise BadInput(f"{target} already exists and is not empty; choose a new or empty folder.")


def _partial(target: Path, owner: int | str) -> Path:
    return target.with_name(f"{target.name}.partial-{owner}")


def _remove_leftovers(target: Path) -> None:
    """Remove what backups into this folder left that were killed."""
    beginning = _partial(target, "").name
    for path in target.parent.iterdir():
        owner = path.name.removeprefix(beginning)
        if path.name.startswith(beginning) and owner.isdecimal() and not _is_running(int(owner)):
            shutil.rmtree(path)


def _is_running(process: int) -> bool:
    """Whether another process of this number runs."""
    if process == os.getpid():  # in a container, who was killed had the same number
        return False
    try:
        os.kill(process, 0)
    except PermissionError:  # somebody else's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _fill(lake: Lake, partial: Path, progress: Progress | None) -> BackupResult:
    """Copy everything, and wait until it is on the disk."""
    with _Visits(lake, partial, progress).copied() as (manifest, files):
        ((pending,),) = manifest.execute("SELECT coalesce(sum(visits), 0) FROM pending")
        manifest.execute("DELETE FROM files WHERE deletable_at IS NOT NULL")  # they are not in the backup
        manifest.execute("DELETE FROM cubes")  # nor are these: visits are counted again
        manifest.execute("VACUUM")
        _write_database(manifest, partial / _MANIFEST)
    shutil.copymode(lake.root / _MANIFEST, partial / _MANIFEST)
    if (lake.root / _CONTROL).exists():
        with _snapshot(lake.root / _CONTROL) as control:
            _write_database(control, partial / _CONTROL)
    for name in _FOLDERS:
        _copy_folder(lake.root / name, partial / name)
    _sync(partial)
    return BackupResult(len(files), sum(file.visits for file in files), pending, sum(file.size for file in files))


class _Visits:
    """The visit files of a backup, and the manifest of the moment at which they were live."""

    def __init__(self, lake: Lake, partial: Path, progress: Progress | None) -> None:
        self._lake = lake
        self._partial = partial
        self._progress = progress
        self._copied: set[str] = set()

    @contextmanager
    def copied(self) -> Iterator[tuple[sqlite3.Connection, list[_File]]]:
        """The manifest of one moment, in memory, and its live files, copied.

        A moment of which a file is gone before it is copied is given up for a later one.
        """
        for _ in range(ATTEMPTS):
            with _snapshot(self._lake.root / _MANIFEST) as manifest:
                files = [_File(*row) for row in manifest.execute(_LIVE)]
                if self._copy(files):
                    self._drop_all_but(files)
                    yield manifest, files
                    return
        raise Conflict("visits were erased repeatedly during the backup; try again later.")

    def _copy(self, files: list[_File]) -> bool:
        """Whether every file was there to be copied. What was copied for an earlier moment need not be."""
        done, size = 0, sum(file.size for file in files)
        for file in files:
            if file.path not in self._copied and not self._copy_one(file):
                return False
            self._copied.add(file.path)
            done += file.size
            if self._progress:
                self._progress(done, size)
        return True

    def _copy_one(self, file: _File) -> bool:
        """Whether a file was there to be copied. Raises LakeDamaged when it should be and is not what was written."""
        source = self._lake.root / file.path
        try:
            opened = source.open("rb")
        except FileNotFoundError as error:
            if self._lake.manifest.is_live(file.path):
                raise LakeDamaged(f"{source} is missing; restore it from an older backup.") from error
            return False
        with opened:
            sha256 = _copy_file(opened, self._partial / file.path)
        if sha256 != file.sha256:
            raise LakeDamaged(f"{source} is damaged (its SHA-256 differs); restore it from an older backup.")
        return True

    def _drop_all_but(self, files: list[_File]) -> None:
        """Remove what was copied for a moment that was given up: somebody wanted it erased."""
        for path in self._copied - {file.path for file in files}:
            dropped = self._partial / path
            dropped.unlink()
            with suppress(OSError):  # there are others
                dropped.parent.rmdir()
                dropped.parent.parent.rmdir()


@contextmanager
def _snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy, in memory, of one moment of a database that others write to. Raises LakeDamaged.

    In memory, because SQLite does not work on every disk that backups are put on.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)) as original:
                original.backup(copy)
            problem = integrity_error(copy)
        except sqlite3.Error as error:
            raise LakeDamaged(f"{path} cannot be copied: {error}.") from error
        if problem:
            raise LakeDamaged(f"{path} {problem}; restore the lake from an older backup.")
        yield copy


def _write_database(database: sqlite3.Connection, target: Path) -> None:
    """Write a database that is in memory, for its owner to read only."""
    with _with_path(target), os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(database.serialize())


def _copy_folder(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.rglob("*"):
        if path.is_file() and "organization=_seed" not in path.parts:  # seeds are made by whoever opens a lake
            with suppress(FileNotFoundError), path.open("rb") as opened:  # removed this moment
                _copy_file(opened, target / path.relative_to(source))


def _copy_file(source: BinaryIO, target: Path) -> str:
    """Copy a file; the SHA-256 of its bytes."""
    digest = hashlib.sha256()
    with _with_path(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as new:
            for chunk in _chunks(source):
                digest.update(chunk)
                new.write(chunk)
    return digest.hexdigest()


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    with _with_path(source.name):
        yield from iter(lambda: source.read(CHUNK_BYTES), b"")


@contextmanager
def _with_path(path: Path | str) -> Iterator[None]:
    """A failure to read or to write says where that was."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _sync(folder: Path) -> None:
    """Wait until everything in a folder is on the disk."""
    for path in (*folder.rglob("*"), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
