"""`traffic agents`: the agents that are known, and the IP lists that operators publish for them."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import BadInput, Lake
from data.text import plural
from service.core.clock import to_text
from service.core.commands.options import DEFAULT_LAKE, LakeOption, created_lake
from service.core.commands.printing import inform, messages, print_rows

if TYPE_CHECKING:
    from data.rules.tables import IpList

DOWNLOAD_SECONDS: Final = 20
"""For each list, redirects included."""

app = typer.Typer(
    help="List known agents, and update IP lists.",
    rich_markup_mode=None,
)


@app.command("list")
def list_agents(
    is_own: Annotated[bool, typer.Option("--own", help="only the agents of the lake's own table, agents.toml")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print the agents that are known by their user agents, in the order in which they are tried.

    First come those of the lake's own table, agents.toml in its folder, then those that are shipped.

    Example: traffic agents list --own
    """
    from data.rules.tables import OwnAgent, agents_of
    from data.store.agents_file import own_agents

    opened = Lake(lake, must_write=False)
    with closing(opened.manifest):
        own = own_agents(opened)
    names = ("token", "agent", "operator", "agent_kind", "ai_source", "confidence")
    rows = [
        ("own" if isinstance(row, OwnAgent) else "shipped", *(str(getattr(row, name) or "") for name in names))
        for row in (own if is_own else agents_of(own))
    ]
    if rows:
        print_rows(("table", *names), rows)
    else:
        inform(f"The lake has no agents of its own; write them to {opened.own_agents}.")


@app.command()
def refresh(
    folder: Annotated[
        str, typer.Option("--from", help="read the lists from files <list>.* in this folder instead of fetching them")
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Fetch the IP lists that operators publish for their agents, and networks of hosting providers.

    By the former, imports verify what agents claim to be, by the latter they tell more machines from people.

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
