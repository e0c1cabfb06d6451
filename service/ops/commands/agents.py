"""`traffic agents`: the IP lists that operators publish for their agents."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import BadInput
from data.text import plural
from service.core.clock import to_text
from service.core.commands.options import DEFAULT_LAKE, LakeOption, created_lake
from service.core.commands.printing import inform, messages, print_rows

if TYPE_CHECKING:
    from data.rules.tables import IpList

DOWNLOAD_SECONDS: Final = 20
"""For each list, redirects included."""

app = typer.Typer(help="Update the IP lists that operators publish for their agents.", rich_markup_mode=None)


@app.callback()
def agents() -> None:
    """Without this callback typer would make `refresh` the whole group instead of a command in it."""


@app.command()
def refresh(
    folder: Annotated[
        str, typer.Option("--from", help="read the lists from files <list>.* in this folder instead of fetching them")
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Fetch the IP lists that operators publish for their agents, with which imports verify what agents claim to be.

    If a list cannot be fetched or is implausible, its last version is kept and the exit code is 1.

    Example: traffic agents refresh
    """
    from rich.progress import track

    from data.rules.ip_lists import folder_fetcher
    from data.rules.tables import IpList, load
    from data.store.ip_list_files import refresh, snapshots

    rows = load(IpList, "ip_lists")
    fetch = folder_fetcher(Path(folder)) if folder else _download
    if folder:
        rows = [row for row in rows if any(Path(folder).glob(f"{row.name}.*"))]
    if not rows:
        raise BadInput(f"--from: no file <list>.* in {folder}, such as openai-gptbot.json.")
    opened = created_lake(lake)
    progress = messages()
    refreshed, is_hidden = refresh(opened, rows, fetch, datetime.now(UTC)), not progress.is_terminal
    outcomes = [*track(refreshed, "Fetching lists", len(rows), console=progress, transient=True, disable=is_hidden)]
    kept = snapshots(opened)
    cells = []
    for row, _, problem in outcomes:
        snapshot = kept.get(row.name)
        last = (f"{len(snapshot.networks):,}", to_text(snapshot.fetched_at)) if snapshot else ("", "never")
        cells.append((row.name, row.operator, *last, problem))
    print_rows(("list", "operator", "networks", "fetched at", "problem"), cells)
    if failed := sum(outcome.snapshot is None for outcome in outcomes):
        inform(f"{failed} of {plural(len(rows), 'list')} could not be refreshed; their last versions are kept.")
        raise typer.Exit(1)


def _download(row: "IpList") -> bytes:
    """What an operator publishes at the URL of a list. Raises BadInput."""
    import asyncio

    from data.rules.ip_lists import MAX_LIST_BYTES
    from service.outgoing.connection import OutgoingError
    from service.outgoing.http import download

    try:
        return asyncio.run(download(row.url, DOWNLOAD_SECONDS, MAX_LIST_BYTES))
    except OutgoingError as error:
        raise BadInput(f"{row.url} cannot be fetched: {error}") from error
