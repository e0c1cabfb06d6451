"""`traffic retain`: deletes visits of all organizations that are older than the retention period."""

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
    days: Annotated[
        str, typer.Option(envvar=_DAYS.variable, help="days after which visits are deleted")
    ] = _DAYS.default,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would be deleted, but change nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="trust the clock, even long after the newest visit")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Delete the visits of all organizations that are older than a number of days (UTC).

    A server whose TRAFFIC_RETENTION_DAYS is set does this itself. If the clock is more than a day after the newest
    visit and after the last run, it may be ahead, and nothing is deleted without --yes.

    Example: traffic retain --days 400 --dry-run
    """
    from rich.table import Table

    from data.maintenance.retention import apply_retention, clock_problem

    retention_days = parse_retention_days(days.strip())
    if retention_days is None:
        raise BadInput(f"set the number of days with --days or {_DAYS.variable}.")
    opened = Lake(lake)
    now = datetime.now(UTC)
    problem = clock_problem(opened, now)
    if problem and not (yes or dry_run):
        raise BadInput(f"{problem}; nothing was deleted. If the date is right, add --yes.")
    retained = apply_retention(opened, retention_days, now, dry_run)
    ended_at = datetime.now(UTC)
    table = Table("organization", "days", "visits", "files", box=None)
    for ended in retained.ended:
        table.add_row(ended.organization, *(f"{number:,}" for number in ended[1:]))
    if retained.ended:
        console().print(table)
    if not dry_run:
        finish(messages(), opened, retained.dead, ended_at)
    elif problem:
        typer.echo(f"{problem[0].upper()}{problem[1:]}: to delete anything, --yes will be needed.", err=True)
    typer.echo(
        f"{plural(sum(ended.visits for ended in retained.ended), 'visit')} of "
        f"{plural(len(retained.ended), 'organization')}, "
        f"all before {retained.before}, {'would be' if dry_run else 'are'} deleted.",
        err=True,
    )
