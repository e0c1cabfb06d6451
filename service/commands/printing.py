"""Output of commands: answers as a table, JSON, CSV or Parquet; consoles, progress bars and text formatting."""

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from data import BadInput
from service.clock import to_text

if TYPE_CHECKING:
    from rich.console import Console

    from queries import Result

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
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
        from service.commands.tables import print_table

        print_table(answer, is_wide)
    elif output == "json":
        _write(encode(answer))
    else:
        check_format(answer, output)
        rows = answer if isinstance(answer, list) else [answer]
        _write(csv_bytes(rows, list(rows[0]) if rows else []) if output == "csv" else _parquet(rows))


def console(is_wide: bool = False) -> "Console":
    """A console on stdout, for tables. If stdout is piped or `is_wide`, lines are not cut to a terminal's width."""
    from rich.console import Console

    is_fitted = sys.stdout.isatty() and not is_wide
    width, height = (None, None) if is_fitted else (10_000, 25)  # without a height, TERM=dumb has 80 columns
    return Console(highlight=False, markup=False, emoji=False, width=width, height=height)


def messages() -> "Console":
    """A console on stderr, for what is shown there besides lines of text, which typer.echo writes sooner."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def progress_bar(text: str, is_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while in this context. Yields a function to call with the completed and the total amount.

    Shows nothing, and does not wait for rich to load, if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _completed, _total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    done = DownloadColumn() if is_bytes else TaskProgressColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), done, TimeRemainingColumn())
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda completed, total: bar.update(task, completed=completed, total=total)


def printable(text: str) -> str:
    """Untrusted text with control characters replaced, so that it cannot control the terminal."""
    return _CONTROLS.sub("\ufffd", text)


def parts_of(answer: "Result") -> dict[str, "Result"]:
    """The members of an answer that are answers themselves."""
    members = answer.items() if isinstance(answer, dict) else ()
    return {name: member for name, member in members if isinstance(member, list | dict)}


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
