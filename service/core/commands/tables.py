"""Answers as tables: fitted to the width of a terminal, or whole when stdout is piped."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

from service.core.clock import to_text
from service.core.commands.printing import console, messages, printable

if TYPE_CHECKING:
    from queries import Result

_GAP: Final = 2
_MIN_TEXT: Final = 12
"""Minimum width of shortened text, in terminal cells."""
_PRINTED_ROWS: Final = 1_000
"""Number of rows printed at a time: rich needs several kB of memory for each."""
_LEFT_OUT_LAST: Final = ("visits", "percentage")


@dataclass(frozen=True)
class PrintedColumn:
    """A printed column: the lines of its header, the text of its cells, and its width in terminal cells."""

    name: str
    cells: tuple[str, ...]
    width: int
    is_number: bool = False
    is_text: bool = False  # only text is shortened; numbers, times and flags are printed in full or omitted
    header: str = ""

    @property
    def least(self) -> int:
        """The minimum width, with text shortened as much as allowed."""
        return min(self.width, _MIN_TEXT) if self.is_text else self.width


def print_table(answer: "Result", is_wide: bool = False) -> None:
    """Print an answer to stdout. On a terminal, fit it to the width unless `is_wide`, and name omitted columns on
    stderr.

    The parts of an answer are printed one after another, each under its name.
    """
    _print(answer, "", None if is_wide or not sys.stdout.isatty() else console().width)


def parts_of(answer: "Result") -> dict[str, "Result"]:
    """Return the members of an answer that are themselves answers."""
    members = answer.items() if isinstance(answer, dict) else ()
    return {name: member for name, member in members if isinstance(member, list | dict)}


def fit(rows: Sequence[dict[str, Any]], width: int | None) -> tuple[list[PrintedColumn], list[str]]:
    """Return the columns of a table that is at most `width` cells wide, and the names of the omitted columns.

    First, headers are broken after underscores; then columns are omitted from the right (percentage and visits last,
    the first column never); then text is shortened in the middle, the widest column first. If `width` is None, the
    table may have any width.
    """
    from rich.cells import cell_len

    columns = [_column(name, [row[name] for row in rows]) for name in rows[0]]
    if width is None or _total(columns) <= width:
        return columns, []
    columns = [replace(one, width=max(map(cell_len, (*_name_parts(one.name), *one.cells)))) for one in columns]
    fitting = list(columns)
    last = [columns[0], *(column for name in _LEFT_OUT_LAST for column in columns[1:] if column.name == name)]
    for column in [*(column for column in reversed(columns) if column not in last), *reversed(last[1:])]:
        if sum(one.least for one in fitting) + _GAP * (len(fitting) - 1) <= width:
            break
        fitting.remove(column)
    widths = [min(column.width, width) for column in fitting]
    for _ in range(sum(widths) + _GAP * (len(widths) - 1) - width):
        widest = max(range(len(widths)), key=lambda index: (fitting[index].is_text, widths[index]))
        widths[widest] -= 1
    left_out = [column.name for column in columns if column not in fitting]
    return [_wrap(column, width) for column, width in zip(fitting, widths, strict=True)], left_out


def shorten(text: str, width: int) -> str:
    """Shorten text to at most `width` terminal cells, with … in place of the omitted middle."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    head, tail = text[:width], text[-width:]
    while cell_len(head) + 1 + cell_len(tail) > width:
        if cell_len(head) > cell_len(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"


def text_of(value: object) -> str:
    """Return a value as readable text, without control characters."""
    from service.core.encoding import encode, plain

    match value:
        case None:
            text = ""
        case datetime():
            text = to_text(value)
        case list():
            text = printable(" ".join(map(str, value)))
        case dict() | tuple():
            text = printable(encode(plain(value)).decode())
        case bytes():
            text = plain(value)
        case bool():
            text = "yes" if value else "no"
        case float() | Decimal() if round(value, 2) == value:
            text = f"{value:,.2f}"
        case int() | float() | Decimal():
            text = f"{value:,}"
        case _:
            text = printable(str(value))
    return text


def _print(answer: "Result", title: str, width: int | None) -> None:
    from rich.table import Table

    if parts := parts_of(answer):
        for name, member in parts.items():
            _print(member, f"{title}.{name}".strip("."), width)
        return
    rows = answer if isinstance(answer, list) else [answer]
    if width is not None and isinstance(answer, dict):  # one object is easier to read from top to bottom
        rows = [{"field": name, "value": value} for name, value in answer.items()]
    columns, left_out = fit(rows or [{"nothing in this scope": None}], width)
    terminal = console(is_wide=width is None)
    if title:
        terminal.print(title, style="table.title")
    for start in range(0, max(len(rows), 1), _PRINTED_ROWS):
        table = Table(box=None, padding=(0, _GAP // 2), pad_edge=False, show_header=start == 0)
        for column in columns:
            justify: Literal["right", "left"] = "right" if column.is_number else "left"
            table.add_column(column.header, justify=justify, width=column.width, no_wrap=True, vertical="bottom")
        for number in range(start, min(start + _PRINTED_ROWS, len(rows))):
            table.add_row(*(column.cells[number] for column in columns))
        terminal.print(table)
    if left_out:
        messages().print(
            f"Omitted to fit the terminal: {', '.join(left_out)} (--wide shows all; choose columns with --columns)."
        )
    if width is not None and title:
        terminal.print()


def _column(name: str, values: list[Any]) -> PrintedColumn:
    from rich.cells import cell_len

    header, cells = printable(name), tuple(map(text_of, values))
    values = [value for value in values if value is not None]
    return PrintedColumn(
        name=header,
        cells=cells,
        width=max(map(cell_len, (header, *cells))),
        is_number=bool(values) and all(_is_number(value) for value in values),
        is_text=any(not _is_number(value) and not isinstance(value, bool | date) for value in values),
        header=header,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _total(columns: Sequence[PrintedColumn]) -> int:
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)


def _name_parts(name: str) -> list[str]:
    return re.findall(r"[^_]*_+|[^_]+", name) or [name]


def _wrap(column: PrintedColumn, width: int) -> PrintedColumn:
    """Return the column with its header wrapped, and its cells shortened, to a width."""
    lines: list[str] = []
    for word in _name_parts(column.name):
        if lines and len(lines[-1]) + len(word) <= width:
            lines[-1] += word
        else:
            lines.append(word)
    header = "\n".join(shorten(line, width) for line in lines)
    return replace(column, width=width, header=header, cells=tuple(shorten(cell, width) for cell in column.cells))
