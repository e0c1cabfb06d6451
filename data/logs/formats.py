"""Parses log lines into requests. Each format is one SQL file in formats/, named after it.

A format's SQL selects, from the relation `lines` (number, line), the columns number, bytes, domain, ip, forwarded,
visited_at (UTC), method, target, protocol, status (0: none was sent), bytes_sent (text), referrer, user_agent, country,
is_complete, reject_reason and is_repaired, and any other visit column that the format has, with the column's type. A
format that logs more facts about the request adds columns from RequestRecord (data/logs/request_facts.py), NULL where
they are not logged. A server's format has `scheme` and `forwarded_proto` (X-Forwarded-Proto), since the scheme and
protocol that it logs may describe a proxy's connection. `ip` is the address that connected, or, if the log lacks it,
a chain like `forwarded`: the addresses that came with the request, to which each proxy has appended an address.
`reject_reason` may explain why a line is not complete. Missing text is ''. If a request line cannot be parsed, method
and target are ''. Directives, such as #Fields, produce no rows.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput
from data.logs.captures import RECOMMENDED, positions
from data.logs.columns import FIELD_NAMES, ColumnNames, columns_in_header, columns_in_objects
from data.logs.format_names import FORMATS
from data.logs.line_layout import VARIABLES, VARIABLES_TYPE, LineLayout
from data.logs.reported import MAX_BYTES_SENT
from data.logs.source import BOM, MAX_LINE_BYTES
from data.logs.wrappers import TEXT_PATHS
from data.sql import read_sql
from data.text import plural

_POSITIONAL_FORMATS: Final = FORMATS[:3]
"""Formats with fields identified by position. They do not need the macros in fields.sql."""

REQUIRED_TEXTS: Final = {
    "vhost-combined": "[", "combined": "[", "common": "[", "alb": " app/", "caddy": '"uri"',
    "cloudflare": '"ClientRequest', "traefik": '"RequestPath"', "haproxy": "[", "fastly": '"response_status"',
    "vercel": "{", "netlify": '"log_type"', "npm": "[Client ", "heroku": "heroku", "nginx-json": "{",
    "google-cloud": '"requestUrl"', "azure-front-door": '"requestUri"', "azure-application-gateway": '"requestUri"',
    "bunny": "|", "s3": "] ", "envoy": '] "', "envoy-json": "{", "cloudfront-json": "uri", "akamai": '"reqTimeSec"',
    "ndjson": "{",
}  # fmt: skip
"""The string that every line in a format contains. If a log lacks it, the format is ruled out before parsing."""

IN_FUTURE: Final = "more than a day in the future"
"""The reason for rejecting a line with a time later than FormatContext.latest."""

_NO_TIME: Final = "no valid time"
_NO_STATUS: Final = "no valid status"

SAMPLE_LINES = 1000

_BATCH_ROWS: Final = 16_384
"""Number of requests fetched from DuckDB at a time: the columns of a whole block would be copied repeatedly as they
grow, into memory that the system has to clear first."""
_TEXT = re.compile(rb"^[^\S\n]*[^#\s]", re.MULTILINE)


@dataclass(frozen=True)
class FormatContext:
    """The context for parsing lines: earlier lines of the same file, and the user's options."""

    header: bytes = b""  # the first line of the file
    fields: bytes = b""  # the last preceding line that begins with #Fields:
    columns: ColumnNames = field(default_factory=ColumnNames)
    layout: LineLayout | None = None
    captures: tuple[str, ...] = ()  # the headers that HAProxy captures; empty: RECOMMENDED
    latest: datetime = datetime.max  # naive, UTC; later times are rejected

    def parameters(self, name: str) -> dict[str, Any]:
        """Return the parameters for a format's SQL."""
        found: dict[str, Any] = {}
        if name in ("w3c", "cloudfront"):
            found = {"fields": self.fields.decode("utf-8", errors="replace")}
        elif name == "nginx-json":
            found = {"variables": json.dumps(dict.fromkeys(VARIABLES, "VARCHAR"))}
        elif name == "ndjson":
            found = {"fields": list(FIELD_NAMES), "paths": self.columns.paths()}
        elif name == "csv":
            names = columns_in_header(self.header)
            found = {"fields": list(FIELD_NAMES), "positions": self.columns.positions(names), "width": len(names)}
        elif name == "haproxy":
            found = {"at": positions(self.captures or RECOMMENDED), "named": len(self.captures)}
        elif self.layout and name == self.layout.server:
            found = {"pattern": self.layout.pattern, "names": list(self.layout.names)}
        return found


_NO_CONTEXT: Final = FormatContext()


def _not_in(log_format: str) -> str:
    """Return the reason for rejecting a line if its format gives no other reason."""
    return f"not in the {log_format.partition(' ')[0]} format"


def vague_reasons(log_format: str) -> tuple[str, str, str]:
    """Return the reject reasons of lines that may be in another format, since they match this format only by chance or
    not at all.
    """
    return _not_in(log_format), _NO_TIME, _NO_STATUS


def has_text(text: bytes) -> bool:
    """Return whether any line is neither empty nor a directive (a line that begins with #)."""
    return _TEXT.search(text.removeprefix(BOM)) is not None


def first_lines(text: bytes, first_line: int) -> pa.Table:
    """Return the first lines of `text`, up to SAMPLE_LINES, as a table (number, line) for detecting the format. Empty
    lines are skipped.
    """
    start = end = len(text) - len(text.lstrip(b"\r\n"))
    for _ in range(SAMPLE_LINES):
        end = text.find(b"\n", end) + 1 or len(text)
    return split_lines(text[start:end], first_line + text.count(b"\n", 0, start))


def split_lines(text: bytes, first_line: int) -> pa.Table:
    """Return the non-empty lines of `text` as a table (number, line). Undecodable bytes and NULs become U+FFFD.

    An overlong line is truncated, but stays long enough to be rejected.
    """
    clean = text.removeprefix(BOM) if first_line == 1 else text
    if not clean.isascii():
        clean = clean.decode("utf-8", errors="replace").encode()
    if b"\0" in clean:
        clean = clean.replace(b"\0", "\ufffd".encode())
    ends = pa.array([0, len(clean)], pa.int64())
    whole = pa.LargeStringArray.from_buffers(1, ends.buffers()[1], pa.py_buffer(clean))  # one string, not copied
    lines = pc.split_pattern(whole, "\n").flatten()
    if clean.endswith(b"\n"):
        lines = lines.slice(0, len(lines) - 1)
    if b"\r" in clean:
        lines = pc.utf8_rtrim(lines, "\r")
    lengths = pc.min_max(pc.binary_length(lines)).as_py()
    if (lengths["max"] or 0) > MAX_LINE_BYTES:
        lines = pc.utf8_slice_codeunits(lines, 0, MAX_LINE_BYTES + 1)
    numbers = pa.arange(first_line, first_line + len(lines))
    table = pa.table({"number": numbers, "line": lines})
    return table if lengths["min"] else table.filter(pc.not_equal(lines, ""))


class UnknownFormat(BadInput):
    """No format matches any of the first lines of a log."""


class LineReader:
    """Parses lines in any format with a DuckDB connection in the time zone UTC."""

    def __init__(self, engine: duckdb.DuckDBPyConnection) -> None:
        self._engine = engine
        self._engine.execute(read_sql("data.logs", "formats/macros"))
        self._has_field_macros = False

    def read(self, lines: pa.Table, log_format: str, context: FormatContext = _NO_CONTEXT) -> pa.Table:
        """Return the requests in `lines`, one row each; `reason` is null if the line could be parsed."""
        log_format = log_format.partition(" ")[0]  # without the command-line flag that may follow it
        if log_format not in _POSITIONAL_FORMATS:
            self._add_field_macros()
        self._engine.register("lines", lines)
        requests = self._engine.sql(
            f"""
            SELECT * EXCLUDE (is_complete, reject_reason) REPLACE (
                http_version(protocol) AS protocol,
                CASE WHEN try_cast(bytes_sent AS UBIGINT) <= {MAX_BYTES_SENT}
                    THEN try_cast(bytes_sent AS BIGINT) END AS bytes_sent,
                nullif(status, 0) AS status
            ), CASE
                WHEN bytes > {MAX_LINE_BYTES} THEN 'longer than {MAX_LINE_BYTES} bytes'
                WHEN NOT is_complete THEN coalesce(nullif(reject_reason, ''), '{_not_in(log_format)}')
                WHEN visited_at IS NULL OR visited_at NOT BETWEEN '1970-01-01' AND '2999-12-31' THEN '{_NO_TIME}'
                WHEN visited_at > $latest THEN '{IN_FUTURE}'
                WHEN status IS NULL OR status = 0 AND target = '' THEN '{_NO_STATUS}'
            END AS reason
            FROM ({read_sql("data.logs", f"formats/{log_format}")})
            """,
            params={**context.parameters(log_format), "latest": context.latest},
        ).to_arrow_table(_BATCH_ROWS)
        self._engine.unregister("lines")
        return requests

    def read_all(self, lines: pa.Table, log_format: str, context: FormatContext = _NO_CONTEXT) -> pa.Table:
        """Return the requests in `lines`, as returned by `read`, and the requests in lines wrapped by rejected lines.

        A line in several parts gets the number of its last part. If the wrapped line is also rejected, the wrapper's
        reason is kept if it is more specific.
        """
        requests = self.read(lines, log_format, context)
        refused = requests["number"].filter(requests["reason"].is_valid()).combine_chunks()
        inner = self.unwrap(lines.filter(pc.is_in(lines["number"], refused))) if len(refused) else refused
        if not len(inner):
            return requests
        found = self.read_all(inner.select(["number", "line"]), log_format, context)
        is_vague = pc.is_in(requests["reason"], pa.array(vague_reasons(log_format)))
        vague = requests["number"].filter(is_vague).combine_chunks()
        is_specific = pc.fill_null(pc.not_equal(found["reason"], _not_in(log_format)), True)
        is_specific = pc.or_(is_specific, pc.is_in(found["number"], vague))
        unspecific = found["number"].filter(pc.invert(is_specific)).combine_chunks()
        is_inside = pc.is_in(requests["number"], pc.list_flatten(inner["parts"]).combine_chunks())
        is_kept = pc.or_(pc.invert(is_inside), pc.is_in(requests["number"], unspecific))
        return pa.concat_tables([requests.filter(is_kept), found.filter(is_specific)])

    def unwrap(self, lines: pa.Table) -> pa.Table:
        """Return the lines wrapped by JSON objects among `lines`, and JSON after a prefix, as a table (number, line,
        parts).
        """
        lines = lines.filter(pc.match_substring(lines["line"], "{"))
        if not len(lines):
            return lines
        self._add_field_macros()
        self._engine.register("lines", lines)
        found = self._engine.sql(
            read_sql("data.logs", "formats/wrapped"), params={"paths": list(TEXT_PATHS)}
        ).to_arrow_table(_BATCH_ROWS)
        self._engine.unregister("lines")
        return found

    def _add_field_macros(self) -> None:
        """Define the macros for formats with named fields, only on first use, because this is slow."""
        if not self._has_field_macros:
            self._engine.execute(VARIABLES_TYPE)
            self._engine.execute(read_sql("data.logs", "formats/fields"))
            self._has_field_macros = True

    def detect(self, lines: pa.Table, context: FormatContext = _NO_CONTEXT) -> str:
        """Return the format that matches the largest number of the first lines, or if none matches, of the lines that
        they wrap; with renamed columns, return ndjson or csv.

        Raises UnknownFormat if no format matches any line.
        """
        sample, best, most = lines.slice(0, SAMPLE_LINES), "", 0
        context = replace(context, latest=datetime.max)
        if context.columns.renamed:
            return "ndjson" if any(line.startswith("{") for line in sample["line"].to_pylist()) else "csv"
        text = "".join(sample["line"].to_pylist())
        for log_format in FORMATS:
            if REQUIRED_TEXTS.get(log_format, "") not in text:
                continue
            if log_format == "csv" and context.columns.missing(columns_in_header(context.header)):
                continue
            reasons = self.read(sample, log_format, context)["reason"]
            if reasons.null_count == len(reasons):
                return log_format
            if reasons.null_count > most:
                best, most = log_format, reasons.null_count
        if not best and len(inner := self.unwrap(sample)):
            return self.detect(inner.select(["number", "line"]), replace(context, header=b"", fields=b""))
        if not best:
            raise UnknownFormat(f"no known log format matches its first {plural(len(sample), 'line')}")
        return best


def check_columns(lines: Iterable[str], log_format: str, context: FormatContext) -> None:
    """Raise BadInput if a log in a format with named columns lacks a required column."""
    name = log_format.partition(" ")[0]
    if name == "csv":
        context.columns.require(columns_in_header(context.header), all_renamed=True)
    elif name == "ndjson" and (names := columns_in_objects(lines)):
        context.columns.require(names)
