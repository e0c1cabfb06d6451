"""The order of link files, from their footers alone: each file has a number, and a file of changes names its base
file.
"""

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from data.disk.files import READ_ERRORS, RegisteredFile
from data.manifest.links import LiveLinks

SEQUENCE: Final = "traffic.sequence"
"""The footer key for a number that increases with each file."""
WHOLE: Final = "traffic.whole"
"""The footer key, in a file of changes, for the name of its base file."""
OF_CHANGES: Final = ".changes.parquet"
"""The file name suffix of a file of changes."""
_IMPORTED_AT: Final = "traffic.imported_at"
"""The footer key for a time, which files written by version 1.0.0 have instead of a number."""


def newest_links(root: Path) -> dict[str, LiveLinks]:
    """Return the newest link files of each organization in the lake at `root`, without reading the manifest."""
    folders = sorted((root / "links").glob("organization=[!_]*"))
    found = {folder.name.removeprefix("organization="): newest_of(root, folder.glob("*.parquet")) for folder in folders}
    return {organization: newest for organization, newest in found.items() if newest.paths}


def newest_of(root: Path, paths: Iterable[Path]) -> LiveLinks:
    """Return the newest of an organization's link files; a file of changes comes with its base file.

    Damaged files count as the newest, so that they are noticed, as a missing base file is.
    """
    ordered = sorted(paths, key=lambda path: (sequence_of(path), path.name))
    whole, changes = [path for path in ordered if not path.name.endswith(OF_CHANGES)], None
    if ordered and ordered[-1] not in whole:
        changes = ordered[-1]
        below = _footer(changes).get(WHOLE, "")
        whole = [changes.with_name(below)] if below else whole
    return LiveLinks(_registered(root, whole[-1]) if whole else None, _registered(root, changes) if changes else None)


def sequence_of(path: Path) -> int:
    """Return the number of a link file; the highest possible number for a damaged file."""
    footer = _footer(path)
    try:
        if SEQUENCE in footer:
            return int(footer[SEQUENCE])
        return int(datetime.fromisoformat(footer[_IMPORTED_AT]).timestamp() * 1_000_000)
    except (KeyError, ValueError):
        return sys.maxsize


def next_sequence(paths: Iterable[Path], now: datetime) -> int:
    """Return a number higher than any intact file's: the microseconds since 1970, if the clock is right."""
    known = [number for number in map(sequence_of, paths) if number < sys.maxsize]  # damaged files are replaced
    return max([number + 1 for number in known] + [int(now.timestamp() * 1_000_000)])


def _footer(path: Path) -> dict[str, str]:
    """Return the metadata in a file's footer; an empty mapping for a damaged file."""
    try:
        return {key.decode(): value.decode() for key, value in (pq.read_metadata(path).metadata or {}).items()}
    except READ_ERRORS:
        return {}


def _registered(root: Path, path: Path) -> RegisteredFile:
    """Return a record for adding a file to the manifest. The hash is taken from the file's name."""
    size, inode = (path.stat().st_size, path.stat().st_ino) if path.exists() else (0, 0)
    return RegisteredFile(path.relative_to(root).as_posix(), size, path.name.partition("-")[0], 0, inode)
