"""`traffic rebuild`: makes a lost or damaged manifest again from the visit files."""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import BadInput, Lake
from data.text import plural
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import printable, progress_bar

if TYPE_CHECKING:
    from data.maintenance.rebuild import Rebuild, RebuildResult


def rebuild(
    yes: Annotated[bool, typer.Option("--yes", help="answer every question with yes")] = False,
    discard_unknown: Annotated[
        bool, typer.Option("--discard-unknown", help="delete the files that the present manifest does not know")
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Make the manifest again from the visit files, if it is lost, damaged, or older than they are.

    Stop the server first. A copy of the old manifest is kept, and no visit is deleted. Visits that were waiting in a
    lost manifest for their file are gone. Afterwards, --discard-unknown deletes what still does not count.

    Example: traffic rebuild --yes
    """
    if discard_unknown:
        _discard(lake, yes)
        return
    from data.maintenance.rebuild import Rebuild, locked_for_rebuild

    with locked_for_rebuild(lake) as root:
        with progress_bar("Reading") as progress:
            one = Rebuild(root, progress)
        _ask_questions(one, yes)
        with progress_bar("Checking", is_bytes=True) as checking:
            result = one.run(checking)
    _print_result(one, result)
    if result.damaged:
        raise typer.Exit(1)


def _ask_questions(one: "Rebuild", yes: bool) -> None:
    """Ask every open question."""
    for question in one.plan.questions:
        typer.echo(printable(f"{question.text}."), err=True)
        one.plan.answer(question, yes or _ask(question.asks))


def _ask(question: str) -> bool:
    """Ask on the terminal. Raises BadInput where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput("not a terminal, so nobody can be asked; use --yes to answer every question with yes.")
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_result(one: "Rebuild", result: "RebuildResult") -> None:
    """Print damaged files to stdout, all else to stderr."""
    for reason in result.damaged:
        typer.echo(printable(reason))
    counted = f"{plural(result.visits, 'visit')} in {plural(result.files, 'file')}"
    typer.echo(f"The manifest now counts {counted}.", err=True)
    if one.old is None:
        typer.echo("Visits that were waiting in the lost manifest for their file are gone.", err=True)
    elif result.pending:
        typer.echo(f"{plural(result.pending, 'visit')} still waiting for a file were taken over.", err=True)
    if result.copy:
        typer.echo(f"The old manifest is kept as {result.copy}; `traffic erase` does not reach into it.", err=True)
    if one.plan.repeated:
        files = plural(len(one.plan.repeated), "file")
        typer.echo(f"{files} not counted: their visits are in others. See `traffic verify`.", err=True)
    typer.echo("Run `traffic verify`, then start the server.", err=True)


def _discard(lake: Path, yes: bool) -> None:
    from data.maintenance.unknown import describe_unknown, discard_unknown, unknown_files

    opened = Lake(lake)
    with closing(opened.manifest):
        paths = unknown_files(opened)
        for path in paths:
            typer.echo(printable(f"{path.relative_to(opened.root)}: {describe_unknown(path)}"), err=True)
        files = plural(len(paths), "visit file")
        if paths and (yes or _ask(f"{files} would be deleted. This cannot be undone. Delete?")):
            discard_unknown(opened, paths)
            typer.echo(f"{files} deleted.", err=True)
        elif not paths:
            typer.echo("The manifest knows every visit file.", err=True)
