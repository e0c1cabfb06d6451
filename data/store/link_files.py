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

from data.disk.files import READ_ERRORS, RegisteredFile, move_into_lake, sha256_of, write_parquet
from data.errors import LakeDamaged
from data.manifest.clock import format_time
from data.store.lake import Lake
from data.store.layout import LINKS

_IMPORTED_AT: Final = "traffic.imported_at"
"""The key in the footer that says which of two files is the newer one, if the manifest was lost."""


def replace_links(lake: Lake, organization: str, links: pa.Table, made: Collection[str] = ()) -> None:
    """Make a table of LINKS the links of an organization. Whenever this is killed, either the old or the new are live.

    The old file is deleted after READERS_GRACE, by a sweep. `made`: the edits
    that wait elsewhere which it makes, noted at the same time.
    """
    staged = lake.staging / f"links-{uuid.uuid4()}.parquet"
    now = datetime.now(UTC)
    try:
        write_parquet([links], LINKS, staged, metadata={_IMPORTED_AT: format_time(now)})
        sha256 = sha256_of(staged)
        target = lake.links_folder(organization) / f"{sha256}-{uuid.uuid4().hex[:8]}.parquet"  # readers keep the old
        name = str(target.relative_to(lake.root))
        try:
            lake.manifest.links.replace(
                organization, lambda: move_into_lake(staged, lake.root, name, sha256), now, made
            )
        except BaseException:
            if target.exists():
                lake.delete_uncommitted([name])
            raise
    finally:
        staged.unlink(missing_ok=True)
    with suppress(sqlite3.OperationalError), lake.manifest.exclusive():  # no other process moves files meanwhile
        for path in lake.links_folder(organization).glob("*.parquet"):
            if not lake.manifest.files.is_registered(str(path.relative_to(lake.root))):
                path.unlink()  # a killed import left it


def link_files(lake: Lake, organization: str) -> list[str]:
    """The paths of the link files of one organization, the seed first. Raises LakeDamaged."""
    stored = lake.manifest.links.live(organization)
    return [lake.seed_links, intact_links(lake, stored)] if stored else [lake.seed_links]


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


def _imported_at(path: Path) -> str:
    """When links were imported, to sort by; damaged ones come last."""
    try:
        footer = pq.read_metadata(path).metadata or {}
        return str(footer.get(_IMPORTED_AT.encode(), b"").decode())
    except READ_ERRORS:
        return "~"
