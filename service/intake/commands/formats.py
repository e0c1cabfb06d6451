"""`traffic formats`: lists the log formats, and explains why a log cannot be read."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data.text import percentage, plural
from service.core.commands.printing import print_rows, printable

if TYPE_CHECKING:
    from data.logs.explanation import Explanation, Proposal, UnreadLine

app = typer.Typer(rich_markup_mode=None)

_WIDTH: Final = 110
"""Number of characters printed around the first difference in a line."""
_BEFORE: Final = 70
"""Number of these characters that precede the difference in a long line."""
_MAX_VALUE: Final = 80


@app.callback(invoke_without_command=True)
def list_formats(context: typer.Context) -> None:
    """List the log formats, or explain why a log cannot be read.

    Example: traffic formats
    """
    if context.invoked_subcommand:
        return
    from data.logs.format_names import FORMATS
    from data.logs.nearest_format import example

    print_rows(
        ("format", "example"), [(name, line) for name in FORMATS for line in example(name).expandtabs(2).split("\n")]
    )


@app.command("explain")
def explain_log(file: Annotated[Path, typer.Argument(help="a log that is not read, or read incorrectly")]) -> None:
    """Print the format nearest to a log's first lines, the differences from it, and a flag with which the log can be
    read, if there is any.

    The flag is --log-format for plain lines, --columns for JSON and CSV. It has been tried on the first 1,000 lines.
    Before you import with it, check the values that it reads from the first line.

    Example: traffic formats explain custom.log
    """
    from data.logs.explanation import explain

    found = explain(file)
    if found.log_format:
        typer.echo(f"{file} is in the format {found.log_format}: {_share(found.read, found.lines)}.")
    else:
        typer.echo(f"{file} is in no known format.")
    for line in found.unread:
        _print_unread(line)
    if found.proposal:
        _print_proposal(found, found.proposal)
    elif not found.log_format:
        typer.echo("\nNo flag makes it readable: no line has both a time and a request.")


def _share(read: int, lines: int) -> str:
    return f"{read:,} of the first {plural(lines, 'line')} can be read ({percentage(read, lines)})"


def _print_unread(unread: "UnreadLine") -> None:
    """Print a line, and a caret below its first difference from the nearest format."""
    at = unread.nearest.at or 0
    start = max(0, at - _BEFORE) if at > _WIDTH else 0
    typer.echo(f"\nline {unread.number:,}: {_difference(unread)}")
    typer.echo(f"  {printable(unread.line[start : start + _WIDTH])}")
    if unread.nearest.at is not None:
        typer.echo(f"  {' ' * (at - start)}^")


def _difference(unread: "UnreadLine") -> str:
    log_format, at, wanted = unread.nearest
    if not log_format:
        return "in no known format"
    if not unread.reason:
        return f"in another format, {log_format}"
    nearest = f"nearest is {log_format}"
    if at is None:
        return f"{nearest}, but it has no {wanted}" if wanted else f"{nearest}, but: {unread.reason}"
    has = f"where it has, for example, {wanted}" if wanted else f"but: {unread.reason}"
    return f"{nearest} up to character {at:,}, {has}"


def _print_proposal(found: "Explanation", proposal: "Proposal") -> None:
    """Print a flag to paste, how many lines it reads, and the values that it reads from the first line."""
    flag = f"{proposal.flag} {shlex.quote(proposal.value)}"
    typer.echo(f"\nWith this flag, {_share(proposal.read, proposal.lines)}:\n\n  {printable(flag)}\n")
    typer.echo("In the first line it found:\n")
    width = max(map(len, proposal.found), default=0)
    for name, value in proposal.found.items():
        typer.echo(f"  {name:{width}}  {printable(value[:_MAX_VALUE])}")
    for field, columns in found.guess.rivals.items():
        typer.echo(f"\n{field} may be any of {', '.join(columns)}; change the flag if it is not the first.")
    if not {"user_agent", "http_user_agent"} & proposal.found.keys():
        typer.echo("\nIt found no user agent: without one, no visit counts as human.")
