"""From a block of log lines to classified visits: the lines are read here, who made them is told in pipeline.py.

Where lines come from and where visits go is not here. Client addresses live in these two modules only, in memory.
"""

from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput
from data.ingest.pipeline import Rules, Tenant, VisitBuilder
from data.logs import formats
from data.logs.source import Block
from data.rules.patterns import check_short_code_pattern
from data.visits import SHORT_CODE_PATTERN, check_organization


@dataclass(frozen=True)
class Options:
    """How the lines of one import are to be understood. Raises BadInput when they cannot be."""

    organization: str
    domain: str = ""  # of lines that name none themselves
    log_format: str = "auto"
    short_code_pattern: str = SHORT_CODE_PATTERN
    columns: formats.Columns = field(default_factory=formats.Columns)
    nginx_log_format: formats.NginxLogFormat | None = None

    def __post_init__(self) -> None:
        check_organization(self.organization)
        self._check_format()
        check_short_code_pattern(self.short_code_pattern)

    @property
    def flag(self) -> str:
        """The flag that says how to read the lines, and without which they cannot be read again; '' for none."""
        if self.nginx_log_format:
            return "--log-format"
        return "--columns" if self.columns.renamed else ""

    @property
    def reader(self) -> str:
        """The format that lines are read in, and the flag that this needs; auto when the lines are to tell."""
        log_format = formats.NGINX_LOG_FORMAT if self.nginx_log_format else self.log_format
        return log_format if log_format == "auto" else self.flagged(log_format)

    def flagged(self, log_format: str) -> str:
        """A format by its name, and the flag that it needs to be read again."""
        return f"{log_format} {self.flag}".rstrip()

    def _check_format(self) -> None:
        known = ("auto", *formats.FORMATS)
        if self.log_format not in known:
            raise BadInput(
                f"{self.log_format!r} is not a known log format; use one of {', '.join(known)}. "
                "A Parquet file is read as ndjson, a log of nginx's own format with --log-format."
            )
        if self.nginx_log_format and (self.log_format != "auto" or self.columns.renamed):
            raise BadInput("--log-format describes the whole line; omit --format and --columns.")
        if self.columns.renamed and self.log_format not in ("auto", *formats.NAMED_COLUMN_FORMATS):
            raise BadInput(
                f"--columns goes with {' and '.join(formats.NAMED_COLUMN_FORMATS)}, not with {self.log_format}."
            )


@dataclass(frozen=True)
class BlockResult:
    """What one block of a log came to."""

    block: Block
    visits: pa.Table  # `day` and the columns of VISITS, sorted by day, short code and time
    lines: int
    repaired: int
    without_user_agent: int
    rejects: list[tuple[int, str]]  # line number and reason


class BlockReader:
    """Reads blocks, one at a time. Several readers may share a classifier and run side by side."""

    def __init__(self, rules: Rules) -> None:
        self._engine = duckdb.connect()
        self._engine.execute("SET threads = 1")  # blocks are read side by side: there is a reader for each core
        self._engine.execute("SET TimeZone = 'UTC'")
        self._engine.execute("SET temp_directory = ''")  # what is read holds addresses: nothing of it may spill to disk
        self._line_reader = formats.LineReader(self._engine)
        self._visit_builder = VisitBuilder(self._engine, rules)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def resolve_format(self, block: Block, log_format: str, options: Options) -> str:
        """The format to read a log in, seen from this block if it is auto.

        Raises BadInput when none explains the block, or when it lacks a column that the format needs.
        """
        lines, context = formats.first_lines(block.text, block.first_line), _context(block, options)
        if log_format == "auto":
            log_format = options.flagged(self._line_reader.detect(lines, context))
        formats.check_columns(lines, log_format, context)
        return log_format

    def read(self, block: Block, log_format: str, options: Options) -> BlockResult:
        """The visits of a block's lines in a format, and which lines are none.

        While the format is auto there were no lines yet, directives at most.
        """
        log_format = "w3c" if log_format == "auto" else log_format
        lines = formats.split_lines(block.text, block.first_line)
        requests = self._line_reader.read(lines, log_format, _context(block, options))
        readable, rejects = _parted(requests)
        repaired = pc.sum(readable["is_repaired"]).as_py() or 0
        nameless = pc.sum(pc.equal(readable["user_agent"], "")).as_py() or 0
        tenant = Tenant(options.organization, options.domain, options.short_code_pattern)
        return BlockResult(
            block, self._visit_builder.visits(readable, tenant), len(requests), repaired, nameless, rejects
        )


def _parted(requests: pa.Table) -> tuple[pa.Table, list[tuple[int, str]]]:
    """The requests that could be read, and the numbers of the other lines with the reasons."""
    reason = requests["reason"]
    if reason.null_count == len(reason):
        return requests, []
    refused = requests.filter(reason.is_valid()).sort_by("number")
    rejects = zip(refused["number"].to_pylist(), refused["reason"].to_pylist(), strict=True)
    return requests.filter(reason.is_null()), list(rejects)


def _context(block: Block, options: Options) -> formats.FormatContext:
    return formats.FormatContext(block.header, block.fields, options.columns, options.nginx_log_format)
