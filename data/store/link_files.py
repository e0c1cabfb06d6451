"""The files with the links of organizations, one live file for each.

A file is named by its SHA-256 and is never changed, only replaced; the manifest says which one is live.
"""

import sqlite3
import uuid
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from data.disk.files import UNREADABLE, RegisteredFile, move_into_lake, sha256_of, write_parquet
from data.errors import LakeDamaged
from data.manifest.clock import format_time, unchecked_bounds
from data.manifest.files import READERS_GRACE
from data.store.lake import Lake
from data.store.layout import LINKS

_LIVE: Final = "SELECT path, bytes, sha256, changed_ns, inode FROM links WHERE deletable_at IS NULL"
_IMPORTED_AT: Final = "traffic.imported_at"
"""The key in the footer that says which of two files is the newer one, if the manifest was lost."""


def replace_links(lake: Lake, organization: str, links: pa.Table, made: Collection[str] = ()) -> None:
    """Make a table of LINKS the links of an organization. Whenever this is killed, either the old or the new are live.

    The old file is deleted after READERS_GRACE, by a sweep. `made`: as in `note_made`, at the same time.
    """
    staged = lake.staging / f"links-{uuid.uuid4()}.parquet"
    now = datetime.now(UTC)
    try:
        write_parquet([links], LINKS, staged, metadata={_IMPORTED_AT: format_time(now)})
        sha256 = sha256_of(staged)
        target = lake.links_folder(organization) / f"{sha256}-{uuid.uuid4().hex[:8]}.parquet"  # readers keep the old
        name = str(target.relative_to(lake.root))
        try:
            with lake.manifest.transaction() as db:
                db.execute(
                    "UPDATE links SET deletable_at = ? WHERE organization = ? AND deletable_at IS NULL",
                    [format_time(now + READERS_GRACE), organization],
                )
                insert_links(db, organization, move_into_lake(staged, lake.root, name, sha256), now)
                if made:
                    note_made(db, organization, made)
        except BaseException:
            if target.exists():
                lake.delete_uncommitted([name])
            raise
    finally:
        staged.unlink(missing_ok=True)
    with suppress(sqlite3.OperationalError), lake.manifest.transaction():  # no other process moves files meanwhile
        for path in lake.links_folder(organization).glob("*.parquet"):
            if not lake.manifest.is_registered(str(path.relative_to(lake.root))):
                path.unlink()  # a killed import left it


def note_made(db: sqlite3.Connection, organization: str, ids: Collection[str]) -> None:
    """Note which of the edits that wait elsewhere were made, instead of those noted before. The caller has begun a
    transaction.
    """
    db.execute("DELETE FROM made_edits WHERE organization = ?", [organization])
    db.executemany("INSERT INTO made_edits VALUES (?, ?)", [(organization, one) for one in ids])


def made_edits(lake: Lake, organization: str) -> set[str]:
    """The ids of the edits that were noted last."""
    rows = lake.manifest.rows("SELECT id FROM made_edits WHERE organization = ?", [organization])
    return {one for (one,) in rows}


def link_files(lake: Lake, organization: str) -> list[str]:
    """The paths of the link files of one organization, the seed first. Raises LakeDamaged."""
    stored = stored_links(lake, organization)
    return [lake.seed_links, intact_links(lake, stored)] if stored else [lake.seed_links]


def stored_links(lake: Lake, organization: str) -> RegisteredFile | None:
    """The live file of an organization's links; None when it has none."""
    rows = lake.manifest.rows(f"{_LIVE} AND organization = ?", [organization])
    return RegisteredFile(*rows[0]) if rows else None


def newest_links(root: Path) -> dict[str, RegisteredFile]:
    """The newest file of links of each organization in the lake at `root`, whatever the manifest says."""
    newest = {}
    for folder in sorted((root / "links").glob("organization=[!_]*")):
        if paths := sorted(folder.glob("*.parquet"), key=_imported_at):
            path, stat, sha256 = paths[-1], paths[-1].stat(), paths[-1].name.partition("-")[0]
            links = RegisteredFile(path.relative_to(root).as_posix(), stat.st_size, sha256, 0, stat.st_ino)
            newest[folder.name.removeprefix("organization=")] = links
    return newest


def intact_links(lake: Lake, stored: RegisteredFile) -> str:
    """The path of a live file of links, hashed first if it seems to have changed. Raises LakeDamaged."""
    try:
        return lake.intact_path(stored)
    except LakeDamaged as error:
        raise LakeDamaged(f"{str(error).removesuffix('.')}, or import all links with --replace.") from error


def all_stored_links(lake: Lake, organization: str = "", before: datetime | None = None) -> list[RegisteredFile]:
    """The live files of links of one organization, or of all; with `before`, only those last verified before it."""
    rows = lake.manifest.rows(
        f"{_LIVE} AND ? IN ('', organization) AND checked_at NOT BETWEEN ? AND ? ORDER BY organization",
        [organization, *unchecked_bounds(before)],
    )
    return [RegisteredFile(*row) for row in rows]


def insert_links(db: sqlite3.Connection, organization: str, links: RegisteredFile, now: datetime) -> None:
    """Register the live links of an organization. The caller has begun a transaction."""
    db.execute(
        "INSERT INTO links (organization, path, bytes, sha256, changed_ns, inode, checked_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [organization, *links, format_time(now)],
    )


def _imported_at(path: Path) -> str:
    """When links were imported, to sort by; damaged ones come last."""
    try:
        footer = pq.read_metadata(path).metadata or {}
        return str(footer.get(_IMPORTED_AT.encode(), b"").decode())
    except UNREADABLE:
        return "~"
