"""One log file on its way from lines to live visits: read, classified, landed. Each stage has a file of its own."""

import csv
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import re2

from data import readers
from data.classify import UTM_FIELDS, Classifier, Request, readable_user_agent
from data.errors import BadInput
from data.lake import Lake, move_durably
from data.landing import Landing
from data.manifest import Batch
from data.salts import salts_of
from data.source import Block, Content, blocks, identify
from data.visits import SHORT_CODE_PATTERN, Classification, check_organization

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes to do."""

_ANSWERS = pa.schema(
    [
        ("request", pa.int64()),
        *((name, pa.string()) for name in Classification._fields),
        *((name, pa.string()) for name in ("user_agent", "country", "referrer", "referrer_type", *UTM_FIELDS)),
    ]
)


@dataclass
class Summary:
    """What an import did, for the person who started it."""

    log_format: str = ""
    lines: int = 0
    visits: int = 0
    mended: int = 0
    already_imported: bool = False
    continued: bool = False  # an earlier import had read the beginning of this file
    cut_short: bool = False
    without_user_agent: int = 0
    first_day: date | None = None
    last_day: date | None = None
    categories: Counter[str] = field(default_factory=Counter)
    rejects: list[tuple[int, str]] = field(default_factory=list)  # line number and reason
    rejects_file: Path | None = None

    @property
    def rejected(self) -> int:
        """How many lines could not be read."""
        return len(self.rejects)


@dataclass(frozen=True)
class Options:
    """How the lines of one import are to be understood. Raises BadInput when they cannot be."""

    organization: str
    domain: str = ""  # of lines that name none themselves
    log_format: str = "auto"
    short_code_pattern: str = SHORT_CODE_PATTERN

    def __post_init__(self) -> None:
        check_organization(self.organization)
        if self.log_format not in ("auto", *readers.FORMATS):
            raise BadInput(f"{self.log_format!r} is no log format; known are auto, {', '.join(readers.FORMATS)}.")
        try:
            groups = re2.compile(self.short_code_pattern).groups
        except re2.error as error:
            raise BadInput(f"{self.short_code_pattern!r} is no pattern (RE2 syntax): {error}.") from error
        if groups != 1:
            raise BadInput(f"{self.short_code_pattern!r} must capture the short code in exactly one (group).")


@dataclass(frozen=True)
class _Log:
    """A log file, what it holds, and the import that read its beginning already."""

    path: Path
    content: Content
    before: Batch | None


class Importer:
    """Imports logs into one lake. Loading the rules takes a moment, so one importer serves many files."""

    def __init__(self, lake: Lake, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._lake = lake
        self._now = now
        self._classifier = Classifier()
        self._engine = duckdb.connect(config={"allow_community_extensions": False})
        self._engine.execute("SET TimeZone = 'UTC'")
        self._engine.execute("SET temp_directory = ''")  # what is read holds addresses: nothing of it may spill to disk
        self._engine.execute(readers.text_of("macros"))

    def run(self, path: Path, options: Options, dry_run: bool = False, progress: Progress | None = None) -> Summary:
        """Land what is new in a log; a content seen before changes nothing. All of it becomes visible at once.

        Raises BadInput for a file that cannot be read or that no format explains; then nothing was changed.
        """
        with self._lake.writing(options.organization):
            known = self._lake.manifest.batches(options.organization, options.domain)
            content = identify(path, {size for batch in known for size in (batch.size, batch.whole_size)})
            before = next((batch for batch in known if content.prefixes.get(batch.size) == batch.sha256), None)
            summary = Summary(cut_short=content.cut_short, continued=before is not None)
            if before and before.size == content.size:
                summary.already_imported = True
            elif content.size:
                self._run(_Log(path, content, before), options, dry_run, summary, progress)
        return summary

    def _run(self, log: _Log, options: Options, dry_run: bool, summary: Summary, progress: Progress | None) -> None:
        """Stage what is new in a log and make it visible."""
        landing = Landing(self._lake, options.organization)
        try:
            whole_size = self._stage(log, options, landing, summary, progress)
            if summary.rejected and not summary.visits and log.before is None:
                raise BadInput(
                    f"{log.path}: none of its {summary.lines:,} lines is in the {summary.log_format} format."
                )
            if not dry_run:
                batch = Batch(
                    options.organization, options.domain, log.content.sha256, log.content.size, whole_size,
                    landing.visits, self._now(), summary.log_format,
                )  # fmt: skip
                landing.commit(batch, log.before)
                self._write_rejects(batch, summary)
        finally:
            landing.discard()

    def _stage(self, log: _Log, options: Options, landing: Landing, summary: Summary, progress: Progress | None) -> int:
        """Stage every visit of the new part of a log; return where its last finished line ends."""
        start = end = log.before.whole_size if log.before else 0
        summary.log_format = options.log_format
        if log.before and options.log_format == "auto":
            summary.log_format = log.before.log_format
        for block in blocks(log.path, log.content, start):
            lines = readers.lines_of(block.text, block.first_line)
            if len(lines):
                if summary.log_format == "auto":
                    summary.log_format = self._detected(log.path, lines)
                readers.read(self._engine, lines, summary.log_format)
                self._tell(summary, lines)
                self._land(self._visits(options), landing, block, summary)
            end = block.end if block.finished else end
            if progress:
                progress(block.end - start, log.content.size - start)
        return end

    def _detected(self, path: Path, lines: pa.Table) -> str:
        try:
            return readers.detect(self._engine, lines)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error

    def _visits(self, options: Options) -> pa.Table:
        """The classified visits of the table `requests`, sorted by day, short code and time."""
        self._engine.execute(_step("facts"))
        self._engine.execute(_step("asked"))
        asked = self._engine.execute("SELECT * FROM asked").fetchall()
        days = self._engine.execute("SELECT DISTINCT CAST(visited_at AS DATE) FROM facts").fetchall()
        salts = salts_of(self._lake.salts, (day for (day,) in days), self._now())
        self._engine.register("answers", self._answers(asked))
        self._engine.register("salts", pa.table({"day": pa.array(salts, pa.date32()), "salt": list(salts.values())}))
        return self._engine.sql(
            _step("visits"),
            params={
                "organization": options.organization,
                "domain": options.domain or None,
                "short_code_pattern": options.short_code_pattern,
                "probe_pattern": self._classifier.probe_pattern(),
                "rules_version": self._classifier.rules_version,
            },
        ).to_arrow_table()

    def _answers(self, asked: list[tuple[Any, ...]]) -> pa.Table:
        """What the classifier says of every distinct (user agent, method, referrer, query)."""
        rows = []
        for number, *strings in asked:
            request = Request(*strings)
            origin = self._classifier.origin(request)
            rows.append(
                (number, *self._classifier.classify(request), readable_user_agent(request.user_agent) or None, None,
                 origin.referrer, origin.referrer_type, *origin.utm)
            )  # fmt: skip
        columns = list(zip(*rows, strict=True)) or [()] * len(_ANSWERS)
        return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, _ANSWERS, strict=True)], _ANSWERS)

    def _tell(self, summary: Summary, lines: pa.Table) -> None:
        mended, nameless = self._engine.execute(
            "SELECT count(*) FILTER (is_mended), count(*) FILTER (user_agent = '') FROM requests WHERE reason IS NULL"
        ).fetchall()[0]
        summary.lines += len(lines)
        summary.mended += mended
        summary.without_user_agent += nameless
        summary.rejects += self._engine.execute(
            "SELECT number, reason FROM requests WHERE reason IS NOT NULL ORDER BY number"
        ).fetchall()

    def _land(self, visits: pa.Table, landing: Landing, block: Block, summary: Summary) -> None:
        if not len(visits):
            return
        landing.stage(visits, unfinished=not block.finished)
        first, last = visits["day"][0].as_py(), visits["day"][-1].as_py()
        summary.visits += len(visits)
        summary.first_day = min(first, summary.first_day or first)
        summary.last_day = max(last, summary.last_day or last)
        for count in visits["bot_category"].value_counts().to_pylist():
            summary.categories[count["values"]] += count["counts"]

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


@cache
def _step(name: str) -> str:
    """The SQL text of one step from requests to visits."""
    return resources.files("data").joinpath("steps", f"{name}.sql").read_text("utf-8")
