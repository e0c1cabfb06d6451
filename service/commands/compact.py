"""`traffic compact`: merges files and builds rollups."""

import typer

from data import Lake
from data.text import plural
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import messages, progress_bar


def compact(lake: LakeOption = DEFAULT_LAKE) -> None:
    """Merge the files of each past day into one, and those of today if they are many, and build rollups of past days.

    This makes queries faster and does not change their results. A running server does it in the background. Replaced
    files are deleted a day later, when no query reads them any more.

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
