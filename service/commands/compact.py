"""`traffic compact`: few files instead of many."""

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from data import Lake
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import messages


def compact(lake: LakeOption = DEFAULT_LAKE) -> None:
    """Merge the files of each past day into one, and those of today when they are many. Answers stay the same.

    A running server does this by itself. What was replaced is deleted a day later, when nobody reads it any more.

    Example: traffic compact
    """
    from data.compacting import Compactor
    from data.pending import flush_all

    opened = Lake(lake)
    flush_all(opened)
    compactor = Compactor(opened)
    terminal = messages()
    columns = (TextColumn("Compacting"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task("", total=None)
        done = compactor.run(progress=lambda number, total: bar.update(task, completed=number, total=total))
    swept = compactor.sweep()
    typer.echo(
        f"{done.files_before:,} files with {done.visits:,} visits became {done.files_after:,}, in {done.partitions:,} "
        f"days; {swept:,} files that nobody reads any more were deleted.",
        err=True,
    )
