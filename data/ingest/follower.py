"""Follows a growing log: lands its new lines continuously and exactly once, across rotations.

A followed log is imported piece by piece: its position is stored in the manifest, in the same transaction as the
visits, as an import of its first n bytes. Any later import or follower of the same content continues there, even if
the file was renamed. tail.py reads the growing file; rotation.py imports rotated files.
"""

import csv
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from data.errors import BadInput
from data.ingest.block_reader import BlockResult
from data.ingest.importer import Importer, Options, Summary
from data.ingest.log_format import check_hosts, initial_format
from data.ingest.rotation import LATE_SECONDS, Mark, RotatedFiles, first_mark
from data.ingest.tail import ReadPosition, Tail
from data.ingest.visitor_ids import delete_old_salts
from data.logs.formats import has_text
from data.logs.source import Block, LogUnavailable
from data.manifest.arrivals import Arrivals
from data.manifest.clock import format_time
from data.manifest.logs import Batch, check_domain
from data.progress import Progress, ignore_progress
from data.store.lake import Lake
from data.store.landing import Landing
from data.text import plural

MIN_SAMPLE_LINES: Final = 100
"""A format detected from fewer lines may be wrong, so it is detected again from the next lines."""
RETRY_SECONDS: Final = 60
"""Delay before retrying a rotated file that could not be read."""
MARKS: Final = 128
"""Maximum number of marks kept; the oldest are evicted first."""


@dataclass
class FollowTotals:
    """Statistics since the program started."""

    visits: int = 0
    lines: int = 0
    rejected: int = 0
    assets: int = 0  # requests left out because of `skip_assets`
    invalid_domains: int = 0  # visits with an invalid host in their line
    rejects_file: Path | None = None  # the newest rejects file
    last_visit_at: datetime | None = None
    position: int = 0  # the offset up to which the current log has been read
    size: int = 0  # the size of the current log

    @property
    def read(self) -> str:
        """The progress, as part of a sentence."""
        return f"the log has been read to byte {self.position:,}"

    def add(self, summary: Summary) -> None:
        """Add the result of an import, or of one block."""
        self.visits += summary.visits
        self.lines += summary.lines
        self.assets += summary.assets
        self.rejected += summary.rejected
        self.invalid_domains += summary.invalid_domains
        self.rejects_file = summary.rejects_file or self.rejects_file


class Follower:
    """Follows one log. `notify` receives messages for the operator, in whole sentences."""

    def __init__(
        self,
        lake: Lake,
        importer: Importer,
        path: Path,
        options: Options,
        *,
        notify: Callable[[str], None],
        progress: Progress = ignore_progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the log, which may be created later. Raises BadInput for a file that cannot be followed."""
        self.totals = FollowTotals()
        self.is_stopping = False  # set this to end a tick early, after the current block
        self._lake, self._importer, self._path, self._options = lake, importer, path, options
        self._notify, self._progress, self._clock = notify, progress, clock
        self._rotated = RotatedFiles(lake, importer, path, options, notify)
        self._late: list[Tail] = []  # renamed logs, to which servers may still write
        self._marks: deque[Mark] = deque(maxlen=MARKS)
        self._last_error = ""
        self._unread = ""
        """The most recent reason why a rotated file could not be read."""
        self._catch_up_at = -inf
        self._is_new = not lake.manifest.logs.batches(options.organization, options.domain)
        self._live: Tail | None = None
        if not path.parent.is_dir():
            raise BadInput(f"{path} cannot be followed: the folder {path.parent} is missing; create it.")
        try:
            self._live = Tail(path)
        except FileNotFoundError:
            notify(f"{path} does not exist yet; waiting for it.")
        except OSError as error:
            raise BadInput(f"{path} cannot be followed: {error.strerror}.") from error

    def tick(self) -> None:
        """Land all new lines. A disk error is reported once; the next tick tries again.

        Raises BadInput if the log is not an uncompressed regular file, if the options contradict an earlier import or
        require a domain that the log's lines lack, or, before any log of this domain has landed, if none of its first
        lines can be parsed.
        """
        try:
            self._importer.refresh_rules()
            self._detect_rotation()
            for tail in self._tails():
                self._follow(tail)
            if self._live:
                self.totals.position, self.totals.size = self._live.position.offset, self._live.size
            if self._clock() >= self._catch_up_at:
                self._catch_up()
            delete_old_salts(self._lake.salts, datetime.now(UTC))  # also when nothing lands
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

    def _catch_up(self) -> None:
        """Import the missing parts of rotated files. A disk error is reported once; a later tick tries again."""
        try:
            for summary in self._rotated.catch_up(self._live, self._late, self._marks, self._progress):
                self.totals.add(summary)
                if self.is_stopping:
                    return
        except LogUnavailable as error:
            if str(error) != self._unread:
                self._notify(f"{error} Nothing is lost; retrying.")
            self._unread, self._catch_up_at = str(error), self._clock() + RETRY_SECONDS
        else:
            if self._unread:
                self._notify("rotated files can be read again.")
            self._unread = ""

    def _tails(self) -> list[Tail]:
        return [*self._late, *([self._live] if self._live else [])]

    def _detect_rotation(self) -> None:
        """Open the file at the path if it is new, and keep the old file open for late lines."""
        live, file = self._live, None
        with suppress(FileNotFoundError):
            status = self._path.stat()
            file = status.st_dev, status.st_ino
        if live and file == live.file:
            return
        if live:
            live.deadline = self._clock() + LATE_SECONDS
            self._late.append(live)
            self._live = None
        with suppress(FileNotFoundError):
            self._live = Tail(self._path)

    def _follow(self, tail: Tail) -> None:
        """Land the new lines of a log; close it after its deadline."""
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
        """Land the next block after the imported part of a log; return whether there was a block.

        Raises BadInput if the log was imported with another domain.
        """
        with self._lake.import_lock():
            before, domain = tail.batch, self._options.domain
            tail.resume(self._lake.manifest, self._options.organization, domain)
            if tail.batch and tail.batch != before:
                check_domain(tail.path, tail.batch, domain)
                if tail.batch.visits and tail.batch.domain != domain:
                    self._notify(
                        f"{tail.path}: earlier lines were imported without a domain; "
                        f"later lines are imported with {domain}."
                    )
            self._mark(tail)
            block_and_position = tail.read(end, is_over)
            if block_and_position is None or tail.was_truncated():
                return False
            self._land(tail, *block_and_position)
        self._progress(tail.landed_bytes, end)
        return True

    def _land(self, tail: Tail, block: Block, position: ReadPosition) -> None:
        part, log_format = self._read(tail, block)
        whole_size = position.offset if block.finished else tail.position.offset
        batch = Batch(
            0, self._options.domain, position.sha256, position.offset, whole_size, len(part.visits), log_format,
            format_time(datetime.now(UTC)),
        )  # fmt: skip
        # A beginning without visits is not registered, since other logs may begin in the same way.
        is_landing = tail.batch or len(part.visits) or not block.finished
        landed = self._commit(tail, part, batch) if is_landing else None
        if landed and not tail.batch and block.finished:  # its beginning identifies later copies
            self._marks.append(first_mark(tail.position, block, tail.log_format))
        tail.accept(block, position, landed)
        self._mark(tail)
        self._is_new = False
        summary = Summary()
        summary.add(part)
        self.totals.add(summary)
        if len(part.visits):
            latest = pc.max(part.visits["visited_at"]).as_py()
            self.totals.last_visit_at = max(latest, self.totals.last_visit_at or latest)
        if part.rejects:  # only their numbers and reasons are recorded
            name = f"{self._options.organization}-{(tail.batch or tail.position).sha256[:16]}.csv"
            self.totals.rejects_file = tail.rejects_file = tail.rejects_file or self._lake.rejects / name
            is_new = not tail.rejects_file.exists()
            with tail.rejects_file.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([*([("line", "reason")] if is_new else []), *part.rejects])

    def _mark(self, tail: Tail) -> None:
        """Remember the landed content of a log, to recognize its copies later."""
        if tail.batch and (mark := (tail.batch.size, tail.batch.sha256)) not in self._marks:
            self._marks.append(mark)

    def _commit(self, tail: Tail, part: BlockResult, batch: Batch) -> Batch:
        landing = Landing(self._lake, self._options.organization, batch.sha256)
        is_kept = tail.deadline is not None  # a compressed copy of a renamed log may lack these late lines
        is_kept = is_kept or (tail.batch is not None and self._lake.manifest.objects.has_batch(tail.batch.id))
        if tail.batch and not is_kept:
            landing.batch = tail.batch.id
        landing.counts_hours = True
        try:
            if len(part.visits):
                landing.stage(part.visits, not part.block.finished, part.excluded)
            tail.sync()
            return landing.commit(batch, tail.batch, Arrivals("follow", batch.domain, landing.arrived))
        finally:
            landing.discard()

    def _read(self, tail: Tail, block: Block) -> tuple[BlockResult, str]:
        """Read a block; return the result and the format for the next blocks."""
        readers, problem = self._importer.readers, ""
        before = log_format = initial_format(self._path, tail.batch, self._options)
        if before == "auto" and not block.finished:
            log_format = tail.log_format  # an unfinished line may look like another format
        has_lines = has_text(block.text)
        if has_lines and (log_format == "auto" or not tail.batch):
            try:
                log_format = readers.resolve_format(self._path, block, log_format, self._options)
            except BadInput as error:
                problem = str(error)
        fallback = "combined" if has_lines else "w3c"  # w3c accepts directives
        part = readers.read(block, fallback if log_format == "auto" else log_format, self._options)
        is_none = part.rejects and not (len(part.visits) or part.assets)
        if is_none and not tail.batch and not tail.position.offset:
            lines = plural(part.lines, "line")
            problem = problem or f"{self._path}: it has {lines}, but none in the {log_format} format."
            if self._is_new:
                raise BadInput(problem)
            self._notify(f"{problem} Continuing with later lines.")  # later lines may be valid
        check_hosts(self._path, part, log_format, self._options, is_new=not tail.batch and not self.totals.visits)
        tail.log_format = log_format
        return part, before if before == "auto" and part.lines < MIN_SAMPLE_LINES else log_format
