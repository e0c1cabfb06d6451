"""Verifies the copies of a lake: their logs against the last publication, and their objects by the SHA-256 in the
names.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from data.buckets.target import ObjectStore, is_odd, open_target
from data.errors import TrafficError
from data.manifest.clock import is_recent
from data.manifest.copies import Copy
from data.publish.delta import DeltaLog, ForeignLog, TableState
from data.publish.marks import mark_problem
from data.publish.tables import SHA256_DIGITS, content_of, dead_paths, live_links, live_visits, tables, unnamed_objects
from data.store.lake import Lake

_BEHIND_AFTER: Final = timedelta(minutes=10)
"""Time since the last publication after which a copy counts as behind, if anything has changed."""


class CopyFinding(NamedTuple):
    """A difference between a target and the published state."""

    place: str  # an object, a table's folder or a target
    reason: str


def verify_copies(lake: Lake, organization: str = "") -> Iterator[CopyFinding]:
    """Read every object in the copies of one organization, or of all, and yield the differences."""
    asked = set[str]()
    for copy in lake.manifest.copies.find(organization=organization):
        target = open_target(copy.target)
        if copy.due_since:
            since = f"{copy.due_since:%Y-%m-%d %H:%M} UTC"
            yield CopyFinding(copy.target, f"may hold visits of {copy.organization} that were erased since {since}")
        try:
            if copy.upload_problem:
                yield CopyFinding(copy.target, copy.upload_problem)
            if copy.target not in asked:
                asked.add(copy.target)
                yield from _target_findings(target, lake)
            for table in tables(target, copy.organization, lake.manifest.copies.existing_mark()):
                yield from _table_findings(target, table, copy, lake)
        except TrafficError as error:
            yield CopyFinding(copy.target, str(error))


def _target_findings(target: ObjectStore, lake: Lake) -> Iterator[CopyFinding]:
    """Yield the problems that affect a target as a whole."""
    if problem := mark_problem(target, lake):
        yield CopyFinding(target.name, problem)
    if versions := target.versions_problem():
        yield CopyFinding(target.name, f"{versions}, which may hold erased visits")
    for key in target.unfinished_uploads():
        reason = "is an unfinished upload; `traffic publish --again` deletes its parts"
        yield CopyFinding(f"{target.name}/{key}", reason)


def _table_findings(target: ObjectStore, table: DeltaLog, copy: Copy, lake: Lake) -> Iterator[CopyFinding]:
    """Yield the problems with one table."""
    place = f"{target.name}/{table.folder}"
    try:
        state = table.read()
    except ForeignLog as error:
        yield CopyFinding(place, str(error))
        return
    if problem := _log_problem(table, state, copy, lake):
        yield CopyFinding(place, problem)
    if state.is_damaged:
        yield CopyFinding(place, "a checkpoint or _last_checkpoint cannot be read; `traffic publish` writes it again")
    sizes = target.list(f"{table.folder}/")
    for path, file in state.files.items():
        key = f"{table.folder}/{path}"
        body = target.get(key) if sizes.get(key) == file.size else None
        if body is None:
            reason = "is missing, or its size differs from the log; `traffic publish --again` uploads it again"
            yield CopyFinding(f"{target.name}/{key}", reason)
        elif not path.rpartition("/")[2].startswith(hashlib.sha256(body).hexdigest()[:SHA256_DIGITS]):
            reason = "was changed (its SHA-256 differs); `traffic publish --again` uploads it again"
            yield CopyFinding(f"{target.name}/{key}", reason)
    for key in unnamed_objects(target, table, state, dead_paths(lake, copy.organization)):
        remedy = "delete it, since its key is not allowed" if is_odd(key) else "`traffic publish` deletes it"
        yield CopyFinding(f"{target.name}/{key}", f"is in neither the log nor the manifest; {remedy}")


def _log_problem(table: DeltaLog, state: TableState, copy: Copy, lake: Lake) -> str:
    """Return the problem with a table's log, compared with the last publication and the lake; "" if it has none."""
    is_visits = table.folder.endswith("/visits")
    expected = (live_visits if is_visits else live_links)(lake, copy.organization)
    published = copy.version if is_visits else 0 if expected and copy.version >= 0 else -1
    if state.version < published:
        return str(table.missing_version_error(state, published))
    if is_visits and copy.content and state.version == published and content_of(state.files) != copy.content:
        return f"its version {published} was changed; `traffic publish --again` repairs it"
    is_fresh = copy.published_at is None or is_recent(copy.published_at, _BEHIND_AFTER, datetime.now(UTC))
    is_behind = state.files.keys() != {file.path for file in expected}
    is_behind |= not is_visits and lake.manifest.links.live(copy.organization).changes is not None
    if is_behind and not (is_fresh or copy.due_since):
        return "is behind: visits or links have changed since the last publication; `traffic publish` copies them"
    return ""
