"""`traffic backup`: a copy of a lake that can take its place."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import Lake
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import messages, plural, progress_bar

if TYPE_CHECKING:
    from data.maintenance.backup import BackupResult


def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="a folder that does not exist yet; it appears when it is complete")
    ],
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Copy the lake as it is at one moment, while imports, compaction and queries go on.

    Every file is compared with what was written while it is copied. Visits, links, keys, lists of addresses and
    notes of rejected lines are in the copy; the salts of visitor hashes never are. Erasing does not reach into
    backups: delete those that still hold what was erased.

    To restore a lake: stop the server, move the damaged lake away, copy the backup to where it was
    (cp -a DIR data/lake), run `traffic verify`, start the server. To restore a single file that `traffic verify`
    names: copy the file of the same path from a backup that has it.

    Example: traffic backup /backups/2026-11-21
    """
    from rich.filesize import decimal

    opened = Lake(lake)
    with closing(opened.manifest):
        copied = _copied(opened, folder)
    pending = f" and {copied.pending:,} that wait for a file" if copied.pending else ""
    visits = f"{plural(copied.visits, 'visit')}{pending}"
    typer.echo(f"{folder}: {plural(copied.files, 'file')} with {visits} ({decimal(copied.size)}).", err=True)


def _copied(lake: Lake, folder: Path) -> "BackupResult":
    """Copy under a progress bar."""
    from data.maintenance.backup import back_up

    with progress_bar(messages(), "Copying", is_bytes=True) as progress:
        return back_up(lake, folder, progress)
