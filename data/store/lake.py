"""The lake: one folder that holds everything the service remembers. Who may read what is not decided here."""

import fcntl
import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import BadInput, LakeDamaged
from data.store.files import make_durably, network_file_system, sha256_of, versioned, write_durably
from data.store.manifest import LandedFile, Manifest
from data.visits import SCHEMA_VERSION, VISITS, check_version

LINKS: Final = pa.schema(
    [
        ("organization", pa.string()),
        ("short_code", pa.string()),
        ("domain", pa.string()),  # "": the link works on every domain
        ("target_url", pa.string()),
        ("created_at", pa.timestamp("us")),  # UTC
    ]
)
"""The columns of one organization's links.parquet."""


_PATH_WILDCARDS: Final = "*?[]{}="
"""DuckDB takes a path with these for a pattern, or for partitions."""


class Lake:
    """An open lake. Its manifest says which visit files are live; its seed files are empty and always there.

    An empty file of each kind lets a query be planned, and its columns be described, with nothing imported yet.
    """

    def __init__(self, root: Path, create: bool = False) -> None:
        """Open the lake at `root`, or make one there. Raises BadInput when there is none and `create` is off."""
        self.root = root.absolute()
        if any(character in str(self.root) for character in _PATH_WILDCARDS):
            raise BadInput(
                f"the lake cannot lie at {self.root}: its path may not contain any of {' '.join(_PATH_WILDCARDS)}"
            )
        if not create and not (self.root / "manifest.sqlite").exists():
            raise BadInput(f"there is no lake at {root}; import a log first, or name another with TRAFFIC_LAKE.")
        try:
            for folder in (self.staging, self.rejects, self.ip_lists):
                make_durably(folder)
            self.seed_visits = self._seed(
                "visits/organization=_seed/day=1970-01-01/seed.parquet", VISITS, versioned(SCHEMA_VERSION)
            )
            self.seed_links = self._seed("links/organization=_seed/links.parquet", LINKS)
            network = network_file_system(self.root)
        except OSError as error:
            raise BadInput(f"the lake at {root} cannot be written: {error.strerror}.") from error
        if network:
            raise BadInput(
                f"the lake cannot lie at {root}: {network} is a network file system, on which a crash may lose "
                "what was acknowledged; choose a local disk."
            )
        self.manifest = Manifest(self.root / "manifest.sqlite")

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """Wait for other processes that land logs, and keep them waiting.

        What is inside sees everything they landed: two imports of one growing log come one after the other.
        """
        with _locked(self.root, wait=True):
            yield

    @contextmanager
    def rewrite_lock(self, wait: bool = True) -> Iterator[bool]:
        """Whether this process alone replaces live files now; without `wait` it may not come to that.

        Who needs both asks for `writing` first.
        """
        with _locked(self.root / "visits", wait) as is_held:
            yield is_held

    @property
    def staging(self) -> Path:
        """Where files are written before they count."""
        return self.root / ".staging"

    @property
    def rejects(self) -> Path:
        """Where the lines that could not be read are noted, by number and reason."""
        return self.root / "rejects"

    @property
    def ip_lists(self) -> Path:
        """Where the addresses that operators publish for their agents are kept."""
        return self.root / "ip-lists"

    @property
    def salts(self) -> Path:
        """The file of the daily salts; the one file that a backup leaves out."""
        return self.root / "salts.sqlite"

    def links(self, organization: str) -> Path:
        """Where the links of one organization lie, if it has any."""
        return self.root / "links" / f"organization={organization}" / "links.parquet"

    def visit_files(self, organization: str, start: date, end: date) -> list[str]:
        """The live files of one organization and range of days, the seed first. Raises LakeDamaged.

        A file whose size, time of change or inode is not what the manifest says is hashed before it is used.
        """
        return [self.seed_visits, *(self.verified_path(file) for file in self.live_files(organization, start, end))]

    def live_files(self, organization: str, start: date, end: date) -> list[LandedFile]:
        """The live files of one organization and range of days, not yet looked at."""
        files = self.manifest.live_files(organization, start, end)
        if not all(os.path.exists(f"{self.root}/{file.path}") for file in files):  # noqa: PTH110  # three times as fast
            files = self.manifest.live_files(organization, start, end)  # some were erased since: it knows by now
        return files

    def link_files(self, organization: str) -> list[str]:
        """The files of the links of one organization, the seed first."""
        path = self.links(organization)
        return [self.seed_links, str(path)] if path.exists() else [self.seed_links]

    def verified_path(self, file: LandedFile) -> str:
        """Where a live file lies, after a look at whether it is what was written. Raises LakeDamaged.

        What a newer version of this program wrote is refused by NewerVersion.
        """
        path = f"{self.root}/{file.path}"
        check_version(file.schema_version, path)
        stat = _stat(path)
        if (stat.st_size, stat.st_ctime_ns, stat.st_ino) != (file.size, file.changed_ns, file.inode):
            self.recheck(file)
        return path

    def recheck(self, file: LandedFile) -> None:
        """Hash a live file, and remember that it is what was written. Raises LakeDamaged; then it stays suspect."""
        path = self.root / file.path
        stat = _stat(path)
        is_sound = sha256_of(path) == file.sha256
        if is_sound or stat.st_ctime_ns == file.changed_ns:  # else it is suspect already
            with suppress(sqlite3.OperationalError):  # on a full disk the next one looks again
                self.manifest.refresh_stat(file, stat.st_ctime_ns if is_sound else 0, stat.st_ino, datetime.now(UTC))
        if not is_sound:
            raise LakeDamaged(f"{path} is not what was written (its SHA-256 differs); restore it from a backup.")

    def _seed(self, name: str, schema: pa.Schema, metadata: Mapping[str, str] | None = None) -> str:
        """Where an empty file lies; it is written when it is missing, or has other columns than files have today."""
        path = self.root / name
        if not _has_columns(path, schema):
            write_durably(schema.empty_table(), self.staging / f"seed-{uuid.uuid4()}.parquet", path, metadata)
        return str(path)


def _has_columns(path: Path, schema: pa.Schema) -> bool:
    try:
        return bool(pq.read_schema(path).equals(schema))
    except FileNotFoundError:
        return False
    except (OSError, pa.ArrowException):
        return True  # nobody knows: `traffic verify` says what is wrong with it


def _stat(path: Path | str) -> os.stat_result:
    try:
        return os.stat(path)  # noqa: PTH116  # a Path takes three times as long, and each query asks for every file
    except OSError as error:
        raise LakeDamaged(f"{path} is missing; restore it from a backup.") from error


@contextmanager
def _locked(folder: Path, wait: bool) -> Iterator[bool]:
    """Whether this process holds the lock of a folder, which ends with it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_held = True
    except BlockingIOError:
        is_held = False
    try:
        yield is_held
    finally:
        os.close(handle)
