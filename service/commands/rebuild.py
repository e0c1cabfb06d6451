"""`traffic rebuild`: makes a lost or damaged manifest again from the visit files."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from data import Lake
from data.text import plural
from service.commands.confirmation import check_can_ask, is_confirmed
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import printable, progress_bar


def rebuild(
    yes: Annotated[bool, typer.Option("--yes", help="answer every question with yes")] = False,
    discard_unknown: Annotated[
        bool, typer.Option("--discard-unknown", help="delete the files that the present manifest does not know")
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Make the manifest again from the visit files, if it is lost, damaged, or older than they are.

    Stop the server first. A copy of the old manifest is kept, and no visit is deleted. Visits that were not yet in
    a file are lost with a lost manifest. Afterwards, --discard-unknown deletes the files that still do not count.

    Example: traffic rebuild --yes
    """
    if discard_unknown:
        _discard(lake, yes)
        return
    from data.maintenance.rebuild import Rebuild, locked_for_rebuild

    with locked_for_rebuild(lake) as root:
        with progress_bar("Reading") as progress:
            one = Rebuild(root, progress)
        for question in one.plan.questions:
            typer.echo(printable(f"{question.text}."), err=True)
            one.plan.answer(question, _is_confirmed(question.asks, yes))
        with progress_bar("Checking", is_bytes=True) as checking:
            result = one.run(checking)
    for reason in result.damaged:
        typer.echo(printable(reason))
    counted = f"{plural(result.visits, 'visit')} in {plural(result.files, 'file')}"
    typer.echo(f"The manifest now counts {counted}.", err=True)
    if one.old is None:
        typer.echo("Visits that were not yet in a file are lost with the manifest.", err=True)
    elif result.pending:
        typer.echo(f"{plural(result.pending, 'visit')} not yet in a file were taken over.", err=True)
    if result.copy:
        typer.echo(f"The old manifest is kept as {result.copy}; `traffic erase` does not reach into it.", err=True)
    if one.plan.repeated:
        files = plural(len(one.plan.repeated), "file")
        typer.echo(f"{files} not counted: their visits are in others. See `traffic verify`.", err=True)
    typer.echo("Run `traffic verify`, then start the server.", err=True)
    if result.damaged:
        raise typer.Exit(1)


def _is_confirmed(question: str, yes: bool) -> bool:
    """Whether --yes or the answer on the terminal says yes. Raises BadInput where there is none."""
    check_can_ask(yes, otherwise="answer every question with yes")
    return yes or is_confirmed(question)


def _discard(lake: Path, yes: bool) -> None:
    from data.maintenance.unknown import describe_unknown, discard_unknown, unknown_files

    opened = Lake(lake)
    with closing(opened.manifest):
        paths = unknown_files(opened)
        for path in paths:
            typer.echo(printable(f"{path.relative_to(opened.root)}: {describe_unknown(path)}"), err=True)
        files = plural(len(paths), "visit file")
        if not paths:
            typer.echo("The manifest knows every visit file.", err=True)
        elif _is_confirmed(f"{files} would be deleted. This cannot be undone. Delete?", yes):
            discard_unknown(opened, paths)
            typer.echo(f"{files} deleted.", err=True)
