"""The published tables of an organization: their folders at a target, and the names of their files."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from data.buckets.target import ObjectStore
from data.publish.delta import DeltaLog, PublishedFile, TableState
from data.store.footers import read_visit_file
from data.store.lake import Lake, StoredFile
from data.store.layout import LINKS
from data.visits import VISITS

SHA256_DIGITS: Final = 16
"""Number of digits of a file's SHA-256 at the beginning of its name at a target."""


def tables(target: ObjectStore, organization: str, mark: str) -> tuple[DeltaLog, DeltaLog]:
    """Return the logs of an organization's tables at a target: visits and links. `mark` is the id of the lake."""
    return (
        DeltaLog(target, f"{organization}/visits", VISITS, mark, is_partitioned=True),
        DeltaLog(target, f"{organization}/links", LINKS, mark, is_partitioned=False),
    )


def live_visits(lake: Lake, organization: str) -> dict[PublishedFile, StoredFile]:
    """Return the files that an organization's table of visits must have, with their source files in the lake."""
    return {
        PublishedFile(visits_path(one.day, one.path, one.sha256), str(one.day), one.size, one.visits): one
        for one in lake.manifest.files.live(organization)
    }


def live_links(lake: Lake, organization: str) -> dict[PublishedFile, StoredFile]:
    """Return the files that an organization's table of links must have, with their sources. The caller must have folded
    the changes to links.
    """
    stored = lake.manifest.links.live(organization).whole
    return {PublishedFile(links_path(stored.sha256), "", stored.size, None): stored} if stored else {}


def content_of(paths: Iterable[str]) -> str:
    """Return a SHA-256 that identifies the files' contents, since each path contains digits of its file's SHA-256."""
    return hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()


def visits_path(day: object, path: str, sha256: str) -> str:
    """Return the path of a visit file in its organization's table; `path` is its path in the lake."""
    return f"day={day}/{sha256[:SHA256_DIGITS]}-{Path(path).name}"


def links_path(sha256: str) -> str:
    """Return the path of a link file in its organization's table."""
    return f"{sha256[:SHA256_DIGITS]}.parquet"


def dead_paths(lake: Lake, organization: str) -> list[str]:
    """Return the paths of replaced files in an organization's tables; readers of old versions may still use them."""
    visits = [visits_path(*file) for file in lake.manifest.files.dead(organization)]
    return [*visits, *map(links_path, lake.manifest.links.dead_hashes(organization))]


def replaced_paths(lake: Lake, organization: str) -> list[str]:
    """Return the paths of replaced visit files, except files with an unfinished last line, which may have changed."""
    return [visits_path(*file) for file in lake.manifest.files.dead(organization, with_unfinished=False)]


def by_name_in_lake(files: Mapping[str, PublishedFile], paths: list[str]) -> dict[str, PublishedFile]:
    """Return the files that have these paths, keyed by their names in the lake."""
    return {path.rpartition("/")[2][SHA256_DIGITS + 1 :]: files[path] for path in paths if path in files}


def merged_from(file: Path, visits: int, published: Mapping[str, PublishedFile]) -> list[str]:
    """Return the paths of the published files that a lake file replaced if they have exactly its visits; otherwise, [].

    `published` are dead files of the same organization, keyed by their names in the lake. They come from a version of
    the log with the manifest's epoch, so none of their values has changed since. Raises LakeDamaged if `file` cannot be
    read.
    """
    replaced = [published[name] for name in read_visit_file(file).footer.replaces if name in published]
    return [one.path for one in replaced] if sum(one.rows or 0 for one in replaced) == visits else []


def unnamed_objects(target: ObjectStore, table: DeltaLog, state: TableState, kept: Iterable[str]) -> list[str]:
    """Return the sorted keys of a table's objects that neither its log nor `kept` (paths) lists."""
    named = table.keys(state) | {f"{table.folder}/{path}" for path in (*state.files, *kept)}
    return sorted(target.list(f"{table.folder}/").keys() - named)
