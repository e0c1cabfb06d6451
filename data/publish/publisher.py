"""Publishes the live visits and links of each organization: copies of their files at a target, with Delta logs.

The manifest alone decides what is published. The log of a table is changed only after all objects of its new version
exist, and objects are deleted only when neither the log nor the manifest lists them: a killed program may leave extra
objects, but never removes objects that are needed.
"""

import hashlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from data.buckets.object_errors import TargetUnavailable
from data.buckets.target import is_odd, open_target
from data.disk.files import make_durably
from data.disk.locks import locked
from data.errors import Conflict, LakeDamaged, TrafficError
from data.manifest.clock import is_recent
from data.manifest.copies import Copy
from data.publish.delta import DeltaLog, ForeignLog, LogOfAnotherLake, PublishedFile, TableChange, TableState
from data.publish.marks import check_target, mark_target
from data.publish.tables import (
    SHA256_DIGITS,
    by_name_in_lake,
    content_of,
    dead_paths,
    live_links,
    live_visits,
    merged_from,
    replaced_paths,
    tables,
    unnamed_objects,
)
from data.store.lake import Lake, StoredFile
from data.store.link_files import fold_links

RECORDED_AFTER: Final = timedelta(minutes=2)
"""Minimum interval at which to record that an unchanged copy still matches the manifest."""
MAX_VERSIONS: Final = 100
"""Number of versions after which a checkpoint is written, so that readers need not read all versions."""
_LOG: Final = logging.getLogger(__name__)
_PARALLEL_PUTS: Final = 8
_ATTEMPTS: Final = 5
"""Maximum number of attempts, since files may be replaced and deleted while they are being published."""


class PublishInterrupted(Exception):
    """Publishing was interrupted."""


class Publication(NamedTuple):
    """The changes at a target for one organization."""

    organization: str
    files: int  # files added to its tables
    bytes: int
    removed: int  # files removed from its tables
    version: int  # the version of the Delta log of its visits


class FollowedCopy(NamedTuple):
    """The state of a copy after an erasure."""

    target: str
    organization: str
    problem: str  # why the erasure has not been applied yet; "" if it has


class LakePublisher:
    """Publishes a lake at one target. Not thread-safe; other programs may write and publish at the same time."""

    def __init__(self, lake: Lake, name: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Prepare to publish to `name`, a target normalized by parse_target; do not connect yet. Raises BadInput."""
        self._lake = lake
        self._target = open_target(name)
        self._now = now
        self._states: dict[str, TableState] = {}  # the last written states, by the table's folder
        self._cleaned: dict[str, date] = {}  # day of the last cleaning, by the table's folder
        self._is_marked = False
        self._is_checked = False  # whether the target was checked in this publication
        self._is_interrupted = threading.Event()
        self._odd: set[str] = set()

    def publish(self, organization: str, wait: bool = True, *, again: bool = False) -> Publication | None:
        """Bring an organization's copy up to date; return None if another program is publishing and `wait` is false.

        If anything was erased since the last publication, only live files remain at the target. With `again`, missing
        or changed objects and logs are written again. Raises PublishInterrupted, TargetUnavailable, ForeignLog,
        Conflict, LakeDamaged or OutdatedManifest, and BadInput if the target contains something else or keeps versions.
        """
        folder = self._lake.staging / "publishing"
        make_durably(folder)
        with locked(folder, wait) as has_lock:  # locks out other publishers of this lake, in any process
            if not has_lock:
                return None
            self._lake.manifest.check_current()
            try:
                return self._publish_locked(organization, again)
            except TrafficError as error:
                self._states.clear()  # it may have changed
                self._lake.manifest.copies.record_problem(self._target.name, organization, str(error))
                raise

    def _publish_locked(self, organization: str, again: bool) -> Publication:
        self._is_checked = False
        if again or not self._is_marked:
            self._states.clear()
            mark_target(self._target, self._lake, again=again)
            self._is_marked = True
        fold_links(self._lake, organization)
        copy = self._lake.manifest.copies.begin(self._target.name, organization)
        if copy.is_putting:  # a program was killed while writing, or got no response from the store
            copy = copy._replace(settles_at=self._now() + self._target.late)
            self._lake.manifest.copies.record_putting(copy, is_putting=False, settles_at=copy.settles_at)
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._publish(copy, again)
            except (Conflict, FileNotFoundError):
                self._states.clear()
        return self._publish(copy, again)

    def interrupt(self) -> None:
        """Make a `publish` in another thread raise PublishInterrupted. Objects that it has uploaded are kept."""
        self._is_interrupted.set()

    def _publish(self, copy: Copy, again: bool) -> Publication:
        organization, now, manifest = copy.organization, self._now(), self._lake.manifest
        epoch, visit_files = manifest.organizations.epoch(organization), live_visits(self._lake, organization)
        link_files = live_links(self._lake, organization)
        if manifest.organizations.epoch(organization) != epoch:
            raise Conflict(f"visits of {organization} were changed while they were being published; try again.")
        visits, links = tables(self._target, organization, self._lake.manifest.copies.existing_mark())
        is_due = copy.erasures > copy.followed
        if is_due or copy.settles_at or not is_recent(copy.published_at or now, RECORDED_AFTER, now):
            self._check()
        changes = [self._update(copy, visits, visit_files, epoch, again)]
        changes.append(self._update(copy, links, link_files, 0, again))
        for table in (visits, links):
            state = self._states[table.folder]
            is_cleaned = self._cleaned.get(table.folder) == now.date() and not copy.settles_at
            versions = state.version - max(state.checkpoint, 0)
            if is_due or again or not is_cleaned or state.is_damaged or versions >= MAX_VERSIONS:
                if max(state.checkpoint, 0) < state.version or state.is_damaged:  # makes earlier versions unnecessary
                    self._states[table.folder] = table.write_checkpoint(state)
                self._clean(table, () if is_due else dead_paths(self._lake, organization), is_thorough=is_due or again)
        if copy.settles_at and copy.settles_at <= now:  # earlier objects have been deleted, or will not appear any more
            copy = copy._replace(settles_at=None)
            self._lake.manifest.copies.record_putting(copy, is_putting=False, settles_at=None)
        state = self._states[visits.folder]
        if (
            (is_due and not copy.settles_at)
            or copy.problem
            or (state.version, content_of(state.files)) != (copy.version, copy.content)
            or not is_recent(copy.published_at or now, RECORDED_AFTER, now)
        ):
            if not visits.is_there(state):
                raise Conflict(f"{self._target.name}/{visits.folder} was changed by another program; try again.")
            self._lake.manifest.copies.record(copy, state.version, content_of(state.files), now)
        added = [file for change in changes for file in change.added]
        removed = sum(len(change.removed) for change in changes)
        return Publication(organization, len(added), sum(file.size for file in added), removed, state.version)

    def _update(
        self, copy: Copy, table: DeltaLog, sources: Mapping[PublishedFile, StoredFile], epoch: int, again: bool
    ) -> TableChange:
        """Upload a table's missing objects, write its next version if anything changed, and return the change."""
        known = self._states.get(table.folder)
        state = known or self._read(copy, table, again)
        added = [file for file in sources if state.files.get(file.path) != file]
        removed = sorted(state.files.keys() - {file.path for file in sources})
        change = TableChange(added, removed)
        to_put = [file for file in sources if not self._is_intact(table, file)] if again else added
        if added or removed or to_put or state.version < 0:
            self._check()
            present = self._target.list(f"{table.folder}/") if added and not known and not again else {}
            self._put_all(
                copy, table, {file: sources[file] for file in to_put if present.get(_key(table, file)) != file.size}
            )
        if added or removed or state.version < 0:
            if epoch == state.epoch and removed:  # after a merge, added files may have the visits of removed files
                change = change._replace(moved=self._unchanged_paths(copy.organization, state, change, sources))
            state = table.write(state, change, epoch, self._now())
        self._states[table.folder] = state
        return change._replace(added=to_put) if again else change

    def _read(self, copy: Copy, table: DeltaLog, again: bool) -> TableState:
        """Return the last version of a table. With `again`, start a new log if another program changed the log."""
        try:
            state = table.read()
            if table.folder.endswith("/visits") and state.version < copy.version:
                raise table.missing_version_error(state, copy.version)
        except LogOfAnotherLake:
            raise
        except ForeignLog:
            if not again:
                raise
            self._check()
            table.clear()
            return TableState()
        if state.is_damaged:
            _LOG.warning(
                "%s/%s: a checkpoint or _last_checkpoint cannot be read and will be written again.",
                self._target.name,
                table.folder,
            )
        return state

    def _unchanged_paths(
        self,
        organization: str,
        state: TableState,
        change: TableChange,
        sources: Mapping[PublishedFile, StoredFile],
    ) -> set[str]:
        """Return the paths of added and removed files with the same visits, such as after a merge."""
        dead = set(replaced_paths(self._lake, organization)).intersection(change.removed)
        names, moved = by_name_in_lake(state.files, sorted(dead)), set[str]()
        for file in change.added if names else ():
            if replaced := merged_from(self._lake.root / sources[file].path, file.rows or 0, names):
                moved |= {file.path, *replaced}
        return moved

    def _put_all(self, copy: Copy, table: DeltaLog, sources: Mapping[PublishedFile, StoredFile]) -> None:
        """Upload files from the lake. Record start and end, since a killed program's uploads may appear late."""
        if not sources:
            return
        self._lake.manifest.copies.record_putting(copy, is_putting=True, settles_at=copy.settles_at)
        with ThreadPoolExecutor(_PARALLEL_PUTS, thread_name_prefix="publish") as threads:
            list(threads.map(lambda file: self._put(table, file, sources[file]), sources))
        self._lake.manifest.copies.record_putting(copy, is_putting=False, settles_at=copy.settles_at)

    def _is_intact(self, table: DeltaLog, file: PublishedFile) -> bool:
        """Return whether an object exists, and its bytes match the SHA-256 in its name."""
        body = self._target.get(_key(table, file))
        digits = file.path.rpartition("/")[2][:SHA256_DIGITS]
        return body is not None and hashlib.sha256(body).hexdigest().startswith(digits)

    def _check(self) -> None:
        """Check once per publication that the target belongs to this lake and keeps no versions. Raises BadInput."""
        if not self._is_checked:
            check_target(self._target, self._lake)
            self._is_checked = True

    def _clean(self, table: DeltaLog, kept: Iterable[str], *, is_thorough: bool) -> None:
        """Delete a table's objects that neither its log nor `kept` lists. If `is_thorough`, as after erasures, also
        delete upload parts, and raise TargetUnavailable if deleted objects remain.
        """
        state = self._states[table.folder]
        if is_thorough:
            self._target.abort_uploads()
        left = unnamed_objects(self._target, table, state, kept)
        for key in left:
            if is_odd(key) and key not in self._odd:
                self._odd.add(key)
                _LOG.warning("%r at %s is skipped: its key is not allowed; delete it.", key, self._target.name)
        deleted = [key for key in left if not is_odd(key)]
        self._target.delete(deleted)
        if is_thorough and deleted and set(deleted).intersection(self._target.list(f"{table.folder}/")):
            raise TargetUnavailable(
                f"{self._target.name} cannot be used: it keeps objects that were deleted, such as {deleted[0]}; "
                "check the store for a lock or a retention rule."
            )
        self._cleaned[table.folder] = self._now().date()

    def _put(self, table: DeltaLog, file: PublishedFile, source: StoredFile) -> None:
        """Upload a file. If it is missing or damaged, raises LakeDamaged if it is live, and otherwise Conflict."""
        if self._is_interrupted.is_set():
            raise PublishInterrupted
        try:
            self._target.put(_key(table, file), Path(self._lake.intact_path(source)))
        except LakeDamaged as error:
            if self._lake.manifest.files.is_live(source.path):
                raise
            raise Conflict(f"{source.path} was replaced while it was being published; try again.") from error


def _key(table: DeltaLog, file: PublishedFile) -> str:
    return f"{table.folder}/{file.path}"


def follow_erasures(
    lake: Lake, organization: str = "", now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> list[FollowedCopy]:
    """Apply due erasures to the copies of one organization, or of all. At unreachable targets, erasures remain due."""
    found = []
    for copy in lake.manifest.copies.find(organization=organization):
        problem = ""
        try:
            if copy.due_since:
                LakePublisher(lake, copy.target, now).publish(copy.organization)
                problem = lake.manifest.copies.find(copy.target, copy.organization)[0].upload_problem
        except (TrafficError, OSError, sqlite3.Error) as error:
            problem = str(error)
        found.append(FollowedCopy(copy.target, copy.organization, problem))
    return found
