"""A log that is followed: what is new in it lands again and again, through rotation, exactly once.

A followed log is a log imported bit by bit: where it was left stands in the manifest, written in the same transaction
as the visits, as an import of its first so many bytes. An import of the same log, whatever its name by then, goes on
from there, and so does whoever follows it next. How a growing file is read is in tail.py; files that rotation put
aside are in rotation.py.
"""

import csv
import hashlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from data.errors import BadInput
from data.ingest.block_reader import BlockReader, BlockResult
from data.ingest.importer import Importer, Options, Progress, initial_format
from data.ingest.rotation import LATE_SECONDS, Mark, RotatedFiles
from data.ingest.tail import ReadPosition, Tail
from data.ingest.visitor_ids import delete_old_salts
from data.logs.formats import has_text
from data.logs.source import Block
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.manifest import Batch

MIN_SAMPLE_LINES: Final = 100
"""Fewer lines may happen to look like another format: the next ones are asked again."""
SALTS_SECONDS: Final = 900
"""How often old salts are looked for, whether anything lands or not."""
MARKS: Final = 128


@dataclass
class FollowTotals:
    """What has landed since the start."""

    visits: int = 0
    lines: int = 0
    rejected: int = 0
    rejects_file: Path | None = None  # the newest
    last_visit_at: datetime | None = None
    position: int = 0  # how far the log that is written to now is read
    size: int = 0


class Follower:
    """Follows one log, tick by tick. What the operator should know is told in whole sentences."""

    def __init__(
        self,
        lake: Lake,
        importer: Importer,
        path: Path,
        options: Options,
        *,
        notify: Callable[[str], None],
        progress: Progress | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises BadInput for what cannot be followed. A log that is not there yet is waited for."""
        self.totals = FollowTotals()
        self.is_stopping = False
        """Set it to let a tick end early, once what is under way has landed."""
        self._lake = lake
        self._importer = importer
        self._path = path
        self._options = options
        self._notify = notify
        self._progress = progress
        self._clock = clock
        self._rotated = RotatedFiles(lake, importer, path, options, notify)
        self._late: list[Tail] = []  # of renamed logs, to which somebody may still write
        self._marks: deque[Mark] = deque(maxlen=MARKS)
        self._last_error = ""
        self._salts_due = 0.0
        self._reader: BlockReader | None = None
        self._ip_lists_changed_ns = 0
        self._is_new = not self._batches()
        self._live = self._first()

    def tick(self) -> None:
        """Land what is new by now. What the disk refuses is told once, and tried again at the next tick.

        Raises BadInput when not a line can be read of a log of which nothing has landed yet.
        """
        try:
            self._tick()
        except (OSError, sqlite3.OperationalError) as error:
            if not self._last_error:
                self._last_error = (isinstance(error, OSError) and error.strerror) or str(error)
                self._notify(f"visits cannot be stored: {self._last_error}. Nothing is lost; retrying.")
        else:
            if self._last_error:
                self._notify("visits are stored again.")
            self._last_error, self._is_new = "", False

    def close(self) -> None:
        """Close the files."""
        for tail in self._tails():
            tail.close()
        if self._reader:
            self._reader.close()

    def _first(self) -> Tail | None:
        if not self._path.parent.is_dir():
            raise BadInput(f"{self._path} cannot be followed: missing folder {self._path.parent}.")
        try:
            return Tail(self._path)
        except FileNotFoundError:
            self._notify(f"{self._path} does not exist yet; waiting for it.")
            return None
        except OSError as error:
            raise BadInput(f"{self._path} cannot be followed: {error.strerror}.") from error

    def _batches(self) -> list[Batch]:
        return self._lake.manifest.batches(self._options.organization, self._options.domain)

    def _tails(self) -> list[Tail]:
        return [*self._late, *([self._live] if self._live else [])]

    def _tick(self) -> None:
        self._detect_rotation()
        for tail in self._tails():
            self._follow(tail)
        if self._live:
            self.totals.position, self.totals.size = self._live.position.offset, self._live.size
        for summary in self._rotated.catch_up(self._live, self._late, self._marks, self._progress):
            self.totals.visits += summary.visits
            self.totals.lines += summary.lines
            self.totals.rejected += summary.rejected
            self.totals.rejects_file = summary.rejects_file or self.totals.rejects_file
            if self.is_stopping:
                break
        if self._clock() >= self._salts_due:
            delete_old_salts(self._lake.salts, datetime.now(UTC))
            self._salts_due = self._clock() + SALTS_SECONDS

    def _detect_rotation(self) -> None:
        """Find out whether the log's name stands for another file by now."""
        live, file = self._live, None
        with suppress(FileNotFoundError):
            found = self._path.stat()
            file = found.st_dev, found.st_ino
        if live and file == live.file:
            return
        if live:
            live.deadline = self._clock() + LATE_SECONDS
            self._late.append(live)
            self._live = None
        with suppress(FileNotFoundError):
            self._live = Tail(self._path)

    def _follow(self, tail: Tail) -> None:
        """Land what a log has by now; give it up when it is over."""
        if tail.was_truncated():
            tail.reset()
            self._rotated.reset()
        end = tail.size
        is_over = tail.deadline is not None and self._clock() >= tail.deadline
        if end != tail.checked_size or is_over:
            while self._land_next(tail, end, is_over):
                if self.is_stopping:
                    return
            tail.checked_size = end
        if is_over:
            tail.close()
            self._late.remove(tail)

    def _land_next(self, tail: Tail, end: int, is_over: bool) -> bool:
        """Land the next block of a log, if there is one, behind all that others have landed of it."""
        with self._lake.write_lock():
            tail.resume(self._batches())
            self._mark(tail)
            found = tail.read(end, is_over)
            if found is None or tail.was_truncated():
                return False
            self._land(tail, *found)
        if self._progress:
            self._progress(tail.landed_bytes, end)
        return True

    def _land(self, tail: Tail, block: Block, position: ReadPosition) -> None:
        part, log_format = self._read(tail, block)
        whole_size = position.offset if block.finished else tail.position.offset
        batch = Batch(
            self._options.organization, self._options.domain, position.sha256, position.offset, whole_size,
            len(part.visits), datetime.now(UTC), log_format,
        )  # fmt: skip
        batch = self._commit(tail, part, batch)
        if not tail.batch:  # a copy may have been taken before anything landed
            start = block.text[: block.text.find(b"\n") + 1]
            self._marks.append((len(start), hashlib.sha256(start).hexdigest()))
        tail.accept(block, position, batch)
        self._mark(tail)
        self._is_new = False
        self._count(tail, part)

    def _mark(self, tail: Tail) -> None:
        """Remember what of a log has landed now: a copy of it that is no longer than later is known by this."""
        if tail.batch and (mark := (tail.batch.size, tail.batch.sha256)) not in self._marks:
            self._marks.append(mark)

    def _commit(self, tail: Tail, part: BlockResult, batch: Batch) -> Batch:
        landing = Landing(self._lake, self._options.organization)
        is_renamed = tail.deadline is not None  # then a packed copy may lack what comes now: it is to be known, too
        before = None if is_renamed else tail.batch
        landing.batch = (before and before.id) or landing.batch
        try:
            if len(part.visits):
                landing.stage(part.visits, unfinished=not part.block.finished)
            tail.sync()
            if before:
                landing.advance(batch)
            else:
                landing.commit(batch, tail.batch)
        finally:
            landing.discard()
        return replace(batch, id=landing.batch)

    def _read(self, tail: Tail, block: Block) -> tuple[BlockResult, str]:
        """What a block comes to, and the format in which to go on."""
        reader, problem = self._current_reader(), ""
        before = log_format = initial_format(self._path, tail.batch, self._options)
        if before == "auto" and not block.finished:
            log_format = tail.log_format  # a line that was cut may look like another format
        has_lines = has_text(block.text)
        if has_lines and (log_format == "auto" or not tail.batch):
            try:
                log_format = reader.resolve_format(block, log_format, self._options)
            except BadInput as error:
                problem = str(error)
        fallback = "combined" if has_lines else "w3c"  # which knows directives
        part = reader.read(block, fallback if log_format == "auto" else log_format, self._options)
        if part.rejects and not len(part.visits) and not tail.batch:
            self._refuse(problem or f"none of its {part.lines:,} lines match the {log_format} format.")
        tail.log_format = log_format
        return part, before if before == "auto" and part.lines < MIN_SAMPLE_LINES else log_format

    def _current_reader(self) -> BlockReader:
        """A reader with the lists of addresses as they are now."""
        changed_ns = self._lake.ip_lists.stat().st_mtime_ns
        if self._reader and changed_ns != self._ip_lists_changed_ns:
            self._reader.close()
            self._reader = None
            self._importer.reload_ip_lists()
        self._reader, self._ip_lists_changed_ns = self._reader or self._importer.reader(), changed_ns
        return self._reader

    def _refuse(self, problem: str) -> None:
        """A log that is none from the start is a mistake of who gave it; later lines may be readable."""
        if self._is_new:
            raise BadInput(f"{self._path}: {problem}")
        self._notify(f"{self._path}: {problem} Continuing with later lines.")

    def _count(self, tail: Tail, part: BlockResult) -> None:
        """Add up what landed, and note the lines that could not be read by number and reason."""
        totals = self.totals
        totals.lines += part.lines
        totals.visits += len(part.visits)
        if len(part.visits):
            latest = pc.max(part.visits["visited_at"]).as_py()
            totals.last_visit_at = max(latest, totals.last_visit_at or latest)
        if part.rejects and tail.batch:
            totals.rejected += len(part.rejects)
            name = f"{tail.batch.organization}-{tail.batch.sha256[:16]}.csv"
            totals.rejects_file = tail.rejects_file = tail.rejects_file or self._lake.rejects / name
            is_new = not tail.rejects_file.exists()
            with tail.rejects_file.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([*([("line", "reason")] if is_new else []), *part.rejects])
