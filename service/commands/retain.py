"""`traffic retain`: the days that are too old to be kept, of every organization."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from data import BadInput, Lake
from service.commands.erase import finish
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import console, messages, plural
from service.settings import parse_retention_days, setting

_DAYS = setting("retention_days")


def retain(
    days: Annotated[str, typer.Option(envvar=_DAYS.variable, help="days that visits are kept")] = _DAYS.default,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would go, but change nothing")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Delete the visits of every organization that are older than some days, day by day (UTC).

    A server whose TRAFFIC_RETENTION_DAYS is set does this itself.

    Example: traffic retain --days 400 --dry-run
    """
    from rich.table import Table

    from data.maintenance.retention import apply_retention

    kept = parse_retention_days(days.strip())
    if kept is None:
        raise BadInput(f"say how many days visits are kept: --days, or {_DAYS.variable}.")
    opened = Lake(lake)
    retained = apply_retention(opened, kept, datetime.now(UTC), dry_run)
    ended_at = datetime.now(UTC)
    table = Table("organization", "days", "visits", "files", box=None)
    for ended in retained.ended:
        table.add_row(ended.organization, *(f"{number:,}" for number in ended[1:]))
    if retained.ended:
        console().print(table)
    if not dry_run:
        finish(messages(), opened, retained.dead, ended_at)
    typer.echo(
        f"{plural(sum(ended.visits for ended in retained.ended), 'visit')} of "
        f"{plural(len(retained.ended), 'organization')}, "
        f"all before {retained.before}, {'would be' if dry_run else 'are'} deleted.",
        err=True,
    )
