"""Turns a block of log lines into visits: parses the lines and passes the requests to pipeline.py.

Client addresses are kept only in memory: here, in client_addresses.py, and in pipeline.py, which drops them.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput
from data.hosts import check_host
from data.ingest.client_addresses import most_common_local
from data.ingest.pipeline import Rules, Tenant, VisitBuilder
from data.logs import formats
from data.logs.column_guess import ColumnGuess, guess_columns
from data.logs.columns import ColumnNames, columns_from, rows_in_objects
from data.logs.format_names import FORMATS, NAMED_COLUMN_FORMATS
from data.logs.line_layout import LineLayout
from data.logs.mixed_lines import read_mixed
from data.logs.reported import MAX_CLOCK_SKEW
from data.logs.source import Block, Source
from data.rules.exclusions import Exclusion
from data.rules.files import FILE_PATTERN
from data.rules.patterns import check_short_code_pattern
from data.visits import SHORT_CODE_PATTERN, check_organization

_NO_TEXT: Final = pa.scalar("", pa.string())


@dataclass(frozen=True)
class Options:
    """The options of one import. Raises BadInput if they are invalid or contradict each other."""

    organization: str
    domain: str = ""  # the domain of lines without a host; recorded in the manifest with the log, as given
    log_format: str = "auto"
    short_code_pattern: str = SHORT_CODE_PATTERN
    columns: ColumnNames = field(default_factory=ColumnNames)
    layout: LineLayout | None = None
    skip_assets: bool = False  # whether requests for images, stylesheets, scripts and fonts are left out
    needs_domain: bool = False  # whether a log with no hosts in its lines requires `domain`
    captures: tuple[str, ...] = ()  # the headers that HAProxy captures, in order; empty: RECOMMENDED of captures.py
    guesses_columns: bool = False  # whether the columns of JSON in no known format are guessed from its keys

    def __post_init__(self) -> None:
        check_organization(self.organization)
        if self.domain:
            check_host(self.domain, "--domain")
        check_short_code_pattern(self.short_code_pattern)
        known = ("auto", *FORMATS)
        if self.log_format not in known:
            raise BadInput(
                f"{self.log_format!r} is not a known log format; use one of {', '.join(known)}. "
                "Read a Parquet file as ndjson, and a log in a custom nginx or Apache format with --log-format."
            )
        if self.layout and (self.log_format != "auto" or self.columns.renamed):
            raise BadInput("--log-format describes the whole line; omit --format and --columns.")
        if self.columns.renamed and self.log_format not in ("auto", *NAMED_COLUMN_FORMATS):
            raise BadInput(f"--columns works with {' and '.join(NAMED_COLUMN_FORMATS)}, not with {self.log_format}.")
        if self.captures and (self.flag != "--captures" or self.log_format not in {"auto", "haproxy"}):
            other = self.log_format if self.flag == "--captures" else self.flag
            raise BadInput(f"--captures works with haproxy, not with {other}; omit one of the two.")

    @property
    def flag(self) -> str:
        """The command-line flag that must be given again to import later lines of this log; '' if there is none."""
        if self.layout:
            return "--log-format"
        if self.columns.renamed:
            return "--columns"
        return "--captures" if self.captures else ""

    @property
    def reader(self) -> str:
        """The format of the lines, followed by its flag if it has one; `auto` if it is to be detected."""
        log_format = self.layout.server if self.layout else "haproxy" if self.captures else self.log_format
        return log_format if log_format == "auto" else self.with_flag(log_format)

    @property
    def may_be_mixed(self) -> bool:
        """True if lines may be in formats other than the log's: if no option describes the lines."""
        return self.reader == "auto" and not self.columns.renamed

    def with_flag(self, log_format: str) -> str:
        """Return the name of a format, followed by its flag if it has one."""
        return f"{log_format} {self.flag}".rstrip()


@dataclass(frozen=True)
class BlockResult:
    """The visits in one block of a log, and statistics about the block's lines."""

    block: Block
    visits: pa.Table  # `day` and the columns of VISITS, sorted by day, short code and time
    lines: int
    repaired: int  # lines without their closing quote
    without_user_agent: int
    invalid_domains: int  # visits with an invalid host in their line
    names_hosts: bool  # whether any line names a host
    assets: int  # requests left out because of `skip_assets`
    local: Counter[str]  # number of visits from the most frequent address, if that is local
    rejects: list[tuple[int, str]]  # line number and reason
    excluded: Counter[Exclusion]  # number of visits set aside, by rule of their owner
    others: Counter[str]  # number of lines in each format other than the log's


class BlockReader:
    """Reads one block at a time. Several readers may share a classifier and run in parallel."""

    def __init__(self, rules: Rules, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._clients = rules.clients
        self._engine = duckdb.connect()
        self._engine.execute("SET threads = 1")  # blocks are read in parallel, with one reader for each core
        self._engine.execute("SET TimeZone = 'UTC'")
        self._engine.execute("SET temp_directory = ''")  # lines contain IP addresses, which must not be spilled to disk
        self._line_reader = formats.LineReader(self._engine)
        self._visit_builder = VisitBuilder(self._engine, rules)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def resolve_format(self, block: Block, log_format: str, options: Options) -> str:
        """Return `log_format`, or if that is auto, the format detected from this block.

        A detected format is followed by its flag, if it has one: the flag that the user gave, or --columns with the
        guessed columns. Raises BadInput if no format matches, or if the block lacks a column that the format needs.
        """
        lines, context = formats.first_lines(block.text, block.first_line), self._context(block, log_format, options)
        if log_format == "auto":
            try:
                log_format = options.with_flag(self._line_reader.detect(lines, context))
            except formats.UnknownFormat as error:
                guess = guess_columns(rows_in_objects(lines["line"].to_pylist()))
                if guess.missing:
                    guess = guess_columns(rows_in_objects(self._line_reader.unwrap(lines)["line"].to_pylist()))
                return _guessed_format(guess, options, error)
        texts = lines["line"].to_pylist()
        if log_format.startswith("ndjson"):
            texts += self._line_reader.unwrap(lines)["line"].to_pylist()
        formats.check_columns(texts, log_format, context)
        return log_format

    def read(self, block: Block, log_format: str, options: Options) -> BlockResult:
        """Parse and classify the lines of a block. Lines that cannot be parsed are listed in `rejects`."""
        log_format = "w3c" if log_format == "auto" else log_format  # still auto: the log has had only directives so far
        lines = formats.split_lines(block.text, block.first_line)
        context = self._context(block, log_format, options)
        if options.may_be_mixed:
            found = read_mixed(self._line_reader, lines, log_format, context)
        else:
            found = {log_format: self._line_reader.read_all(lines, log_format, context)}
        requests = pa.concat_tables(map(self._clients.resolve, found.values()), promote_options="permissive")
        reason, valid, rejects = requests["reason"], requests, list[tuple[int, str]]()
        if reason.null_count < len(reason):
            rejected = requests.filter(reason.is_valid()).sort_by("number")
            rejects = [*zip(rejected["number"].to_pylist(), rejected["reason"].to_pylist(), strict=True)]
            valid = requests.filter(reason.is_null())
        readable = valid
        if options.skip_assets:
            readable = valid.filter(pc.invert(pc.match_substring_regex(valid["target"], FILE_PATTERN)))
        repaired = pc.sum(readable["is_repaired"]).as_py() or 0
        without_user_agent = pc.sum(pc.equal(readable["user_agent"], _NO_TEXT)).as_py() or 0
        tenant = Tenant(options.organization, options.domain, options.short_code_pattern)
        visits, excluded = self._visit_builder.visits(readable, tenant)
        without_host = pc.sum(pc.equal(readable["domain"], _NO_TEXT)).as_py() or 0
        return BlockResult(
            block,
            visits,
            lines=len(requests),
            repaired=repaired,
            without_user_agent=without_user_agent,
            invalid_domains=visits["domain"].null_count - (0 if options.domain else without_host),
            names_hosts=without_host < len(readable),
            assets=len(valid) - len(readable),
            local=most_common_local(readable["ip"]),
            rejects=rejects,
            excluded=excluded,
            others=Counter({name: len(part) for name, part in found.items() if name != log_format}),
        )

    def _context(self, block: Block, log_format: str, options: Options) -> formats.FormatContext:
        latest = (self._now() + MAX_CLOCK_SKEW).astimezone(UTC).replace(tzinfo=None)
        guessed = log_format.partition(" --columns ")[2]
        columns = columns_from(guessed) if guessed else options.columns
        return formats.FormatContext(block.header, block.fields, columns, options.layout, options.captures, latest)


def _guessed_format(guess: ColumnGuess, options: Options, error: formats.UnknownFormat) -> str:
    """Return ndjson with the flag for the guessed columns. Raises UnknownFormat if the guess is uncertain, or if the
    options do not allow guessing.
    """
    if guess.rivals and not guess.missing:
        keys = "; ".join(f"{' and '.join(columns)} for {name}" for name, columns in guess.rivals.items())
        raise formats.UnknownFormat(f"{error}; its JSON has more than one key for a field: {keys}") from error
    if not guess.is_certain:
        raise error
    if not options.guesses_columns:
        raise formats.UnknownFormat(
            f"{error}; its JSON can be read with --columns {shlex.quote(guess.pairs)}"
        ) from error
    return f"ndjson --columns {guess.pairs}"


class ReaderPool:
    """Block readers, opened on demand: opening one takes as long as reading a block, and most logs have one block."""

    def __init__(self, open_reader: Callable[[], BlockReader]) -> None:
        self._open_reader = open_reader
        self._free: SimpleQueue[BlockReader] = SimpleQueue()

    def read(self, block: Block, log_format: str, options: Options) -> BlockResult:
        """See BlockReader.read."""
        with self._borrowed() as reader:
            return reader.read(block, log_format, options)

    def resolve_format(self, path: Source, block: Block, log_format: str, options: Options) -> str:
        """See BlockReader.resolve_format. Raises BadInput with the log's name in the message."""
        try:
            with self._borrowed() as reader:
                return reader.resolve_format(block, log_format, options)
        except formats.UnknownFormat as error:
            explain = f"`traffic formats explain {shlex.quote(str(path))}`"
            remedy = "shows where its lines differ from the nearest format and proposes --log-format or --columns"
            raise BadInput(f"{path}: {error}; {explain} {remedy}.") from error
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error

    @contextmanager
    def _borrowed(self) -> Iterator[BlockReader]:
        """Yield a reader for exclusive use inside the context. If the context raises, the reader is closed."""
        try:
            reader = self._free.get_nowait()
        except Empty:
            reader = self._open_reader()
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        self._free.put(reader)

    def close(self, keep: int = 0) -> None:
        """Close the idle readers, except `keep` of them."""
        while self._free.qsize() > keep:
            self._free.get_nowait().close()
