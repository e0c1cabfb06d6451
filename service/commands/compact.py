"""`traffic compact`: few files instead of many."""

import typer

from data import Lake
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import messages, progress_bar


def compact(lake: LakeOption = DEFAULT_LAKE) -> None:
    """Merge the files of each past day into one, those of today when they are many, and count past days ahead.

    Answers stay the same, and come faster. A running server does this by itself. What was replaced is deleted a day
    later, when nobody reads it any more.

    Example: traffic compact
    """
    from data.maintenance.compaction import Compactor
    from data.store.pending import flush_all
    from queries import RollupBuilder

    opened = Lake(lake)
    flush_all(opened)
    compactor = Compactor(opened)
    with progress_bar(messages(), "Compacting") as progress:
        done = compactor.run(progress=progress)
    with progress_bar(messages(), "Counting") as progress:
        months = RollupBuilder(opened).run(progress=progress)
    swept = compactor.sweep()
    typer.echo(
        f"{done.files_before:,} files with {done.visits:,} visits became {done.files_after:,}, in {done.partitions:,} "
        f"days; {months:,} months were counted ahead; {swept:,} files that nobody reads any more were deleted.",
        err=True,
    )
