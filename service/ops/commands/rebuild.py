"""`traffic rebuild`: recreates a lost or damaged manifest from the visit files."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from data import Lake
from data.text import plural
from service.core.commands.confirmation import check_can_ask, is_confirmed
from service.core.commands.options import DEFAULT_LAKE, LakeOption
from service.core.commands.printing import inform, pasteable, printable, progress_bar


def rebuild(
    yes: Annotated[bool, typer.Option("--yes", help="answer yes to every question")] = False,
    discard_unknown: Annotated[
        bool, typer.Option("--discard-unknown", help="delete the files that are not in the current manifest")
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Recreate the manifest from the visit files if it is lost, damaged, or older than the files.

    Stop the server first. A copy of the old manifest is kept, and no visits are deleted. If the manifest is lost,
    pending visits are lost with it. Afterwards, --discard-unknown deletes visit files still not in the manifest.

    Example: traffic rebuild --yes
    """
    if discard_unknown:
        _discard(lake, yes)
        return
    from data.recovery.rebuild import Rebuild, locked_for_rebuild

    with locked_for_rebuild(lake) as root:
        with progress_bar("Reading") as progress:
            one = Rebuild(root, progress)
        for question in one.plan.questions:
            inform(printable(f"{question.text}."))
            one.plan.answer(question, _is_confirmed(question.asks, yes))
        with progress_bar("Checking", is_bytes=True) as checking:
            result = one.run(checking)
    for reason in result.damaged:
        typer.echo(pasteable(printable(reason)))
    inform(f"The manifest now counts {plural(result.visits, 'visit')} in {plural(result.files, 'file')}.")
    if one.old is None:
        inform("Pending visits, which are not yet in a file, are lost with the manifest.")
    elif result.pending:
        inform(f"Kept {plural(result.pending, 'pending visit')}.")
    if result.copy:
        inform(f"The old manifest is kept as {result.copy}; erasing visits does not change it.")
    if one.plan.repeated:
        files = plural(len(one.plan.repeated), "file")
        inform(f"{files} not counted, because other files contain the same visits. See `traffic verify`.")
    inform("Run `traffic verify`, then start the server.")
    if result.damaged:
        raise typer.Exit(1)


def _is_confirmed(question: str, yes: bool) -> bool:
    """Return whether --yes is given or the user answers yes on the terminal. Raises BadInput without a terminal."""
    check_can_ask(yes, otherwise="answer yes to every question")
    return yes or is_confirmed(question)


def _discard(lake: Path, yes: bool) -> None:
    from data.store.unknown import describe_unknown, discard_unknown, unknown_files

    opened = Lake(lake)
    with closing(opened.manifest):
        paths = unknown_files(opened)
        for path in paths:
            inform(printable(f"{path.relative_to(opened.root)}: {describe_unknown(path)}"))
        files = plural(len(paths), "visit file")
        if not paths:
            inform("Every visit file is in the manifest.")
        elif _is_confirmed(f"{files} would be deleted. This cannot be undone. Delete them?", yes):
            discard_unknown(opened, paths)
            inform(f"{files} deleted.")
