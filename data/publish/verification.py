"""Verifies the copies of a lake: each object of a table is there with the bytes its name says, and none besides."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from data.errors import TrafficError
from data.publish.publisher import unnamed
from data.publish.tables import SHA256_DIGITS, dead_paths, tables
from data.store.copies import copies
from data.store.lake import Lake
from data.store.target import open_target


class CopyFinding(NamedTuple):
    """What is wrong at a target."""

    place: str  # an object, or a target that cannot be reached
    reason: str


def verify_copies(lake: Lake, organization: str = "") -> Iterator[CopyFinding]:
    """Read every object of the copies of an organization, or of all, and yield what is wrong with them."""
    for copy in copies(lake, organization=organization):
        target = open_target(copy.target)
        if copy.due_since:
            since = f"{copy.due_since:%Y-%m-%d %H:%M} UTC"
            yield CopyFinding(copy.target, f"may hold visits of {copy.organization} that were erased since {since}")
        try:
            for table in tables(target, copy.organization):
                dead = dead_paths(lake, copy.organization)
                state, sizes = table.read(), target.list(f"{table.folder}/")
                for path, file in state.files.items():
                    key = f"{table.folder}/{path}"
                    body = target.get(key) if sizes.get(key) == file.size else None
                    if body is None:
                        yield CopyFinding(f"{target.name}/{key}", "is missing, or has another size than the log says")
                    elif not path.rpartition("/")[2].startswith(hashlib.sha256(body).hexdigest()[:SHA256_DIGITS]):
                        yield CopyFinding(f"{target.name}/{key}", "is not what was published (its SHA-256 differs)")
                for key in unnamed(target, table, state, dead):
                    place = f"{target.name}/{key}"
                    yield CopyFinding(place, "is named by neither log nor manifest; `traffic publish` deletes it")
        except TrafficError as error:
            yield CopyFinding(copy.target, str(error))
