"""Verification of a lake: the SHA-256 of its visit files, its tables, its databases and the visits that wait.

Damage is reported and left as it is; copies to restore from are made in backup.py.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import LakeDamaged
from data.store.files import version_of
from data.store.lake import LINKS, Lake
from data.store.manifest import LandedFile
from data.store.pending import check_pending
from data.store.rollups import damaged_rollups
from data.visits import VISITS, version_problem, visits_schema

DATABASES: Final = ("manifest.sqlite", "control.sqlite")
"""What SQLite keeps of a lake, apart from the salts, which may be lost."""

Progress = Callable[[int, int], None]
"""Called with the bytes checked so far and the bytes to check."""


class Finding(NamedTuple):
    """A file that cannot be trusted, by its path in the lake, and why."""

    path: str
    reason: str


@dataclass
class VerificationResult:
    """What a check looked at and what it found."""

    files: int = 0
    visits: int = 0
    size: int = 0
    orphans: int = 0  # visit files that no manifest knows; nobody reads them
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_manifest_damaged(self) -> bool:
        """Whether nobody can say what else is damaged."""
        return any(finding.path == DATABASES[0] for finding in self.findings)


def verify_lake(lake: Lake, organization: str = "", progress: Progress | None = None) -> VerificationResult:
    """Look at everything that one organization, or any, has in the lake. What is damaged stops nothing else."""
    found = VerificationResult()
    for name in DATABASES:
        _report(found, name, _database_problem(lake.root / name))
    _check_tables(lake, organization, found)
    try:
        _check_visits(lake, organization, found, progress)
        for path in damaged_rollups(lake, organization):
            _report(found, path, "is damaged: its SHA-256 differs; run `traffic compact` to rebuild it")
        found.orphans = _orphans(lake, organization)
        _check_pending(lake, organization, found)
    except sqlite3.DatabaseError as error:
        if not found.is_manifest_damaged:
            _report(found, DATABASES[0], f"cannot be used: {error}")
    return found


def _report(found: VerificationResult, path: str, reason: str) -> None:
    if reason:
        found.findings.append(Finding(path, reason))


def _database_problem(path: Path) -> str:
    if not path.exists():  # keys and jobs there need not be
        return ""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)) as db:
            return integrity_error(db)
    except sqlite3.DatabaseError as error:
        return f"cannot be used: {error}"


def integrity_error(database: sqlite3.Connection) -> str:
    """The first thing that SQLite finds wrong with a database; '' when it is sound."""
    ((result, *_), *_) = database.execute("PRAGMA integrity_check").fetchall()
    return "" if result == "ok" else f"is damaged: {' '.join(result.split())}"


def _check_tables(lake: Lake, organization: str, found: VerificationResult) -> None:
    """Look at what no manifest knows the bytes of: the seeds, and links."""
    for name, schema in ((lake.seed_visits, VISITS), (lake.seed_links, LINKS)):
        path, problem = Path(name), _table_problem(Path(name), schema)
        _report(found, str(path.relative_to(lake.root)), problem and f"{problem}; delete it, and it will be recreated")
    folder = f"organization={organization}" if organization else "organization=[!_]*"
    for path in sorted((lake.root / "links").glob(f"{folder}/links.parquet")):
        _report(found, str(path.relative_to(lake.root)), _table_problem(path, LINKS))


def _table_problem(path: Path, schema: pa.Schema) -> str:
    try:
        with pq.ParquetFile(path) as file:
            file.read()
            return "" if file.schema_arrow.equals(schema) else "has unexpected columns"
    except FileNotFoundError:  # replaced or removed this moment
        return ""
    except (OSError, pa.ArrowException) as error:
        return _unreadable(error)


def _unreadable(error: Exception) -> str:
    return f"cannot be read: {' '.join(str(error).split())}"


def _check_visits(lake: Lake, organization: str, found: VerificationResult, progress: Progress | None) -> None:
    organizations = [organization] if organization else lake.manifest.organizations()
    files = [file for name in organizations for file in lake.manifest.live_files(name)]
    size = sum(file.size for file in files)
    for file in files:
        _report(found, file.path, _visit_file_problem(lake, file))
        found.files += 1
        found.visits += file.visits
        found.size += file.size
        if progress:
            progress(found.size, size)


def _visit_file_problem(lake: Lake, file: LandedFile) -> str:
    try:
        lake.recheck(file)
        with pq.ParquetFile(lake.root / file.path) as parquet:
            return _footer_problem(file, parquet.metadata, parquet.schema_arrow)
    except (LakeDamaged, FileNotFoundError):
        if (lake.root / file.path).exists():
            return "is damaged: its SHA-256 differs"
        return "is missing" if lake.manifest.is_live(file.path) else ""  # erased since it was listed
    except (OSError, ValueError, pa.ArrowException) as error:
        return _unreadable(error)


def _footer_problem(file: LandedFile, footer: pq.FileMetaData, schema: pa.Schema) -> str:
    version, visits = version_of(footer), footer.num_rows
    if problem := version_problem(max(version, file.schema_version)):
        return problem
    if version != file.schema_version:
        return f"holds visits of schema version {version}, the manifest says {file.schema_version}"
    if _types(schema) != _types(visits_schema(version)):
        return "has unexpected columns"
    return "" if visits == file.visits else f"contains {visits:,} visits, but the manifest says {file.visits:,}"


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns by name: in which order they lie does not matter."""
    return {field.name: field.type for field in schema}


def _check_pending(lake: Lake, organization: str, found: VerificationResult) -> None:
    try:
        check_pending(lake.manifest, organization)
    except LakeDamaged as error:
        _report(found, DATABASES[0], str(error))


def _orphans(lake: Lake, organization: str) -> int:
    """How many files lie among the visits that no manifest knows."""
    folder = lake.root / "visits" / (f"organization={organization}" if organization else "")
    there = [path for path in folder.rglob("*") if path.is_file() and str(path) != lake.seed_visits]
    known = {lake.root / path for (path,) in lake.manifest.rows("SELECT path FROM files")}
    unknown = [path for path in there if path not in known]
    if not unknown:
        return 0
    with lake.manifest.transaction():  # nobody is placing files now: a batch that is about to land has none here
        return sum(
            path.exists() and not lake.manifest.is_registered(str(path.relative_to(lake.root))) for path in unknown
        )
