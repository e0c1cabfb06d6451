"""Verifies a lake: its databases, seeds and pending visits, and its visits, links and rollups by their SHA-256.

Nothing is repaired, but damaged rollups expire.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from data.disk.files import READ_ERRORS, RegisteredFile, link_problem, version_of
from data.errors import LakeDamaged
from data.manifest.files import LandedFile
from data.progress import Progress, ignore_progress
from data.store.lake import Lake
from data.store.layout import LINK_CHANGES, LINKS
from data.store.link_files import schema_of_links, without_tags
from data.store.pending import check_pending
from data.store.rollups import damaged_rollups
from data.store.unknown import unknown_files
from data.text import plural
from data.visits import VISITS, version_problem, visits_schema

DATABASES: Final = ("manifest.sqlite", "control.sqlite")
"""The SQLite databases of a lake that are included in backups."""


class DamagedFile(NamedTuple):
    """A damaged file: its path in the lake, and what is wrong with it."""

    path: str
    reason: str


@dataclass
class VerificationResult:
    """Counts of verified files and visits, and the findings."""

    files: int = 0
    visits: int = 0
    size: int = 0
    unknown: int = 0  # visit files that are not in the manifest and therefore not read
    findings: list[DamagedFile] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Missing databases: the lake does not record whether they existed."""

    @property
    def is_manifest_damaged(self) -> bool:
        """True if the manifest is damaged, in which case other damage may be undetected."""
        return any(finding.path == DATABASES[0] for finding in self.findings)


def verify_lake(lake: Lake, organization: str = "", progress: Progress = ignore_progress) -> VerificationResult:
    """Verify the data of one organization, or of all. Damage does not end the verification."""
    result = VerificationResult()
    for name in (*DATABASES, lake.salts.name):
        _report(result, name, _database_problem(lake, lake.root / name))
        if not (lake.root / name).exists():
            result.absent.append(name)
    seeds = {lake.seed_visits: VISITS, lake.seed_links: LINKS, lake.seed_link_changes: LINK_CHANGES}
    for seed, schema in seeds.items():
        problem = _table_problem(Path(seed), schema)
        _report(result, os.path.relpath(seed, lake.root), problem and f"{problem}; delete it, and it will be recreated")
    try:
        _report(result, DATABASES[0], lake.manifest.problem)
        for links in lake.manifest.links.all_live(organization):
            _report(result, links.path, _links_problem(lake, links))
        organizations = [organization] if organization else lake.manifest.organizations.names()
        known = lake.manifest.files
        files = [file for name in organizations for file in (*known.live(name), *known.removal_records(name))]
        size = sum(file.size for file in files)
        for file in files:
            _report(result, file.path, _visit_file_problem(lake, file))
            result.files += 1
            result.visits += file.visits
            result.size += file.size
            progress(result.size, size)
        for path in damaged_rollups(lake, organization):
            _report(result, path, "is damaged: its SHA-256 differs; run `traffic compact` to rebuild it")
        result.unknown = len(unknown_files(lake, organization))
        try:
            check_pending(lake.manifest, organization)
        except LakeDamaged as error:
            _report(result, DATABASES[0], str(error))
    except sqlite3.DatabaseError as error:
        if not result.is_manifest_damaged:
            _report(result, DATABASES[0], f"cannot be used: {error}")
    return result


def _report(result: VerificationResult, path: str, reason: str) -> None:
    if reason:
        result.findings.append(DamagedFile(path, reason))


def _database_problem(lake: Lake, path: Path) -> str:
    if not path.exists():  # not damage: a lake may have no keys, jobs or salts
        return ""
    if not os.access(path, os.R_OK):
        return "cannot be read by this user"
    try:
        with closing(lake.read_database(path)) as db:
            is_empty = db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
            return "is empty: its contents are lost" if is_empty else integrity_error(db)
    except (sqlite3.DatabaseError, OSError) as error:
        return f"cannot be used: {error}"


def integrity_error(database: sqlite3.Connection) -> str:
    """Return the first problem that SQLite's integrity_check reports; '' if there is none."""
    ((result, *_), *_) = database.execute("PRAGMA integrity_check").fetchall()
    return "" if result == "ok" else f"is damaged: {' '.join(result.split())}"


def _links_problem(lake: Lake, links: RegisteredFile) -> str:
    try:
        lake.recheck(links)
    except LakeDamaged:
        if not lake.manifest.files.is_live(links.path):  # just replaced
            return ""
        problem = "is damaged: its SHA-256 differs" if (lake.root / links.path).exists() else "is missing"
        return f"{problem}; restore it from a backup, or import all links with --replace"
    return _table_problem(lake.root / links.path, schema_of_links(links.path))


def _table_problem(path: Path, schema: pa.Schema) -> str:
    try:
        with pq.ParquetFile(path) as file:
            file.read()
            known = (schema, without_tags(schema))
            return "" if any(map(file.schema_arrow.equals, known)) else "has unexpected columns"
    except FileNotFoundError:  # just replaced or removed
        return ""
    except READ_ERRORS as error:
        return _read_problem(error)


def _read_problem(error: Exception) -> str:
    return f"cannot be read: {' '.join(str(error).split())}"


def _visit_file_problem(lake: Lake, file: LandedFile) -> str:
    if problem := link_problem(lake.root, lake.root / file.path):
        return f"cannot be read: {problem}"
    try:
        lake.recheck(file)
        with pq.ParquetFile(lake.root / file.path) as parquet:
            return _footer_problem(file, parquet.metadata, parquet.schema_arrow)
    except (LakeDamaged, FileNotFoundError):
        if (lake.root / file.path).exists():
            return "is damaged: its SHA-256 differs"
        return "is missing" if lake.manifest.files.is_live(file.path) else ""  # erased since it was listed
    except READ_ERRORS as error:
        return _read_problem(error)


def _footer_problem(file: LandedFile, footer: pq.FileMetaData, schema: pa.Schema) -> str:
    version, visits = version_of(footer), footer.num_rows
    if problem := version_problem(max(version, file.schema_version)):
        return problem
    if version != file.schema_version:
        return f"contains visits of schema version {version}, but the manifest records {file.schema_version}"
    if {field.name: field.type for field in schema} != {field.name: field.type for field in visits_schema(version)}:
        return "has unexpected columns"
    return (
        "" if visits == file.visits else f"contains {plural(visits, 'visit')}, but the manifest records {file.visits:,}"
    )
