"""Command output: consoles, progress bars and text formatting."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final

import typer

from service.core.program import DEFAULT_LAKE, change_code, command_line, runnable

if TYPE_CHECKING:
    from rich.console import Console

LAKE: Final = ContextVar("LAKE", default=DEFAULT_LAKE)
"""The lake of the running command."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console(is_wide: bool = False) -> "Console":
    """Return a console on stdout, for tables. If stdout is piped or `is_wide` is set, lines are not truncated to the
    width of a terminal.
    """
    from rich.console import Console

    is_fitted = sys.stdout.isatty() and not is_wide
    width, height = (None, None) if is_fitted else (10_000, 25)  # without a height, TERM=dumb has 80 columns
    return Console(highlight=False, markup=False, emoji=False, width=width, height=height)


def inform(text: str) -> None:
    """Write a message to stderr without rich, which takes longer to load than a small log takes to read."""
    typer.echo(pasteable(text), err=True)


def pasteable(text: str) -> str:
    """Return a message with the commands between its backticks in a form that runs when pasted into a shell."""
    return change_code(partial(runnable, partial(command_line, LAKE.get())), text)


def messages() -> "Console":
    """Return a console on stderr, for progress, and for messages where rich is loaded anyway."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of strings to stdout; untrusted text cannot control the terminal."""
    from rich.table import Table

    table = Table(*names, box=None)
    for row in rows:
        table.add_row(*map(printable, row))
    console().print(table)


@contextmanager
def progress_bar(text: str, is_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while in this context. Yields a function to call with the completed and the total amounts.

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


def escaped(text: str) -> str:
    """Return JSON or CSV with all control characters except line ends escaped as in JSON, so that they cannot control
    the terminal.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in lines)


def printable(text: str) -> str:
    """Replace control characters in untrusted text, so that it cannot control the terminal."""
    return _CONTROLS.sub("\ufffd", text)
