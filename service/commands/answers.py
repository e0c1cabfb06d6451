"""Answers written to stdout as a table, JSON, CSV or Parquet."""

import csv
import io
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from data import BadInput
from service.clock import to_text
from service.commands.tables import parts_of, print_table

if TYPE_CHECKING:
    from queries import Result

FORMATS: Final = ("table", "json", "csv", "parquet")


def select_columns(answer: "Result", names: str) -> "Result":
    """The answer with these columns only, separated by commas, in this order; all if `names` is empty.

    Raises BadInput for an unknown name, or if the answer has several parts.
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen:
        return answer
    if parts := parts_of(answer):
        raise BadInput(f"--columns is for one table; choose one with --part: {', '.join(parts)}.")
    rows = answer if isinstance(answer, list) else [answer]
    unknown = [name for name in chosen if rows and name not in rows[0]]
    if unknown:
        raise BadInput(f"there is no column {unknown[0]!r}; use {', '.join(rows[0])}.")
    selected = [{name: row[name] for name in chosen} for row in rows]
    return selected if isinstance(answer, list) else selected[0]


def check_format(answer: "Result", output: str) -> None:
    """Raise BadInput if a format cannot represent the answer: CSV and Parquet hold one table."""
    if output in ("csv", "parquet") and (parts := parts_of(answer)):
        raise BadInput(f"this answer has several parts; choose one with --part: {', '.join(parts)}.")


def print_answer(answer: "Result", output: str, is_wide: bool = False) -> None:
    """Write an answer to stdout in one of FORMATS. Raises BadInput if the format cannot represent it.

    `is_wide`: a table is printed whole on a terminal, too, however wide it is.
    """
    from service.encoding import encode

    if output == "table":
        print_table(answer, is_wide)
    elif output == "json":
        _write(encode(answer))
    else:
        check_format(answer, output)
        rows = answer if isinstance(answer, list) else [answer]
        _write(csv_bytes(rows, list(rows[0]) if rows else []) if output == "csv" else _parquet(rows))


def _write(body: bytes) -> None:
    sys.stdout.buffer.write(body)
    if sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")


def csv_bytes(rows: list[dict[str, Any]], names: list[str]) -> bytes:
    """Rows as CSV in UTF-8, after a line with the names of their columns; nothing at all without names."""
    text = io.StringIO()
    if names:
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return to_text(value)
    import orjson

    return orjson.dumps(value).decode() if isinstance(value, list | bool) else value


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    if sys.stdout.isatty():
        raise BadInput(
            "Parquet is binary and cannot be shown on a terminal; redirect it to a file with > answer.parquet."
        )
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue())
