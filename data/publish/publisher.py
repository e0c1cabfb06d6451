"""Publishes live visits and links: copies of their files at a target, and Delta logs of them, for each organization.

The manifest alone says what is published. The log of a table is changed when all objects of its new version are there,
and objects are deleted when neither the log nor the manifest names them: a killed program leaves too many objects,
never too few.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from data.errors import BadInput, Conflict, LakeDamaged, TrafficError
from data.publish.delta import DeltaLog, PublishedFile, TableChange, TableState
from data.publish.tables import (
    by_name_in_lake,
    dead_paths,
    links_path,
    merged_from,
    replaced_paths,
    tables,
    visits_path,
)
from data.store.clock import is_recent
from data.store.copies import Copy, begin_copy, copies, mark_of, record_copy
from data.store.files import make_durably
from data.store.lake import Lake, StoredFile
from data.store.link_files import stored_links
from data.store.locks import locked
from data.store.target import PARTIAL, ObjectStore, open_target

MARK: Final = "traffic.json"
"""The object that says of which lake a target has a copy."""
RECORDED_AFTER: Final = timedelta(minutes=2)
"""How often it is recorded that a copy is still what the manifest says."""
MAX_VERSIONS: Final = 100
"""After so many versions there is a checkpoint, so that readers need not read them all."""
_PARALLEL_PUTS: Final = 8
_ATTEMPTS: Final = 5
"""Files may be replaced and deleted while they are published."""


class Interrupted(Exception):
    """The publishing was interrupted."""


class Publication(NamedTuple):
    """What changed at a target for one organization."""

    organization: str
    files: int  # that its tables have now, and had not before
    bytes: int
    removed: int  # files that its tables no longer have
    version: int  # of the log of its visits


class Followed(NamedTuple):
    """A copy after an erasure."""

    target: str
    organization: str
    problem: str  # why it still has to follow; "": it holds nothing that was erased


class LakePublisher:
    """Publishes a lake at one target. Belongs to one thread; other programs may write and publish meanwhile."""

    def __init__(self, lake: Lake, name: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`name` is a target as parse_target gives it, which is not reached yet. Raises BadInput."""
        self._lake = lake
        self._target = open_target(name)
        self._now = now
        self._states: dict[str, TableState] = {}  # the tables as this object wrote them, by folder
        self._cleaned: dict[str, date] = {}  # the days on which it cleaned them
        self._is_marked = False
        self._is_interrupted = threading.Event()

    def publish(self, organization: str, wait: bool = True) -> Publication | None:
        """Make the copy of an organization what the manifest says; None if another program publishes and `wait` is off.

        If anything was erased since it was last published, nothing but live files is left there. Raises Interrupted,
        TargetUnavailable, ForeignLog, Conflict, LakeDamaged or OutdatedManifest, and BadInput if the target holds
        something else.
        """
        folder = self._lake.staging / "publishing"
        make_durably(folder)
        with locked(folder, wait) as has_lock:  # excludes others that publish this lake, in any process
            if not has_lock:
                return None
            self._lake.manifest.check_current()
            if not self._is_marked:
                _mark(self._target, mark_of(self._lake))
                self._is_marked = True
            copy = begin_copy(self._lake, self._target.name, organization)
            for _ in range(_ATTEMPTS - 1):
                try:
                    return self._publish(copy)
                except (Conflict, FileNotFoundError):
                    self._states.clear()
            return self._publish(copy)

    def interrupt(self) -> None:
        """Let a `publish` that runs in another thread end with Interrupted. What it has put is not put again."""
        self._is_interrupted.set()

    def _publish(self, copy: Copy) -> Publication:
        organization, now, manifest = copy.organization, self._now(), self._lake.manifest
        epoch, live = manifest.epoch(organization), manifest.live_files(organization)
        stored = stored_links(self._lake, organization)
        if manifest.epoch(organization) != epoch:
            raise Conflict(f"visits of {organization} were changed while they were published; try again.")
        visits, links = tables(self._target, organization)
        visit_files: dict[PublishedFile, StoredFile] = {
            PublishedFile(visits_path(one.day, one.path, one.sha256), str(one.day), one.size, one.visits): one
            for one in live
        }
        link_files: dict[PublishedFile, StoredFile] = {}
        if stored:
            link_files[PublishedFile(links_path(stored.sha256), "", stored.size, None)] = stored
        changes = [self._update(organization, visits, visit_files, epoch)]
        changes.append(self._update(organization, links, link_files, 0))
        is_due = copy.erasures > copy.followed
        for table in (visits, links):
            state = self._states[table.folder]
            is_cleaned = self._cleaned.get(table.folder) == now.date()
            if is_due or not is_cleaned or state.version - max(state.checkpoint, 0) >= MAX_VERSIONS:
                kept = () if is_due else dead_paths(self._lake, organization)
                if max(state.checkpoint, 0) < state.version:  # of which readers then need no earlier version
                    state = self._states[table.folder] = table.write_checkpoint(state)
                self._target.delete(unnamed(self._target, table, state, kept))
                self._cleaned[table.folder] = self._now().date()
        version = self._states[visits.folder].version
        if is_due or version != copy.version or not is_recent(copy.published_at or now, RECORDED_AFTER, now):
            record_copy(self._lake, copy, version, now)
        added = [file for change in changes for file in change.added]
        removed = sum(len(change.removed) for change in changes)
        return Publication(organization, len(added), sum(file.size for file in added), removed, version)

    def _update(
        self, organization: str, table: DeltaLog, sources: Mapping[PublishedFile, StoredFile], epoch: int
    ) -> TableChange:
        """Put what a table lacks and write its next version, if anything changed."""
        known = self._states.get(table.folder)
        state = known or table.read()
        added = [file for file in sources if state.files.get(file.path) != file]
        removed = sorted(state.files.keys() - {file.path for file in sources})
        change = TableChange(added, removed)
        if added or removed or state.version < 0:
            present = self._target.list(f"{table.folder}/") if added and not known else {}
            with ThreadPoolExecutor(_PARALLEL_PUTS, thread_name_prefix="publish") as threads:
                list(threads.map(lambda file: self._put(table, file, sources[file], present), added))
            if epoch == state.epoch and removed:  # added files may hold just the visits of removed ones, after a merge
                dead = set(replaced_paths(self._lake, organization)).intersection(removed)
                names, moved = by_name_in_lake(state.files, sorted(dead)), set[str]()
                for file in added if names else ():
                    if replaced := merged_from(self._lake.root / sources[file].path, file.rows or 0, names):
                        moved |= {file.path, *replaced}
                change = change._replace(moved=moved)
            state = table.write(state, change, epoch, self._now())
        self._states[table.folder] = state
        return change

    def _put(self, table: DeltaLog, file: PublishedFile, source: StoredFile, present: Mapping[str, int]) -> None:
        """Put a file of the lake, unless an earlier run did before it was killed. Raises Conflict if it is gone."""
        if self._is_interrupted.is_set():
            raise Interrupted
        key = f"{table.folder}/{file.path}"
        if present.get(key) == file.size:
            return
        try:
            self._target.put(key, Path(self._lake.intact_path(source)))
        except LakeDamaged as error:
            if self._lake.manifest.is_live(source.path):
                raise
            raise Conflict(f"{source.path} was replaced while it was published; try again.") from error


def unnamed(target: ObjectStore, table: DeltaLog, state: TableState, kept: Iterable[str]) -> list[str]:
    """The objects of a table that neither its log nor `kept` (paths) names."""
    named = table.keys(state) | {f"{table.folder}/{path}" for path in (*state.files, *kept)}
    return sorted(target.list(f"{table.folder}/").keys() - named)


def follow_erasures(lake: Lake, organization: str = "") -> list[Followed]:
    """Let the copies of an organization, or of all, follow what was erased. What is out of reach stays due."""
    found = []
    for copy in copies(lake, organization=organization):
        problem = ""
        try:
            if copy.due_since:
                LakePublisher(lake, copy.target).publish(copy.organization)
        except TrafficError as error:
            problem = str(error)
        found.append(Followed(copy.target, copy.organization, problem))
    return found


def _mark(target: ObjectStore, mark: str) -> None:
    """Mark a target as that of a lake. Raises BadInput if it holds something else or nothing can be erased there."""
    body, name = json.dumps({"lake": mark}).encode(), target.name
    found = target.get(MARK)
    if found is None and any(not key.startswith(PARTIAL) for key in target.list("")):
        raise BadInput(f"{name} is not empty, and no lake is published there; choose another folder or prefix.")
    if found is None and target.put_if_absent(MARK, body):
        if target.put(MARK, body) is not None:
            raise BadInput(
                f"{name} keeps earlier versions of objects, so that nothing can be erased from it; turn the versioning "
                "of the bucket off, or choose another one."
            )
        if target.put_if_absent(MARK, body):
            raise BadInput(f"{name} replaces objects that it should not (If-None-Match); choose another store.")
    if target.get(MARK) != body:
        raise BadInput(f"{name} holds the copy of another lake; choose another place, or delete what is there.")
