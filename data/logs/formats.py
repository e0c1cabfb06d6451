"""The log formats that can be read: one SQL file each, named like its format.

A reader turns the relation `lines` (number, line) into the facts of requests: number, bytes, domain, ip,
visited_at (UTC), request, status, referrer, user_agent, country, and whether the line is whole or was mended;
`flaw` tells more of one that is not whole. Missing text is ''. Lines that only say how to read others are left
out. Classification and storage are not here.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput
from data.logs.columns import NAMES, Columns, columns_from, columns_in_header, columns_in_objects
from data.logs.format_names import FORMATS
from data.logs.nginx_log_format import VARIABLES, Notation, notation_of
from data.logs.source import BOM, LONGEST_LINE
from data.sql import read_sql

__all__ = [
    "BY_COLUMNS", "BY_NOTATION", "FORMATS", "NAMES", "Columns", "Guide", "Notation", "beginning_of", "check",
    "columns_from", "detect", "has_text", "lines_of", "notation_of", "read", "text_of",
]  # fmt: skip

_BY_PLACE: Final = FORMATS[:3]
"""The formats whose fields are known by their places alone."""

BY_COLUMNS: Final = ("ndjson", "csv")
"""The formats whose columns may have names of one's own."""

BY_NOTATION: Final = "nginx"
"""The format of logs that are read by a notation. It cannot be seen from the lines."""

SAMPLE_LINES = 1000
_TEXT = re.compile(rb"^[^\S\n]*[^#\s]", re.MULTILINE)


@dataclass(frozen=True)
class Guide:
    """What must be known to read lines, beside the lines themselves."""

    header: bytes = b""  # the first line of their file
    fields: bytes = b""  # the last line before them that begins with #Fields:
    columns: Columns = field(default_factory=Columns)
    notation: Notation | None = None

    def parameters(self, name: str) -> dict[str, Any]:
        """What the SQL of a format asks for."""
        if name in ("w3c", "cloudfront"):
            return {"fields": self.fields.decode("utf-8", errors="replace")}
        if name == "nginx-json":
            return {"variables": json.dumps(dict.fromkeys(VARIABLES, "VARCHAR"))}
        if name == "ndjson":
            return {"paths": self.columns.paths()}
        if name == "csv":
            found = columns_in_header(self.header)
            return {"places": self.columns.places(found), "width": len(found)}
        if name == BY_NOTATION and self.notation:
            return {"pattern": self.notation.pattern, "names": list(self.notation.names)}
        return {}


_NO_GUIDE: Final = Guide()


def text_of(name: str) -> str:
    """The SQL text of one file of the folder `formats`."""
    return read_sql("data.logs", f"formats/{name}")


def has_text(text: bytes) -> bool:
    """Whether any line is neither empty nor a directive, which begins with #."""
    return _TEXT.search(text.removeprefix(BOM)) is not None


def beginning_of(text: bytes, first_line: int) -> pa.Table:
    """The first lines of `text`, enough to see a format from, as (number, line)."""
    start = len(text) - len(text.lstrip(b"\r\n"))
    lines = text[start:].split(b"\n", SAMPLE_LINES)[:SAMPLE_LINES]
    return lines_of(b"\n".join(lines), first_line + text.count(b"\n", 0, start))


def lines_of(text: bytes, first_line: int) -> pa.Table:
    """The non-empty lines of `text` as (number, line). Undecodable bytes and NULs become U+FFFD."""
    clean = _clean(text.removeprefix(BOM) if first_line == 1 else text)
    lines = pc.split_pattern(_one_text(clean), "\n").flatten()
    if clean.endswith(b"\n"):
        lines = lines.slice(0, len(lines) - 1)
    if b"\r" in clean:
        lines = pc.utf8_rtrim(lines, "\r")
    numbers = pa.arange(first_line, first_line + len(lines))
    table = pa.table({"number": numbers, "line": lines})
    return table if pc.min(pc.binary_length(lines)).as_py() else table.filter(pc.not_equal(lines, ""))


def _clean(text: bytes) -> bytes:
    if not text.isascii():
        text = text.decode("utf-8", errors="replace").encode()
    return text.replace(b"\0", "\ufffd".encode()) if b"\0" in text else text


def _one_text(text: bytes) -> pa.LargeStringArray:
    """One string that holds a text, which is not copied."""
    ends = pa.array([0, len(text)], pa.int64())
    return pa.LargeStringArray.from_buffers(1, ends.buffers()[1], pa.py_buffer(text))


def read(engine: duckdb.DuckDBPyConnection, lines: pa.Table, log_format: str, guide: Guide = _NO_GUIDE) -> pa.Table:
    """The requests of every line, with `reason` null where it could be read; in the engine they are `requests`."""
    log_format = _name_of(log_format)
    if log_format not in _BY_PLACE:
        _teach_fields(engine)
    engine.register("lines", lines)
    requests = engine.sql(
        f"""
        SELECT * EXCLUDE (flaw), CASE
            WHEN bytes > {LONGEST_LINE} THEN 'longer than {LONGEST_LINE} bytes'
            WHEN NOT is_whole THEN coalesce(nullif(flaw, ''), 'not in the {log_format} format')
            WHEN visited_at IS NULL OR visited_at NOT BETWEEN '1970-01-01' AND '2999-12-31' THEN 'no readable time'
            WHEN status IS NULL THEN 'no readable status'
        END AS reason
        FROM ({text_of(log_format)})
        """,
        params=guide.parameters(log_format),
    ).to_arrow_table()
    engine.unregister("lines")
    engine.register("requests", requests)
    return requests


def detect(engine: duckdb.DuckDBPyConnection, lines: pa.Table, guide: Guide = _NO_GUIDE) -> str:
    """The format that explains most of the first lines. Raises BadInput when none explains any."""
    sample, best, most = lines.slice(0, SAMPLE_LINES), "", 0
    if guide.columns.renamed:
        return "ndjson" if any(line.startswith("{") for line in sample["line"].to_pylist()) else "csv"
    for log_format in FORMATS:
        if log_format == "csv" and guide.columns.missing(columns_in_header(guide.header)):
            continue
        read(engine, sample, log_format, guide)
        found, explained = engine.execute("SELECT count(*), count(*) FILTER (reason IS NULL) FROM requests").fetchall()[
            0
        ]
        if found == explained:
            return log_format
        if explained > most:
            best, most = log_format, explained
    if not best:
        raise BadInput(
            f"no log format explains its first {len(sample):,} lines; known are {', '.join(FORMATS)}. "
            "Describe lines like nginx's with --log-format, and name columns of JSON, CSV or Parquet with --columns."
        )
    return best


def check(lines: pa.Table, log_format: str, guide: Guide) -> None:
    """Raise BadInput when the columns that a format needs are not in a log."""
    name = _name_of(log_format)
    if name == "csv":
        guide.columns.require(columns_in_header(guide.header), promised=True)
    elif name == "ndjson" and (found := columns_in_objects(lines["line"].to_pylist())):
        guide.columns.require(found)


def _teach_fields(engine: duckdb.DuckDBPyConnection) -> None:
    """Let the engine know the words of fields.sql; once, for that takes longer than to read a small log."""
    if engine.execute("SELECT getvariable('knows_fields')").fetchall() == [(None,)]:
        engine.execute(text_of("fields"))
        engine.execute("SET VARIABLE knows_fields = TRUE")


def _name_of(log_format: str) -> str:
    """The name of a format, without the flag that may follow it."""
    return log_format.partition(" ")[0]
