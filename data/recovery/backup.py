"""Makes a consistent copy of a lake that may be in use. Copying it back restores the lake. Salts are never included.

control.sqlite is copied first, since redirects wait there until they are added to the links. It is followed by the
manifest, by the files of visits and links that are live in the copied manifest, and by the remaining files, such as IP
lists.
"""

import hashlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from data.disk.files import RegisteredFile, move_durably, sync
from data.errors import BadInput, Conflict, LakeDamaged, OutdatedManifest
from data.manifest.backups import BackupResult, files_to_back_up, forget_other_files
from data.manifest.database import MIGRATIONS
from data.progress import Progress, ignore_progress
from data.recovery.verification import DATABASES, integrity_error
from data.store.lake import Lake

ATTEMPTS: Final = 5
"""Maximum number of attempts, each with a new copy of the manifest, if erasures delete files during the backup."""
CHUNK_BYTES: Final = 1 << 20
_MANIFEST, _CONTROL = DATABASES


def back_up(lake: Lake, folder: Path, progress: Progress = ignore_progress) -> BackupResult:
    """Copy the lake into a new folder, which appears once it is complete and synced.

    Raises BadInput for an unsuitable folder, LakeDamaged for damaged files, OutdatedManifest if the backup would lack
    newer visits, and Conflict if erasures interrupted all attempts.
    """
    target, root = folder.resolve(), lake.root.resolve()
    if target.is_relative_to(root) or root.is_relative_to(target):
        raise BadInput(f"{target} and the lake at {root} overlap; choose another folder.")
    if not target.parent.is_dir():
        raise BadInput(f"the folder {target.parent} does not exist; create it, or mount its disk.")
    if target.is_mount():
        raise BadInput(f"{target} is a mount point; choose a new folder on it.")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise BadInput(f"{target} already exists and is not empty; choose a new or empty folder.")
    prefix = f"{target.name}.partial-"
    for path in target.parent.iterdir():  # killed backups to the same target have left their folders
        owner = path.name.removeprefix(prefix)
        if path.name.startswith(prefix) and owner.isdecimal() and not _is_running(int(owner)):
            shutil.rmtree(path)
    partial = target.with_name(f"{prefix}{os.getpid()}")
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


def _is_running(process: int) -> bool:
    if process == os.getpid():  # in a container, a killed process may have had the same id
        return False
    try:
        os.kill(process, 0)
    except PermissionError:  # another user's process
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _fill(lake: Lake, partial: Path, progress: Progress) -> BackupResult:
    """Copy everything into the folder `partial` and sync it; return what the backup contains."""
    control = None
    if (lake.root / _CONTROL).exists():
        with _snapshot(lake, _CONTROL) as copy:
            control = copy.serialize()
    with _live_files_copied(lake, partial, progress) as manifest:
        if problem := lake.manifest.problem:
            raise OutdatedManifest(f"a backup would lack visits, because {problem}")
        contents = forget_other_files(manifest)
        _write_database(manifest.serialize(), partial / _MANIFEST)
    mode = (lake.root / _MANIFEST).stat().st_mode
    (partial / _MANIFEST).chmod(stat.S_IMODE(mode) | stat.S_IWUSR)  # writable, even if the lake is read-only
    if control:
        _write_database(control, partial / _CONTROL)
    others = [lake.own_agents, lake.released]
    for name in ("countries", "ip-lists", "rejects"):  # their files are replaced atomically, so copies are consistent
        (partial / name).mkdir()
        others += (lake.root / name).rglob("*")
    for path in others:
        if path.is_file():
            with suppress(FileNotFoundError), path.open("rb") as opened:  # it may have just been deleted
                _copy_file(opened, partial / path.relative_to(lake.root))
    for path in (*partial.rglob("*"), partial):
        sync(path)
    return contents


@contextmanager
def _live_files_copied(lake: Lake, partial: Path, progress: Progress) -> Iterator[sqlite3.Connection]:
    """Copy the live files of visits and links; yield an in-memory copy of the manifest that lists them.

    If a file is deleted before it can be copied, start again with a new copy of the manifest.
    """
    copied: set[str] = set()
    for _ in range(ATTEMPTS):
        with _snapshot(lake, _MANIFEST) as manifest:
            files = files_to_back_up(manifest)
            if not _copy_live_files(lake, files, partial, copied, progress):
                continue
            for path in copied - {file.path for file in files}:  # erased after an earlier attempt copied them
                erased = partial / path
                erased.unlink()
                with suppress(OSError):  # the folder is not empty
                    erased.parent.rmdir()
                    erased.parent.parent.rmdir()
            yield manifest
            return
    raise Conflict("visits were erased repeatedly during the backup; try again later.")


def _copy_live_files(
    lake: Lake, files: list[RegisteredFile], partial: Path, copied: set[str], progress: Progress
) -> bool:
    """Copy files that are not in `copied`, and add their paths to it; return False as soon as an erased file is found.

    Raises LakeDamaged if a live file is missing or damaged.
    """
    done, size = 0, sum(file.size for file in files)
    for file in files:
        if file.path not in copied:
            source = lake.root / file.path
            try:
                opened = source.open("rb")
            except FileNotFoundError as error:
                if lake.manifest.files.is_live(file.path):
                    raise LakeDamaged(f"{source} is missing; restore it from an older backup.") from error
                return False
            with opened:
                sha256 = _copy_file(opened, partial / file.path)
            if sha256 != file.sha256:
                raise LakeDamaged(f"{source} is damaged (its SHA-256 differs); restore it from an older backup.")
            copied.add(file.path)
        done += file.size
        progress(done, size)
    return True


@contextmanager
def _snapshot(lake: Lake, name: str) -> Iterator[sqlite3.Connection]:
    """Yield a consistent in-memory copy of a lake's database, which may be in use. Raises LakeDamaged.

    The copy is in memory because SQLite does not work on all file systems that are used for backups.
    """
    path = lake.root / name
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        try:
            is_older = lake.is_read_only and name == _MANIFEST  # if from an older version, it is migrated in a copy
            with closing(
                lake.open_database(path, MIGRATIONS, "") if is_older else lake.read_database(path)
            ) as original:
                original.backup(copy)
            problem = integrity_error(copy)
        except (sqlite3.Error, OSError) as error:
            raise LakeDamaged(f"{path} cannot be copied: {error}.") from error
        if problem:
            raise LakeDamaged(f"{path} {problem}; restore the lake from an older backup.")
        yield copy


def _write_database(content: bytes, target: Path) -> None:
    """Write a database to a new file that only its owner can read."""
    with _with_path(target), os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)


def _copy_file(source: BinaryIO, target: Path) -> str:
    """Copy a file; return the SHA-256 of its bytes."""
    digest = hashlib.sha256()
    with _with_path(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as new:
            while True:
                with _with_path(source.name):
                    chunk = source.read(CHUNK_BYTES)
                if not chunk:
                    break
                digest.update(chunk)
                new.write(chunk)
    return digest.hexdigest()


@contextmanager
def _with_path(path: Path | str) -> Iterator[None]:
    """Add `path` to an OSError raised in the context without a path."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
