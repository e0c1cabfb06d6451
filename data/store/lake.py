"""The lake: the folder with all stored data. Access control is up to the service."""

import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow.parquet as pq

from data.disk.files import RegisteredFile, has_room, make_durably, network_file_system, sha256_of
from data.disk.locks import locked
from data.errors import BadInput, LakeDamaged, OutdatedManifest
from data.manifest.files import LandedFile
from data.manifest.manifest import Manifest
from data.manifest.read_only import connect_read_only, is_read_only, open_database_read_only
from data.manifest.schema import open_database
from data.store.layout import LakeFolders
from data.visits import check_version

StoredFile: TypeAlias = LandedFile | RegisteredFile
"""A file with a checksum in the manifest."""

_LOST_MANIFEST: Final = (
    "but the lake contains visits: run `traffic rebuild` to recreate it from their files, or restore a backup."
)
_PATH_WILDCARDS: Final = "*?[]{}="
"""Characters that make DuckDB interpret a path as a pattern or as partitions."""


class Lake(LakeFolders):
    """An open lake. The manifest lists the live visit files.

    A lake that is read-only or on a full disk can be opened if nothing must be written. Copies of databases, missing
    seeds and data spilled by queries are then put into a temporary folder.
    """

    def __init__(self, root: Path, create: bool = False, must_write: bool = True) -> None:
        """Open the lake at `root`; with `create`, create it if it is missing. Raises BadInput if the lake cannot be
        used.
        """
        at = root.absolute()
        self.must_write = must_write  # whether missing files of the lake may be created
        has_manifest = (at / "manifest.sqlite").exists()
        self.is_read_only = has_manifest and (is_read_only(at) or not (must_write or has_room(at)))
        if self.is_read_only and must_write:
            raise BadInput(
                f"the lake at {root} is read-only, and this command must write to it; "
                "use a copy made by traffic backup."
            )
        super().__init__(at, Path(tempfile.mkdtemp(prefix="traffic-")) if self.is_read_only else at)
        if self.is_read_only:
            self._cleanup = weakref.finalize(self, shutil.rmtree, self.seeds, ignore_errors=True)
            self._copies = self.seeds / "databases"
            self._copies.mkdir()
        if any(character in str(self.root) for character in _PATH_WILDCARDS):
            raise BadInput(
                f"the lake cannot be at {self.root}: its path may not contain any of {' '.join(_PATH_WILDCARDS)}."
            )
        if self.root.is_symlink() and not self.root.exists():
            target = self.root.readlink()
            raise BadInput(f"{root} is a symbolic link to {target}, which does not exist; is its disk mounted?")
        if not create and not (self.root / "manifest.sqlite").exists() and not self.has_visits():
            raise BadInput(f"there is no lake at {root}; import a log first, or set TRAFFIC_LAKE to another folder.")
        try:
            for folder in (self.staging,) if self.is_read_only else (self.staging, self.rejects, self.ip_lists):
                make_durably(folder)
            _ = self.seed_visits, self.seed_links, self.seed_link_changes  # written if they are missing
            network = network_file_system(self.root)
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            raise BadInput(f"the lake at {root} cannot be written: {error.strerror}{where}.") from error
        if network:
            raise BadInput(
                f"the lake cannot be at {root}: {network} is a network file system, where a crash may lose "
                "acknowledged visits; choose a local disk."
            )
        self.manifest = Manifest(
            self.root / "manifest.sqlite",
            _LOST_MANIFEST if self.has_visits() else "",
            partial(_open_read_only, self._copies) if self.is_read_only else open_database,
            is_shared=not self.is_read_only,
        )

    def open_database(self, path: Path, migrations: Sequence[str], refuse_new: str) -> sqlite3.Connection:
        """Open a database of this lake as `schema.open_database` does, but read-only if the lake is read-only."""
        if self.is_read_only:
            return _open_read_only(self._copies, path, migrations, refuse_new)
        return open_database(path, migrations, refuse_new)

    def read_database(self, path: Path) -> sqlite3.Connection:
        """Open an existing database of this lake for reading, without migrating it. Raises sqlite3.Error or OSError."""
        if self.is_read_only:
            return connect_read_only(path, self._copies)
        return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)

    def has_visits(self) -> bool:
        """Return whether the lake has visit files, registered or not. If it does, its databases cannot be new."""
        return next(self.root.glob("visits/organization=[!_]*/day=*/*.parquet"), None) is not None

    @contextmanager
    def import_lock(self) -> Iterator[None]:
        """Lock out imports and followers in all processes. Waits until they release the lock; all their visits are then
        visible.

        Live visits need no lock: they are already in the manifest, and are moved into files in one transaction. Raises
        OutdatedManifest.
        """
        with locked(self.root, wait=True):
            self.manifest.check_current()
            yield

    @contextmanager
    def rewrite_lock(self, wait: bool = True, organization: str | None = None) -> Iterator[bool]:
        """Lock out other rewrites of live files. With `organization`, rewrites of other organizations are not blocked.

        Yields False if `wait` is False and the lock is already held. A caller that needs both locks must acquire
        `import_lock` first. Raises OutdatedManifest.
        """
        visits, links = self.root / "visits", self.root / "links"
        with ExitStack() as held, ExitStack() as turn:
            # waiting for all organizations keeps its place in the queue: later callers cannot overtake it
            has_lock = (turn if organization else held).enter_context(locked(visits, wait))
            if has_lock:
                has_lock = held.enter_context(locked(links, wait, is_shared=organization is not None))
            turn.close()
            if has_lock and organization:
                own = visits / f"organization={organization}"
                make_durably(own)
                has_lock = held.enter_context(locked(own, wait))
            self.manifest.check_current()
            yield has_lock

    def delete_uncommitted(self, paths: Iterable[str]) -> None:
        """Delete files that were moved into place before their commit failed, unless they are registered.

        While the disk fails, the files stay: the write-ahead log may contain their commit, which the next program to
        open the manifest would apply. Therefore, another commit must replace it first.
        """
        with suppress(sqlite3.OperationalError, OutdatedManifest):
            self.manifest.check_writable()
            with self.manifest.locked():
                for path in paths:
                    if not self.manifest.files.is_registered(path):
                        (self.root / path).unlink(missing_ok=True)

    def keep_seeds(self) -> bool:
        """Keep the temporary folder with the seeds that a read-only lake lacks. Returns whether it lacks any."""
        has_seeds = self.is_read_only and any(self.seeds.glob("*/organization=_seed"))
        if has_seeds:
            self._cleanup.detach()
            shutil.rmtree(self._copies)
            shutil.rmtree(self.staging)
        return has_seeds

    def visit_files(self, organization: str, start: date, end: date) -> list[str]:
        """Return the paths of an organization's live files in a range of days, the seed first.

        Files with a size, change time or inode other than in the manifest are hashed first. Raises LakeDamaged.
        """
        return [self.seed_visits, *(self.verified_path(file) for file in self.live_files(organization, start, end))]

    def live_files(self, organization: str, start: date, end: date) -> list[LandedFile]:
        """Return an organization's live files in a range of days, without verifying them."""
        files = self.manifest.files.live(organization, start, end)
        if not all(os.path.exists(f"{self.root}/{file.path}") for file in files):  # noqa: PTH110  # three times as fast
            files = self.manifest.files.live(organization, start, end)  # read again: some files were just erased
        return files

    def verified_path(self, file: LandedFile) -> str:
        """Return the path of a live visit file after verifying it with `intact_path`.

        Raises LakeDamaged if it is missing or damaged, and NewerVersion if a newer version of this program wrote it.
        """
        check_version(file.schema_version, f"{self.root}/{file.path}")
        return self.intact_path(file)

    def domains_in(self, file: LandedFile) -> set[str | None]:
        """Return the domains of the visits in a live file; None for visits without a domain. Raises the exceptions of
        verified_path.
        """
        domains = pq.read_table(self.verified_path(file), columns=["domain"])["domain"]
        return set(domains.unique().to_pylist())

    def intact_path(self, file: StoredFile) -> str:
        """Return the path of a live file, after hashing it if its size, change time or inode has changed.

        Raises LakeDamaged if it is missing or damaged.
        """
        path = f"{self.root}/{file.path}"
        stat = _stat(path)
        if (stat.st_size, stat.st_ctime_ns, stat.st_ino) != (file.size, file.changed_ns, file.inode):
            self.recheck(file)
        return path

    def recheck(self, file: StoredFile) -> None:
        """Hash a live file and record in the manifest whether it is intact. Raises LakeDamaged if it is damaged or
        missing.
        """
        path = self.root / file.path
        stat = _stat(path)
        is_intact = sha256_of(path) == file.sha256
        if is_intact or stat.st_ctime_ns == file.changed_ns:  # otherwise it is due for a recheck already
            with suppress(sqlite3.OperationalError, OutdatedManifest):  # the next reader hashes it again
                self.manifest.files.refresh_stat(
                    file.path, stat.st_ctime_ns if is_intact else 0, stat.st_ino, datetime.now(UTC)
                )
        if not is_intact:
            raise LakeDamaged(f"{path} is damaged (its SHA-256 differs); restore it from a backup.")


def _open_read_only(copies: Path, path: Path, migrations: Sequence[str], _refuse_new: str) -> sqlite3.Connection:
    return open_database_read_only(path, migrations, copies)


def _stat(path: Path | str) -> os.stat_result:
    try:
        return os.stat(path)  # noqa: PTH116  # a Path takes three times as long, and each query does this for each file
    except OSError as error:
        raise LakeDamaged(f"{path} is missing; restore it from a backup.") from error
