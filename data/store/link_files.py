"""The links of each organization: a base file, and a file of later changes that is applied over it.

A file is named by its SHA-256 and is never changed, only replaced; the manifest records which files are live. An edit
writes a small file with all changes since the base file was written, however many links there are, until the changes
are folded into a new base file. The files alone are enough to restore every link.
"""

import logging
import sqlite3
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data.disk.files import move_into_lake, sha256_of, write_parquet
from data.disk.locks import locked
from data.errors import LakeDamaged
from data.manifest.links import LiveLinks, MoveLinks
from data.store.lake import Lake
from data.store.layout import LINK_CHANGES, LINKS
from data.store.link_order import OF_CHANGES, SEQUENCE, WHOLE, newest_of, next_sequence, sequence_of

_LOG: Final = logging.getLogger(__name__)
MAX_CHANGES: Final = 1_000
"""Number of changes above which an edit folds the changes immediately."""
FOLDED_FROM: Final = 200
"""Number of changes above which the background task folds the changes."""
FOLDED_AFTER: Final = timedelta(days=1)
"""Age of the oldest change at which the background task folds the changes."""
_KEY: Final = ["short_code", "domain"]
_ORDER: Final = [(name, "ascending") for name in _KEY]
_ROW_GROUP: Final = 10_000
"""Number of rows in a row group: an edit reads only the row group with the edited link."""


@contextmanager
def editing(lake: Lake, organization: str) -> Iterator[LiveLinks]:
    """Lock out other edits of links, even of other organizations, and yield the live files of one organization.

    Newer files that are not in the manifest become live first: they show that an older manifest was restored, or that a
    program was killed during an edit. Raises OutdatedManifest.
    """
    with locked(lake.links_root, wait=True):
        _adopt_newer(lake, organization)
        yield lake.manifest.links.live(organization)


def _adopt_newer(lake: Lake, organization: str) -> None:
    if unknown := _unknown(lake, organization):
        read = lake.manifest.links.live(organization)
        there = [path for path in _paths(lake, read) if path.exists()]  # an older manifest may list deleted files
        last = max(map(sequence_of, there), default=0)
        if newer := [lake.root / name for name in unknown if sequence_of(lake.root / name) > last]:
            newest = newest_of(lake.root, [*there, *newer])
            lake.manifest.links.adopt(organization, read, newest, datetime.now(UTC))
            _LOG.warning("%s: links newer than the manifest are in use again: %s.", organization, newest.paths[-1])


class LinkPaths(NamedTuple):
    """The paths of an organization's live link files; "" for a missing file."""

    whole: str = ""
    changes: str = ""


def replace_links(lake: Lake, organization: str, read: LiveLinks, links: pa.Table, made: Collection[str] = ()) -> None:
    """Replace an organization's links atomically with a table of LINKS: after a kill, the old or the new links are
    live.

    A sweep deletes the old files after READERS_GRACE. `made` are the ids of the queued edits that the table includes;
    they are recorded in the same transaction. Raises Conflict unless the `read` files are still live.
    """
    now = datetime.now(UTC)
    footer = {SEQUENCE: str(next_sequence(_paths(lake, read), now))}

    def commit(move: MoveLinks) -> None:
        lake.manifest.links.replace(organization, read, move, now, made=made)

    _write(lake, organization, links.sort_by(_ORDER), footer, commit)


def lay_over(lake: Lake, organization: str, read: LiveLinks, changes: pa.Table, made: Collection[str] = ()) -> None:
    """Apply a table of LINK_CHANGES over an organization's links atomically.

    The changes are folded if there are too many, or if there is no base file yet. `read` and `made` are the same as for
    replace_links. Raises Conflict unless the `read` files are still live, and LakeDamaged if they are damaged.
    """
    paths = intact_links(lake, read)
    if read.changes:
        changes = pa.concat_tables([_without(_read(paths.changes, LINK_CHANGES), changes), changes])
    if read.whole is None or len(changes) > MAX_CHANGES:
        whole = _read(paths.whole, LINKS)
        replace_links(lake, organization, read, _overlaid(whole, changes), made)
        return
    now = datetime.now(UTC)
    footer = {SEQUENCE: str(next_sequence(_paths(lake, read), now)), WHOLE: Path(paths.whole).name}

    def commit(move: MoveLinks) -> None:
        lake.manifest.links.change(organization, read, move, now, changes=len(changes), made=made)

    _write(lake, organization, changes, footer, commit)


def fold_links(lake: Lake, organization: str) -> bool:
    """Fold the changes to an organization's links into a new base file; return whether there were any.

    Raises LakeDamaged.
    """
    if lake.manifest.links.live(organization).changes is None:
        return False
    with editing(lake, organization) as read:
        if has_changes := read.changes is not None:
            replace_links(lake, organization, read, read_links(intact_links(lake, read)))
    return has_changes


def fold_due(lake: Lake, now: datetime, most: int = FOLDED_FROM) -> None:
    """Fold the changes of each organization with more than `most` changes, or with a change older than FOLDED_AFTER.

    After folding all others, raises LakeDamaged for the first organization with damaged files.
    """
    problem = None
    for organization in lake.manifest.links.to_fold(most, now - FOLDED_AFTER):
        try:
            fold_links(lake, organization)
        except LakeDamaged as error:
            problem = problem or error
    if problem:
        raise problem


def read_links(paths: LinkPaths, columns: Sequence[str] = LINKS.names) -> pa.Table:
    """Read the links in live files, in any order."""
    needed = [name for name in LINKS.names if name in {*_KEY, *columns}] if paths.changes else list(columns)
    whole = _read(paths.whole, LINKS, needed)
    changes = _read(paths.changes, LINK_CHANGES, [*needed, "removed"]) if paths.changes else None
    return (whole if changes is None else _overlaid(whole, changes)).select(list(columns))


def link_batches(paths: LinkPaths, rows: int) -> Iterator[pa.Table]:
    """Yield the unchanged links in the base file, sorted by short code and domain, at most `rows` at a time."""
    changes = _read(paths.changes, LINK_CHANGES, _KEY)
    if paths.whole:
        for batch in pq.ParquetFile(paths.whole).iter_batches(rows, use_threads=False):
            links = _as(LINKS, pa.Table.from_batches([batch]))
            yield _without(links, changes).sort_by(_ORDER) if len(changes) else links


def find_links(paths: LinkPaths, short_codes: Collection[str]) -> pa.Table:
    """Read the links with these short codes, on any domain, from live files. Skips row groups that cannot contain
    them.
    """
    codes = pa.array(sorted(short_codes), pa.string())
    near = LINKS.empty_table()
    if paths.whole:
        file = pq.ParquetFile(paths.whole)
        groups = [number for number in range(file.num_row_groups) if _may_have(file, number, short_codes)]
        near = _as(LINKS, file.read_row_groups(groups, use_threads=False))
        near = near.filter(pc.is_in(near["short_code"], codes))
    changes = _read(paths.changes, LINK_CHANGES)
    return _overlaid(near, changes.filter(pc.is_in(changes["short_code"], codes)))


def _may_have(file: pq.ParquetFile, number: int, short_codes: Collection[str]) -> bool:
    """Return whether a row group may contain a link with one of these short codes; always true for files from 1.0.0."""
    group = file.metadata.row_group(number)
    bounds = group.column(LINKS.get_field_index("short_code")).statistics
    return bounds is None or not bounds.has_min_max or any(bounds.min <= one <= bounds.max for one in short_codes)


def link_files(lake: Lake, organization: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths of an organization's base files and files of changes, seeds first. Raises LakeDamaged."""
    paths = intact_links(lake, lake.manifest.links.live(organization))
    seeds = LinkPaths(lake.seed_links, lake.seed_link_changes)
    whole, changes = (tuple(path for path in pair if path) for pair in zip(seeds, paths, strict=True))
    return whole, changes


def schema_of_links(path: str) -> pa.Schema:
    """Return the schema of the links file at this path."""
    return LINK_CHANGES if path.endswith(OF_CHANGES) else LINKS


def without_tags(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a links file written by a version without tags."""
    return pa.schema([field for field in schema if field.name != "tags"])


def intact_links(lake: Lake, live: LiveLinks) -> LinkPaths:
    """Return the paths of live link files, after hashing files that seem to have changed. Raises LakeDamaged."""
    try:
        return LinkPaths(*(lake.intact_path(file) if file else "" for file in live))
    except LakeDamaged as error:
        raise LakeDamaged(f"{str(error).removesuffix('.')}, or import all links with --replace.") from error


def _write(
    lake: Lake, organization: str, rows: pa.Table, footer: dict[str, str], commit: Callable[[MoveLinks], None]
) -> None:
    """Write a link file; `commit` moves it into place and makes it live."""
    _clear_left(lake, organization)
    ending = OF_CHANGES if WHOLE in footer else ".parquet"
    staged = lake.staging / f"links-{uuid.uuid4()}.parquet"
    try:
        write_parquet([rows], rows.schema, staged, statistics=["short_code"], row_group=_ROW_GROUP, metadata=footer)
        sha256 = sha256_of(staged)
        # a new name even for the same content, since readers may still use the old file
        target = lake.links_folder(organization) / f"{sha256}-{uuid.uuid4().hex[:8]}{ending}"
        name = str(target.relative_to(lake.root))
        try:
            commit(lambda: move_into_lake(staged, lake.root, name, sha256))
        except BaseException:
            if target.exists():
                lake.delete_uncommitted([name])
            raise
    finally:
        staged.unlink(missing_ok=True)


def _clear_left(lake: Lake, organization: str) -> None:
    """Delete files that are not in the manifest, so that no rebuild mistakes them for the newest files."""
    if left := _unknown(lake, organization):
        with suppress(sqlite3.OperationalError), lake.manifest.exclusive():  # no other process moves files during this
            for name in left:
                if not lake.manifest.files.is_registered(name):
                    (lake.root / name).unlink(missing_ok=True)


def _unknown(lake: Lake, organization: str) -> set[str]:
    """Return an organization's link files that are not in the manifest."""
    there = {str(path.relative_to(lake.root)) for path in lake.links_folder(organization).glob("*.parquet")}
    return there - lake.manifest.links.paths(organization)


def _paths(lake: Lake, live: LiveLinks) -> list[Path]:
    return [lake.root / name for name in live.paths]


def _read(path: str, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read some columns of a file, with the types in the schema; no rows if the path is ""."""
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    return _as(wanted, pq.ParquetFile(path).read(columns=wanted.names)) if path else wanted.empty_table()


def _as(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Return a file's rows with the columns of a schema; tags, which files written by version 1.0.0 lack, are null."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(schema.names).cast(schema)


def _overlaid(whole: pa.Table, changes: pa.Table) -> pa.Table:
    """Return links with changes applied over them."""
    now = changes.filter(pc.invert(changes["removed"])).select(whole.column_names)
    return pa.concat_tables([_without(whole, changes), now])


def _without(rows: pa.Table, changes: pa.Table) -> pa.Table:
    """Return the links that no change affects."""
    if not len(changes):
        return rows
    numbered = rows.select(_KEY).append_column("number", pa.arange(0, len(rows)))
    left = numbered.join(changes.select(_KEY), _KEY, join_type="left anti", use_threads=False)
    return rows.take(left["number"])  # a join does not support columns of lists
