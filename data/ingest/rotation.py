"""Finds rotated files of a followed log that were not imported completely, and imports the rest."""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from math import inf
from pathlib import Path
from sqlite3 import IntegrityError
from typing import Final, NamedTuple

from data.errors import BadInput, Conflict
from data.ingest.importer import Importer, Options, Summary
from data.ingest.tail import ReadPosition, Tail
from data.logs.source import Block, LogUnavailable, identify
from data.manifest.clock import format_time
from data.manifest.logs import Batch, continued_batch
from data.progress import Progress
from data.store.lake import Lake
from data.store.landing import Landing

LATE_SECONDS: Final = 60
"""How long a server may keep writing to a renamed log before it opens the new one."""

Mark = tuple[int, str]
"""The size and SHA-256 of a log's content at a time when all of it had been imported."""

_ROTATED: Final = re.compile(r"[._-]\d[\d._:TZ-]*(\.(gz|zst))?")
"""The suffix that rotation appends to a log's name: a number or a time. Files with other suffixes may be anything."""

_PREAMBLE: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:#[^\n]*\n|\r?\n)*")
"""The directives and empty lines at the start of many logs."""


def first_mark(position: ReadPosition, block: Block, log_format: str) -> Mark:
    """Return the mark of a log's content through the first line below its header, since many logs share a header."""
    end = _PREAMBLE.match(block.text).end()  # type: ignore[union-attr]  # it matches everything
    if log_format.startswith("csv") and not position.offset:
        end = block.text.find(b"\n", end) + 1
    after = position.copy()
    after.add(block.text[: block.text.find(b"\n", end) + 1])
    return after.offset, after.sha256


class Stamp(NamedTuple):
    """The identity, size and modification time of a file. Renaming the file changes none of them."""

    modified_ns: int
    device: int
    inode: int
    size: int


class Sibling(NamedTuple):
    """A file in a log's folder with a name that begins with the name of the log."""

    stamp: Stamp
    path: Path
    is_rotated: bool  # according to its name; other files count only if their content is the log's

    @property
    def file(self) -> tuple[int, ...]:
        """The device and inode, as in Tail.file."""
        return self.stamp[1:3]

    @property
    def key(self) -> tuple[int, ...]:
        """A key that changes when the file must be checked again. A file without a rotated file's name may be another
        log that is growing, so it is checked only once.
        """
        return self.stamp if self.is_rotated else self.file


class SiblingState(Enum):
    """How much of a sibling was imported."""

    LANDED = auto()  # all was imported
    PARTIAL = auto()  # its beginning was imported
    UNKNOWN = auto()  # nothing is known to have been imported
    IGNORED = auto()  # it does not matter: it is a copy of the log, incomplete, not a log, or too old


class _ImportedContents(NamedTuple):
    """The imported contents, which show how much of a sibling was imported."""

    batches: Sequence[Batch]
    marks: Collection[Mark]
    live: Tail | None
    open_files: set[tuple[int, ...]]


class _RotationInProgress(Exception):
    """A sibling was renamed or changed during the check: the log is being rotated."""


class RotatedFiles:
    """The rotated files of one log. Each is read once, and again when it changes."""

    def __init__(
        self, lake: Lake, importer: Importer, path: Path, options: Options, notify: Callable[[str], None]
    ) -> None:
        self._lake, self._importer, self._path, self._options = lake, importer, path, options
        self._notify = notify
        self._states: dict[tuple[int, ...], SiblingState] = {}
        self._is_behind = False  # whether some content may still be missing

    def reset(self) -> None:
        """Check all files again: the log was truncated, and one of them may be its copy."""
        self._states.clear()

    def catch_up(
        self, live: Tail | None, late: Sequence[Tail], marks: Collection[Mark], progress: Progress
    ) -> Iterator[Summary]:
        """Import the rest of partly imported files, and all of later files, oldest file first; yield each result.

        Files that `live` and `late` have open are skipped; `marks` identify copies of their earlier contents. Raises
        LogUnavailable if a file cannot be read at the moment. Later files are imported only after it, because files
        older than an imported file are not searched.
        """
        siblings = [sibling for sibling in self._siblings() if live is None or sibling.file != live.file]
        open_files: set[tuple[int, ...]] = {tail.file for tail in late}
        if not self._is_behind and all(
            sibling.key in self._states or sibling.file in open_files for sibling in siblings
        ):
            return
        self._is_behind = True
        batches = self._lake.manifest.logs.batches(self._options.organization)
        imported = _ImportedContents(batches, marks, live, open_files)
        with suppress(_RotationInProgress):  # try again at the next call
            for sibling in self._missing(siblings, imported) if batches else ():
                try:
                    summary = self._importer.run(sibling.path, self._options, progress=progress)
                except BadInput as error:
                    _check(sibling)
                    _raise_passing(error)
                    self._notify(str(error))
                    self._states[sibling.key] = SiblingState.IGNORED
                else:
                    _check(sibling)
                    self._states[sibling.key] = SiblingState.LANDED
                    yield summary
            for sibling in siblings:
                if sibling.file not in open_files:
                    self._states.setdefault(sibling.key, SiblingState.IGNORED)
            self._is_behind = False

    def _siblings(self) -> list[Sibling]:
        """Return every sibling, the most recently written first."""
        found = []
        with suppress(PermissionError, FileNotFoundError):
            for entry in os.scandir(self._path.parent):
                if entry.name.startswith(self._path.name) and entry.name != self._path.name:
                    with suppress(OSError):
                        status = Path(entry.path).stat()
                        is_rotated = _ROTATED.fullmatch(entry.name.removeprefix(self._path.name)) is not None
                        if stat.S_ISREG(status.st_mode):
                            found.append(Sibling(_stamp(status), Path(entry.path), is_rotated))
        return sorted(found, reverse=True)

    def _missing(self, siblings: list[Sibling], imported: _ImportedContents) -> list[Sibling]:
        """Return the siblings to import, oldest first.

        They are checked from the most recently written file back to an imported file, and a little further, because a
        server's last write to an old log may come after its last write to the next log.
        """
        earliest = datetime.fromisoformat(min(batch.imported_at for batch in imported.batches)) - timedelta(days=1)
        until = earliest.timestamp() * 1e9  # files last written earlier cannot continue any import
        since, partial, unknown = inf, list[Sibling](), list[Sibling]()
        for sibling in siblings:
            if sibling.stamp.modified_ns < until:
                break
            state = SiblingState.LANDED if sibling.file in imported.open_files else self._state(sibling, imported)
            if state in (SiblingState.LANDED, SiblingState.PARTIAL):
                since = sibling.stamp.modified_ns - LATE_SECONDS * 10**9
            if state is SiblingState.LANDED:
                until = max(until, since)
            elif state is SiblingState.PARTIAL:
                partial.append(sibling)
            elif state is SiblingState.UNKNOWN and sibling.is_rotated:
                unknown.append(sibling)
        return sorted(partial + [sibling for sibling in unknown if sibling.stamp.modified_ns >= since])

    def _state(self, sibling: Sibling, imported: _ImportedContents) -> SiblingState:
        if sibling.key in self._states:
            return self._states[sibling.key]
        try:
            state = self._examine(sibling, imported)
        except BadInput as error:
            _check(sibling)
            _raise_passing(error)
            self._notify(str(error))
            state = SiblingState.IGNORED
        if state is not SiblingState.PARTIAL:
            self._states[sibling.key] = state
        return state

    def _examine(self, sibling: Sibling, imported: _ImportedContents) -> SiblingState:
        """Return the state of a sibling, determined from its content. Raises BadInput if it cannot be read."""
        content = identify(sibling.path, {row.size for row in imported.batches} | {size for size, _ in imported.marks})
        prefixes = [row for row in imported.batches if content.prefixes.get(row.size) == row.sha256]
        before = continued_batch(prefixes, content.size, self._options.domain)
        if before and before.size == content.size:
            return SiblingState.LANDED
        if not content.size or content.is_truncated or (imported.live and imported.live.begins_with(content)):
            return SiblingState.IGNORED  # still being copied or compressed
        mark = max((size for size, sha256 in imported.marks if content.prefixes.get(size) == sha256), default=0)
        if not before:
            _check(sibling, is_same=True)
        if mark > (before.size if before else 0):
            # it was imported as the beginning of longer content, so it is an earlier copy of the log
            batch = Batch(0, self._options.domain, content.sha256, content.size, content.size, 0, "auto",
                          format_time(datetime.now(UTC)))  # fmt: skip
            with self._lake.import_lock(), suppress(IntegrityError, Conflict):  # another process has registered it
                Landing(self._lake, self._options.organization).commit(batch, None)
            return SiblingState.LANDED
        return SiblingState.PARTIAL if before else SiblingState.UNKNOWN


def _check(sibling: Sibling, is_same: bool = False) -> None:
    """Raise _RotationInProgress if the path no longer leads to this file; with `is_same`, also if the file changed."""
    try:
        stamp = _stamp(sibling.path.stat())
    except FileNotFoundError as error:
        raise _RotationInProgress from error
    if (stamp if is_same else stamp[1:3]) != (sibling.stamp if is_same else sibling.file):
        raise _RotationInProgress


def _raise_passing(error: BadInput) -> None:
    """Re-raise a transient disk error: unlike a forbidden or damaged file, this file may become readable."""
    if isinstance(error, LogUnavailable) and not isinstance(error.__cause__, PermissionError):
        raise error


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_dev, status.st_ino, status.st_size)
