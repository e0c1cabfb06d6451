"""`traffic compact`: few files instead of many."""

import typer

from data import Lake
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import messages, plural, progress_bar


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
        f"Merged {plural(done.files_before, 'file')} with {plural(done.visits, 'visit')} into {done.files_after:,}, "
        f"in {plural(done.partitions, 'day')}; counted {plural(months, 'month')} ahead; "
        f"deleted {plural(swept, 'file')} that nobody reads any more.",
        err=True,
    )
