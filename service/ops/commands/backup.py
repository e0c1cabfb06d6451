"""`traffic backup`: makes a complete copy of a lake."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from data import Lake
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption
from service.core.commands.printing import inform, progress_bar


def backup(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="a new or empty folder; the copy appears there when it is complete"),
    ],
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Copy a consistent snapshot of the lake. Imports, compaction and queries may continue during the backup.

    The checksums of visit and link files are verified. The copy contains visits, links, API keys, jobs, hooks with
    their secrets, agents, IP lists, countries and rejected lines, but never the salts of visitor hashes. `traffic
    erase` does not change backups: delete backups that still contain erased visits.

    To restore a lake: stop the server, move the damaged lake away, copy the backup to its place (cp -a DIR data/lake),
    run `traffic verify`, and start the server. To restore a single file listed by `traffic verify`, copy the file with
    the same path from a backup.

    Example: traffic backup /backups/2026-11-21
    """
    from rich.filesize import decimal

    from data.recovery.backup import back_up

    opened = Lake(lake, must_write=False)
    with closing(opened.manifest), progress_bar("Copying", is_bytes=True) as progress:
        copied = back_up(opened, folder, progress)
    pending = f" and {copied.pending:,} not yet in a file" if copied.pending else ""
    visits = f"{plural(copied.visits, 'visit')}{pending}"
    inform(f"{folder}: {plural(copied.files, 'file')} with {visits} ({decimal(copied.size)}).")
