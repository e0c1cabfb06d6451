"""The rotated files beside a log that is followed: which of them hold lines that have not landed, and landing these.

The log itself is not looked at here; how a file lands is in importer.py.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from math import inf
from pathlib import Path
from sqlite3 import IntegrityError
from typing import Final, NamedTuple

from data.errors import BadInput
from data.ingest.importer import Importer, Options, Progress, Summary
from data.ingest.tail import Tail
from data.logs.source import Content, identify
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.manifest import Batch

LATE_SECONDS: Final = 60
"""So long a server may go on writing to a log that was renamed, before it opens the new one."""

Mark = tuple[int, str]
"""Size and SHA-256 of a log's content at some moment when all of it had landed."""

_LATE_NS: Final = LATE_SECONDS * 10**9
_MARGIN: Final = timedelta(days=1)
_ROTATED: Final = re.compile(r"[._-]\d[\d._:TZ-]*(\.(gz|zst))?")
"""What rotation adds to the name of a log: a number or a time. Other endings are those of copies and notes."""


class Stamp(NamedTuple):
    """A file as it was when it was looked at, whatever its name."""

    modified_ns: int
    device: int
    inode: int
    size: int


class Sibling(NamedTuple):
    """A file beside a log, of a name that begins like the log's."""

    stamp: Stamp
    path: Path
    is_rotated: bool  # by its name; otherwise only its content can tell

    @property
    def file(self) -> tuple[int, ...]:
        """Which file it is, as a tail says it."""
        return self.stamp[1:3]

    @property
    def key(self) -> tuple[int, ...]:
        """What must change for it to be looked at again. What may be another log that grows is looked at once."""
        return self.stamp if self.is_rotated else self.file


class SiblingState(Enum):
    """What is known of a sibling."""

    LANDED = auto()
    PARTIAL = auto()  # its beginning has landed
    UNKNOWN = auto()
    IGNORED = auto()  # to itself: a copy, not whole yet, no log, or older than what matters


class _Renamed(Exception):
    """A file got another name meanwhile: the log is being rotated."""


class RotatedFiles:
    """The rotated files of one log; each is read once, and again when it changed."""

    def __init__(
        self, lake: Lake, importer: Importer, path: Path, options: Options, notify: Callable[[str], None]
    ) -> None:
        self._lake = lake
        self._importer = importer
        self._path = path
        self._options = options
        self._notify = notify
        self._states: dict[tuple[int, ...], SiblingState] = {}
        self._is_behind = False  # what was found missing has not all landed

    def reset(self) -> None:
        """Look at all of them once more: the log was truncated, and one of them may be its copy."""
        self._states.clear()

    def catch_up(
        self, live: Tail | None, late: Sequence[Tail], marks: Collection[Mark], progress: Progress | None
    ) -> Iterator[Summary]:
        """Land what is missing, oldest file first: the rest of those that have begun to, and whole later ones.

        What the tails hold is left to them. `marks` are contents that they had.
        """
        siblings = [sibling for sibling in self._siblings() if live is None or sibling.file != live.file]
        open_files: set[tuple[int, ...]] = {tail.file for tail in late}
        if not self._is_behind and all(
            sibling.key in self._states or sibling.file in open_files for sibling in siblings
        ):
            return
        self._is_behind = True
        known = self._lake.manifest.batches(self._options.organization, self._options.domain)
        sibling_check = _SiblingCheck(self._lake, self._options, known, marks, live)
        with suppress(_Renamed):  # then the next time
            for sibling in self._missing(siblings, open_files, sibling_check) if known else ():
                yield from self._import(sibling, progress)
            for sibling in siblings:
                if sibling.file not in open_files:
                    self._states.setdefault(sibling.key, SiblingState.IGNORED)
            self._is_behind = False

    def _siblings(self) -> list[Sibling]:
        """Every sibling, last written first."""
        found = []
        with suppress(PermissionError, FileNotFoundError):
            for entry in os.scandir(self._path.parent):
                if entry.name.startswith(self._path.name) and entry.name != self._path.name:
                    with suppress(OSError):
                        found.append(self._sibling(Path(entry.path)))
        return sorted((sibling for sibling in found if sibling), reverse=True)

    def _sibling(self, path: Path) -> Sibling | None:
        found = path.stat()
        is_rotated = _ROTATED.fullmatch(path.name.removeprefix(self._path.name)) is not None
        return Sibling(_stamp(found), path, is_rotated) if stat.S_ISREG(found.st_mode) else None

    def _missing(
        self, siblings: list[Sibling], open_files: set[tuple[int, ...]], sibling_check: "_SiblingCheck"
    ) -> list[Sibling]:
        """The siblings that are to land.

        They are looked at from the last written back to one that has landed, and a little further: a server may
        write to a log longer than to the next one.
        """
        until, since, partial, unknown = sibling_check.earliest_ns, inf, [], []
        for sibling in siblings:
            if sibling.stamp.modified_ns < until:
                break
            state = SiblingState.LANDED if sibling.file in open_files else self._state(sibling, sibling_check)
            if state in (SiblingState.LANDED, SiblingState.PARTIAL):
                since = sibling.stamp.modified_ns - _LATE_NS
            if state is SiblingState.LANDED:
                until = max(until, since)
            elif state is SiblingState.PARTIAL:
                partial.append(sibling)
            elif state is SiblingState.UNKNOWN and sibling.is_rotated:
                unknown.append(sibling)
        return sorted(partial + [sibling for sibling in unknown if sibling.stamp.modified_ns >= since])

    def _state(self, sibling: Sibling, sibling_check: "_SiblingCheck") -> SiblingState:
        if sibling.key in self._states:
            return self._states[sibling.key]
        try:
            state = sibling_check.state(sibling)
        except BadInput as error:
            _check(sibling)
            self._notify(str(error))
            state = SiblingState.IGNORED
        if state is not SiblingState.PARTIAL:
            self._states[sibling.key] = state
        return state

    def _import(self, sibling: Sibling, progress: Progress | None) -> Iterator[Summary]:
        try:
            summary = self._importer.run(sibling.path, self._options, progress=progress)
        except BadInput as error:
            _check(sibling)
            self._notify(str(error))
            self._states[sibling.key] = SiblingState.IGNORED
        else:
            _check(sibling)
            self._states[sibling.key] = SiblingState.LANDED
            yield summary


@dataclass(frozen=True)
class _SiblingCheck:
    """What a sibling is told by, at one moment."""

    lake: Lake
    options: Options
    known: Sequence[Batch]
    marks: Collection[Mark]
    live: Tail | None

    @property
    def earliest_ns(self) -> float:
        """What was last written before cannot go on from anything that landed."""
        first = min((batch.imported_at for batch in self.known), default=datetime.max.replace(tzinfo=UTC))
        return (first - _MARGIN).timestamp() * 1e9

    def state(self, sibling: Sibling) -> SiblingState:
        """What is to be known of a sibling. Raises BadInput when it cannot be read."""
        content = identify(sibling.path, {row.size for row in self.known} | {size for size, _ in self.marks})
        before = next((row for row in self.known if content.prefixes.get(row.size) == row.sha256), None)
        if before and before.size == content.size:
            return SiblingState.LANDED
        if not content.size or content.cut_short or (self.live and self.live.begins_with(content)):
            return SiblingState.IGNORED  # somebody copies or packs it just now; it will change
        mark = max((size for size, sha256 in self.marks if content.prefixes.get(size) == sha256), default=0)
        if not before:
            _check(sibling, is_same=True)
        if mark > (before.size if before else 0):
            self._register(content)
            return SiblingState.LANDED
        return SiblingState.PARTIAL if before else SiblingState.UNKNOWN

    def _register(self, content: Content) -> None:
        """Make a content known that landed as a part of a longer one: a copy taken while the log grew on."""
        batch = Batch(self.options.organization, self.options.domain, content.sha256, content.size, content.size, 0,
                      datetime.now(UTC), "auto")  # fmt: skip
        with self.lake.write_lock(), suppress(IntegrityError):  # it is known by now
            Landing(self.lake, self.options.organization).commit(batch, None)


def _check(sibling: Sibling, is_same: bool = False) -> None:
    """Raise _Moved when another file has the name by now, or with `is_same` when the file has changed, too."""
    try:
        now = sibling.path.stat()
    except FileNotFoundError as error:
        raise _Renamed from error
    stamp = _stamp(now)
    if (stamp if is_same else stamp[1:3]) != (sibling.stamp if is_same else sibling.file):
        raise _Renamed


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_mtime_ns, found.st_dev, found.st_ino, found.st_size)
