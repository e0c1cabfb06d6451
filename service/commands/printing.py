"""Answers on a terminal or in a file: as a table, JSON, CSV or Parquet."""

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from data import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from queries import Result

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FORMATS: Final = ("table", "json", "csv", "parquet")


def select_part(answer: "Result", part: str) -> "Result":
    """One member of an answer of several parts, or all of it when `part` is empty. Raises BadInput."""
    if not part:
        return answer
    parts = _parts(answer)
    if part not in parts:
        raise BadInput(
            f"there is no part {part!r}; " + (f"use {', '.join(parts)}." if parts else "this answer has none.")
        )
    return parts[part]


def print_answer(answer: "Result", output: str) -> None:
    """Write an answer to stdout in one of FORMATS. Raises BadInput when it does not fit into that."""
    from service.encoding import encode

    if output == "table":
        _print_table(answer, "")
    elif output == "json":
        _write(encode(answer))
    elif parts := _parts(answer):
        raise BadInput(f"this answer has several parts; choose one with --part: {', '.join(parts)}.")
    else:
        rows = answer if isinstance(answer, list) else [answer]
        _write(_csv(rows) if output == "csv" else _parquet(rows))


def console() -> "Console":
    """Standard output for tables; what is piped is not cut to a terminal's width."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)


def messages() -> "Console":
    """Standard error, for what people read while a command runs."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def progress_bar(terminal: "Console", text: str, is_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar that is gone when the work is done; what is given is called with what is done so far and all there is.

    Nothing is shown where the console is no terminal.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    done = DownloadColumn() if is_bytes else TaskProgressColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), done, TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task(text, total=None)
        yield lambda completed, total: bar.update(task, completed=completed, total=total)


def printable(text: str) -> str:
    """A visitor's words without the control characters that a terminal would obey."""
    return _CONTROLS.sub("\ufffd", text)


def plural(count: int, noun: str) -> str:
    """A number and its noun: 1 visit, 2,000 visits."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _parts(answer: "Result") -> dict[str, "Result"]:
    members = answer.items() if isinstance(answer, dict) else ()
    return {name: member for name, member in members if isinstance(member, list | dict)}


def _write(body: bytes) -> None:
    sys.stdout.buffer.write(body)
    if sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")


def _print_table(answer: "Result", title: str) -> None:
    from rich.table import Table

    parts = _parts(answer)
    for name, member in parts.items():
        _print_table(member, f"{title}.{name}".strip("."))
    if parts:
        return
    rows = answer if isinstance(answer, list) else [answer]
    names = rows[0] if rows else ["nothing in this scope"]
    table = Table(*names, title=title or None, title_justify="left", box=None)
    for row in rows:
        table.add_row(*map(_text, row.values()))
    console().print(table)


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%SZ")
        case list():
            return printable(" ".join(map(str, value)))
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
    return printable(str(value))


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return _text(value)
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
