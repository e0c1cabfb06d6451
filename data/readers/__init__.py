"""The log formats that can be read: one SQL file each, named like its format.

A reader turns the relation `lines` (number, line) into the facts of requests: number, bytes, domain, ip,
visited_at (UTC), request, status, referrer, user_agent, country, and whether the line is whole or was mended.
Missing text is ''. Classification and storage are not here.
"""

from importlib import resources
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import BadInput
from data.source import LONGEST_LINE

FORMATS: Final = ("vhost-combined", "combined", "common")
"""Strictest first: where two explain a log equally well, the first one is meant."""

SAMPLE_LINES = 1000


def text_of(name: str) -> str:
    """The SQL text of one file of this folder."""
    return resources.files(__name__).joinpath(f"{name}.sql").read_text("utf-8")


def lines_of(text: bytes, first_line: int) -> pa.Table:
    """The non-empty lines of `text` as (number, line). Undecodable bytes and NULs become U+FFFD."""
    decoded = text.decode("utf-8", errors="replace").replace("\0", "\ufffd").removesuffix("\n")
    lines = pc.split_pattern(pa.array([decoded], pa.large_string()), "\n").flatten()
    if "\r" in decoded:
        lines = pc.utf8_rtrim(lines, "\r")
    numbers = pa.arange(first_line, first_line + len(lines))
    return pa.table({"number": numbers, "line": lines}).filter(pc.not_equal(lines, ""))


def read(engine: duckdb.DuckDBPyConnection, lines: pa.Table, log_format: str) -> None:
    """Make the table `requests` of every line, with `reason` null where the line could be read."""
    engine.register("lines", lines)
    engine.execute(f"""
        CREATE OR REPLACE TEMP TABLE requests AS
        SELECT *, CASE
            WHEN bytes > {LONGEST_LINE} THEN 'longer than {LONGEST_LINE} bytes'
            WHEN NOT is_whole THEN 'not in the {log_format} format'
            WHEN visited_at IS NULL OR visited_at NOT BETWEEN '1970-01-01' AND '2999-12-31' THEN 'no readable time'
            WHEN status IS NULL THEN 'no readable status'
        END AS reason
        FROM ({text_of(log_format)})
    """)
    engine.unregister("lines")


def detect(engine: duckdb.DuckDBPyConnection, lines: pa.Table) -> str:
    """The format that explains most of the first lines. Raises BadInput when none explains any."""
    best, most = "", 0
    for log_format in FORMATS:
        read(engine, lines.slice(0, SAMPLE_LINES), log_format)
        (explained,) = engine.execute("SELECT count(*) FILTER (reason IS NULL) FROM requests").fetchall()[0]
        if explained > most:
            best, most = log_format, explained
    if not best:
        raise BadInput(
            f"no log format explains its first {min(len(lines), SAMPLE_LINES):,} lines; known are {', '.join(FORMATS)}."
        )
    return best
