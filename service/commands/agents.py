"""`traffic agents`: what operators publish of their agents."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from data import BadInput, Lake
from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import console, messages, plural

app = typer.Typer(help="Keep what operators publish of their agents up to date.", rich_markup_mode=None)


@app.callback()
def agents() -> None:
    """Make `refresh` a command of its own, as there may be more."""


@app.command()
def refresh(
    folder: Annotated[
        str, typer.Option("--from", help="a folder of files <list>.* to read instead of fetching them")
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Fetch the lists of addresses that operators publish for their agents; imports then verify who claims to be one.

    A list that cannot be fetched or believed keeps what was fetched before. Exit code 1 when there was such a list.

    Example: traffic agents refresh
    """
    from rich.progress import track
    from rich.table import Table

    from data.rules.ip_lists import download, folder_fetcher
    from data.rules.tables import IpList, load
    from data.store.ip_list_files import refresh, snapshots

    rows = load(IpList, "ip_lists")
    fetch = folder_fetcher(Path(folder)) if folder else download
    if folder:
        rows = [row for row in rows if any(Path(folder).glob(f"{row.name}.*"))]
    if not rows:
        raise BadInput(f"--from: there is no file <list>.* in {folder}, such as openai-gptbot.json.")
    opened = Lake(lake, create=True)
    progress = messages()
    found = refresh(opened, rows, fetch, datetime.now(UTC))
    outcomes = list(
        track(found, "Fetching lists", len(rows), console=progress, transient=True, disable=not progress.is_terminal)
    )
    table = Table("list", "operator", "networks", "fetched at", "trouble", box=None)
    kept = snapshots(opened)
    for row, _, trouble in outcomes:
        snapshot = kept.get(row.name)
        cells = (
            (f"{len(snapshot.networks):,}", f"{snapshot.fetched_at:%Y-%m-%dT%H:%M:%SZ}") if snapshot else ("", "never")
        )
        table.add_row(row.name, row.operator, *cells, trouble)
    console().print(table)
    failed = sum(outcome.snapshot is None for outcome in outcomes)
    if failed:
        typer.echo(
            f"{failed} of {plural(len(rows), 'list')} could not be refreshed; what was fetched before is kept.",
            err=True,
        )
        raise typer.Exit(1)
