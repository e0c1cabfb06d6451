"""`traffic compact`: merges files and builds rollups."""

import os
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import Annotated

from data import Lake
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption, flag
from service.core.commands.printing import inform, progress_bar
from service.core.settings import cluster_options, read_settings, setting


def compact(
    engine: Annotated[str, flag("engine")] = "",
    engine_from: Annotated[str, flag("engine_from")] = setting("engine_from").default,
    engine_lake: Annotated[str, flag("engine_lake")] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Merge the files of each past day into one and judge the day; merge today's if there are many; build rollups.

    This makes queries faster, and bots in disguise no longer count as people on judged days. A running server does
    this in the background. Replaced files are deleted a day later, when no query reads them any more.

    Example: traffic compact
    """
    from data.store.link_files import fold_due
    from data.store.pending import flush_all
    from data.tasks.compaction import COMMAND_THREADS, Compactor
    from queries import RollupBuilder, Warehouse, open_cluster

    flags = {"engine": engine, "engine_from": engine_from, "engine_lake": engine_lake}
    options = cluster_options(read_settings(os.environ, **flags))
    opened = Lake(lake)
    flush_all(opened)
    fold_due(opened, datetime.now(UTC), most=0)
    compactor = Compactor(opened, threads=COMMAND_THREADS)
    with progress_bar("Compacting") as progress:
        done = compactor.run(progress=progress)
    with progress_bar("Counting") as progress, ExitStack() as stack:
        cluster = stack.enter_context(closing(open_cluster(opened, Warehouse(opened), options))) if options else None
        months = RollupBuilder(opened, counter=cluster).run(progress=progress)
    swept = compactor.sweep()
    inform(
        f"Merged {plural(done.files_before, 'file')} with {plural(done.visits, 'visit')} into {done.files_after:,}, "
        f"for {plural(done.partitions, 'day')} ({done.judged:,} judged); "
        f"built rollups for {plural(months, 'month')}; deleted {plural(swept, 'obsolete file')}."
    )
