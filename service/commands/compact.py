"""`traffic compact`: merges files and builds rollups."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from data import Lake
from data.progress import Progress
from data.text import plural
from service.commands.options import DEFAULT_LAKE, LakeOption, flag
from service.commands.printing import progress_bar
from service.settings import setting

if TYPE_CHECKING:
    from queries import ClusterOptions

EngineOption = Annotated[str, flag("engine")]
EngineFromOption = Annotated[str, flag("engine_from")]
EngineLakeOption = Annotated[str, flag("engine_lake")]


def compact(
    engine: EngineOption = "",
    engine_from: EngineFromOption = setting("engine_from").default,
    engine_lake: EngineLakeOption = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Merge the files of each past day into one and judge it, and those of today if they are many; build rollups.

    This makes queries faster; of a day that is judged, bots in disguise are no longer counted as people. A running
    server does it in the background. Replaced files are deleted a day later, when no query reads them any more.

    Example: traffic compact
    """
    from data.maintenance.compaction import Compactor
    from data.store.pending import flush_all
    from queries import ClusterOptions

    address, from_visits = setting("engine").read(engine), setting("engine_from").read(engine_from)
    options = ClusterOptions(address, from_visits, folder=engine_lake) if address else None
    opened = Lake(lake)
    flush_all(opened)
    compactor = Compactor(opened)
    with progress_bar("Compacting") as progress:
        done = compactor.run(progress=progress)
    with progress_bar("Counting") as progress:
        months = _build_rollups(opened, options, progress)
    swept = compactor.sweep()
    typer.echo(
        f"Merged {plural(done.files_before, 'file')} with {plural(done.visits, 'visit')} into {done.files_after:,}, "
        f"in {plural(done.partitions, 'day')}, {done.judged:,} now judged; counted {plural(months, 'month')} ahead; "
        f"deleted {plural(swept, 'file')} that nobody reads any more.",
        err=True,
    )


def _build_rollups(lake: Lake, options: "ClusterOptions | None", progress: Progress) -> int:
    """Build rollups, with a cluster if there are options for one. Returns the number of months."""
    from queries import RollupBuilder, Warehouse, open_cluster

    if options is None:
        return RollupBuilder(lake).run(progress=progress)
    with closing(open_cluster(lake, Warehouse(lake), options)) as cluster:
        return RollupBuilder(lake, counter=cluster).run(progress=progress)
