"""One log file on its way into the lake: identified, read block by block on both cores, landed as one batch."""

import csv
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import pyarrow.compute as pc

from data.errors import BadInput
from data.ingest.block_reader import BlockReader, BlockResult, Options
from data.ingest.pipeline import Rules
from data.ingest.visitor_ids import daily_salts
from data.logs.formats import has_text
from data.logs.source import Block, Content, blocks, identify
from data.rules.classifier import Classifier
from data.rules.geoip import CountryDatabase
from data.rules.ip_lists import Network
from data.rules.ip_verification import Verifier
from data.store.files import move_durably
from data.store.ip_list_files import snapshots
from data.store.lake import Lake
from data.store.landing import Landing
from data.store.manifest import Batch

__all__ = ["Importer", "Options", "Summary"]

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes to do."""

MAX_PARALLEL_BLOCKS: Final = 2
"""Blocks read side by side, each on a core of its own but for the moments in which Python looks at distinct values."""


@dataclass
class Summary:
    """What an import did, for the person who started it."""

    log_format: str = ""
    lines: int = 0
    visits: int = 0
    repaired: int = 0
    already_imported: bool = False
    continued: bool = False  # an earlier import had read the beginning of this file
    cut_short: bool = False
    without_user_agent: int = 0
    first_day: date | None = None
    last_day: date | None = None
    categories: Counter[str] = field(default_factory=Counter)
    contradicted: Counter[str] = field(default_factory=Counter)  # claimed agent
    rejects: list[tuple[int, str]] = field(default_factory=list)  # line number and reason
    rejects_file: Path | None = None

    @property
    def rejected(self) -> int:
        """How many lines could not be read."""
        return len(self.rejects)


@dataclass(frozen=True)
class _LogFile:
    """A log file, what it holds, and the import that read its beginning already."""

    path: Path
    content: Content
    before: Batch | None


class Importer:
    """Imports logs into one lake. Loading the rules takes a moment, so one importer serves many files.

    Addresses of `proxies` are not those of clients: they say nothing of an agent's claim.
    """

    def __init__(
        self,
        lake: Lake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        proxies: Iterable[Network] = (),
        countries: CountryDatabase | None = None,
    ) -> None:
        self._lake = lake
        self._now = now
        self._classifier = Classifier()
        self._proxies = tuple(proxies)
        self._verifier = Verifier(snapshots(lake), self._proxies)
        self._countries = countries

    def reload_ip_lists(self) -> None:
        """Take up the lists of addresses as they are in the lake now."""
        self._verifier = Verifier(snapshots(self._lake), self._proxies)

    def reader(self) -> BlockReader:
        """A reader by this importer's rules, salts, lists and countries; to be closed by whoever asked for it."""
        return BlockReader(Rules(self._classifier, self._salts, self._verifier, self._countries))

    def run(self, path: Path, options: Options, dry_run: bool = False, progress: Progress | None = None) -> Summary:
        """Land what is new in a log; a content seen before changes nothing. All of it becomes visible at once.

        Raises BadInput for a file that cannot be read or that no format explains; then nothing was changed.
        """
        with self._lake.write_lock():
            known = self._lake.manifest.batches(options.organization, options.domain)
            content = identify(path, {batch.size for batch in known})
            before = next((batch for batch in known if content.prefixes.get(batch.size) == batch.sha256), None)
            summary = Summary(cut_short=content.cut_short, continued=before is not None)
            if before and before.size == content.size:
                summary.already_imported = True
            elif content.size:
                self._run(_LogFile(path, content, before), options, dry_run, summary, progress)
        return summary

    def _run(self, log: _LogFile, options: Options, dry_run: bool, summary: Summary, progress: Progress | None) -> None:
        """Stage what is new in a log and make it visible."""
        landing = Landing(self._lake, options.organization)
        try:
            whole_size = self._stage(log, options, landing, summary, progress)
            if summary.rejected and not summary.visits and log.before is None:
                line, reason = summary.rejects[0]
                raise BadInput(
                    f"{log.path}: none of its {summary.lines:,} lines match the {summary.log_format} format; "
                    f"the first, line {line:,}: {reason}."
                )
            if not dry_run:
                batch = Batch(
                    options.organization, options.domain, log.content.sha256, log.content.size, whole_size,
                    landing.visits, self._now(), summary.log_format if whole_size else "auto",
                )  # fmt: skip
                self._write_rejects(batch, summary)  # first: who is killed in between notes them once more
                landing.commit(batch, log.before)
        finally:
            landing.discard()

    def _stage(
        self, log: _LogFile, options: Options, landing: Landing, summary: Summary, progress: Progress | None
    ) -> int:
        """Stage every visit of the new part of a log; return where its last finished line ends."""
        start = end = log.before.whole_size if log.before else 0
        for part in self._parts(log, start, options, summary):
            self._land(part, landing, summary)
            end = part.block.end if part.block.finished else end
            if progress:
                progress(part.block.end - start, log.content.size - start)
        return end

    def _parts(self, log: _LogFile, start: int, options: Options, summary: Summary) -> Iterator[BlockResult]:
        """The blocks of a log from byte `start`, read side by side and given out in their order."""
        summary.log_format = initial_format(log.path, log.before, options)
        is_resolved = log.before is not None and summary.log_format != "auto"
        in_flight: deque[Future[BlockResult]] = deque()
        with _ReaderPool(self.reader) as readers, ThreadPoolExecutor(MAX_PARALLEL_BLOCKS) as pool:
            for block in blocks(log.path, log.content, start):
                if not is_resolved and has_text(block.text):
                    summary.log_format = _resolve_format(readers, log.path, block, summary.log_format, options)
                    is_resolved = True
                in_flight.append(pool.submit(_read, readers, block, summary.log_format, options))
                if len(in_flight) > MAX_PARALLEL_BLOCKS:
                    yield in_flight.popleft().result()
            while in_flight:
                yield in_flight.popleft().result()

    def _salts(self, days: list[date]) -> dict[date, str]:
        return daily_salts(self._lake.salts, days, self._now())

    def _land(self, part: BlockResult, landing: Landing, summary: Summary) -> None:
        summary.lines += part.lines
        summary.repaired += part.repaired
        summary.without_user_agent += part.without_user_agent
        summary.rejects += part.rejects
        if not len(part.visits):
            return
        landing.stage(part.visits, unfinished=not part.block.finished)
        first, last = part.visits["day"][0].as_py(), part.visits["day"][-1].as_py()
        summary.visits += len(part.visits)
        summary.first_day = min(first, summary.first_day or first)
        summary.last_day = max(last, summary.last_day or last)
        for count in part.visits["bot_category"].value_counts().to_pylist():
            summary.categories[count["values"]] += count["counts"]
        contradicted = part.visits["agent"].filter(pc.equal(part.visits["confidence"], "contradicted"))
        summary.contradicted.update(contradicted.to_pylist())

    def _write_rejects(self, batch: Batch, summary: Summary) -> None:
        """Note every refused line by number and reason; not the line itself, for it may hold an address."""
        if not summary.rejects:
            return
        staged = self._lake.staging / f"rejects-{os.getpid()}.csv"
        with staged.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("line", "reason"))
            writer.writerows(summary.rejects)
        summary.rejects_file = self._lake.rejects / f"{batch.organization}-{batch.sha256[:16]}.csv"
        move_durably(staged, summary.rejects_file)


def initial_format(path: Path, before: Batch | None, options: Options) -> str:
    """The format to begin with: a log that has grown keeps that of its beginning."""
    log_format = before.log_format if before and options.reader == "auto" else options.reader
    flag = log_format.partition(" ")[2]
    if flag not in ("", options.flag):
        raise BadInput(f"{path} was imported with {flag} before; give the same {flag} to import the new lines.")
    return log_format


class _ReaderPool(ExitStack):
    """Readers for the blocks of one log, opened as they are needed: most logs have one block only."""

    def __init__(self, open_reader: Callable[[], BlockReader]) -> None:
        super().__init__()
        self._open_reader = open_reader
        self._free: SimpleQueue[BlockReader] = SimpleQueue()

    @contextmanager
    def borrow(self) -> Iterator[BlockReader]:
        """One that nobody else has meanwhile."""
        try:
            reader = self._free.get_nowait()
        except Empty:
            reader = self._open_reader()
            self.callback(reader.close)
        yield reader
        self._free.put(reader)


def _read(readers: _ReaderPool, block: Block, log_format: str, options: Options) -> BlockResult:
    with readers.borrow() as reader:
        return reader.read(block, log_format, options)


def _resolve_format(readers: _ReaderPool, path: Path, block: Block, log_format: str, options: Options) -> str:
    try:
        with readers.borrow() as reader:
            return reader.resolve_format(block, log_format, options)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
