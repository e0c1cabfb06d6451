"""Answers written to stdout as a table, JSON, CSV or Parquet."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from data import BadInput
from service.core.commands.printing import escaped, inform
from service.core.commands.tables import parts_of, print_table

if TYPE_CHECKING:
    from queries import Result

FORMATS: Final = ("table", "json", "csv", "parquet")


def select_columns(answer: "Result", names: str) -> "Result":
    """Return the answer with only the comma-separated columns in `names`, in that order, or with all columns if `names`
    is empty.

    Raises BadInput for an unknown name, or if the answer has several parts.
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if not chosen:
        return answer
    if parts := parts_of(answer):
        raise BadInput(f"--columns applies to a single table; choose one with --part: {', '.join(parts)}.")
    rows = answer if isinstance(answer, list) else [answer]
    unknown = [name for name in chosen if rows and name not in rows[0]]
    if unknown:
        raise BadInput(f"unknown column {unknown[0]!r}; use {', '.join(rows[0])}.")
    selected = [{name: row[name] for name in chosen} for row in rows]
    return selected if isinstance(answer, list) else selected[0]


def check_format(output: str, formats: Sequence[str] = FORMATS, *, is_raw: bool = False) -> None:
    """Raise BadInput unless `output` is one of `formats`; with `is_raw`, only CSV is allowed."""
    if output not in formats:
        raise BadInput(f"{output!r} is not an output format; use {', '.join(formats[:-1])} or {formats[-1]}.")
    if is_raw and output != "csv":
        raise BadInput("--raw needs --format csv; only CSV escapes formulas.")


def check_parts(answer: "Result", output: str) -> None:
    """Raise BadInput if a format cannot represent the answer: a CSV or Parquet file contains only one table."""
    if output in ("csv", "parquet") and (parts := parts_of(answer)):
        raise BadInput(f"this answer has several parts; choose one with --part: {', '.join(parts)}.")


def print_answer(
    answer: "Result", output: str, is_wide: bool = False, is_raw: bool = False, *, nothing: str = ""
) -> None:
    """Write an answer to stdout in one of FORMATS. Raises BadInput if the format cannot represent it, and for Parquet
    on a terminal.

    `is_wide`: do not fit tables to the width of a terminal. `is_raw`: do not escape formulas in CSV. `nothing`: the
    message to write to stderr instead of an empty table.
    """
    from service.core.encoding import encode

    if output == "table" and nothing and not answer:
        inform(nothing)
    elif output == "table":
        print_table(answer, is_wide)
    elif output == "json":
        _write_text(encode(answer) + b"\n" * sys.stdout.isatty())
    else:
        check_parts(answer, output)
        rows = answer if isinstance(answer, list) else [answer]
        if output == "csv":
            print_csv(list(rows[0]) if rows else [], rows, is_raw)
        elif sys.stdout.isatty():
            raise BadInput(
                "Parquet is binary and cannot be shown on a terminal; redirect it to a file with > answer.parquet."
            )
        else:
            _write_parquet(rows)


def print_csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]], is_raw: bool = False) -> None:
    """Write rows to stdout as CSV. `is_raw`: do not escape formulas."""
    from service.core.csv_files import csv_of

    _write_text(csv_of(names, rows, is_raw=is_raw))


def _write_parquet(rows: list[dict[str, Any]]) -> None:
    """Write rows to stdout as Parquet. A column with values that have no Parquet type becomes text, as in CSV."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from service.core.csv_files import cell

    columns: dict[str, pa.Array] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        try:
            columns[name] = pa.array(values)
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema({name: columns[name].type})).close()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            columns[name] = pa.array([None if value is None else str(cell(value, is_raw=True)) for value in values])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    sys.stdout.buffer.write(sink.getvalue())


def _write_text(body: bytes) -> None:
    """Write JSON or CSV to stdout; on a terminal, with its control characters escaped."""
    sys.stdout.buffer.write(escaped(body.decode()).encode() if sys.stdout.isatty() else body)
