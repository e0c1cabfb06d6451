"""`traffic agents`: lists known agents, and updates their tables and their operators' IP lists."""

import hashlib
import os
from collections.abc import Sequence
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
from service.core.settings import setting

if TYPE_CHECKING:
    from data.rules.tables import IpList
    from service.core.setting_values import PinnedFile

DOWNLOAD_SECONDS: Final = 20
"""Time limit for each file, including redirects."""
RELEASE: Final = "rules.toml"
"""The file name of a release in the folder given by `--from` and in the lake."""
_PINNED: Final = setting("rules")

app = typer.Typer(
    help="List known agents, and update their names and IP lists.",
    rich_markup_mode=None,
)


@app.command("list")
def list_agents(
    is_own: Annotated[bool, typer.Option("--own", help="only the agents in the lake's own table, agents.toml")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print the agents that are recognized by their user agents, in order of precedence.

    The lake's own table, agents.toml in its folder, comes first, then the release downloaded by `refresh` or, without
    one, the shipped table.

    Example: traffic agents list --own
    """
    from data.rules.tables import OwnAgent
    from data.store.lake_tables import lake_tables

    opened = Lake(lake, must_write=False)
    with closing(opened.manifest):
        tables = lake_tables(opened)
    names = ("token", "agent", "operator", "agent_kind", "ai_source", "confidence")
    others = "release" if tables.released else "shipped"
    rows = [
        ("own" if isinstance(row, OwnAgent) else others, *(str(getattr(row, name) or "") for name in names))
        for row in (tables.own if is_own else tables.agents())
    ]
    if rows:
        print_rows(("table", *names), rows)
    else:
        inform(f"The lake has no agents of its own; add some to {opened.own_agents}.")


@app.command()
def release(file: Annotated[Path, typer.Argument(help="the file to write, such as rules.toml")]) -> None:
    """Write this version's agents and referrers to FILE, for installations of older versions.

    Publish it over https, and set TRAFFIC_RULES there to its URL and checksum, as printed.

    Example: traffic agents release rules.toml
    """
    from data.rules.released import newest_check, shipped_release

    content = shipped_release()
    try:
        file.write_bytes(content)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error
    inform(f"{file} has the names as of {newest_check(content)}. Publish it, and set this variable with its URL:")
    typer.echo(f"{_PINNED.variable}=https://…/{file.name}#sha256={hashlib.sha256(content).hexdigest()}")


@app.command()
def refresh(
    folder: Annotated[
        str, typer.Option("--from", help=f"read <list>.* and {RELEASE} from this folder instead of downloading them")
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Download the IP lists that operators publish for their agents, and lists of hosting providers' networks.

    Imports verify agents with the IP lists, and use the networks to distinguish more machines from people.

    With TRAFFIC_RULES, newer tables of agents and referrers are downloaded first, and used if their checksum matches.
    If a file cannot be downloaded or is implausible, its last version is kept, and the exit code is 1.

    Example: traffic agents refresh
    """
    from data.rules.tables import IpList, load

    pinned = _PINNED.read(os.environ.get(_PINNED.variable, "").strip())
    if folder and not (Path(folder) / RELEASE).exists():
        pinned = None
    rows = load(IpList, "ip_lists")
    if folder:
        rows = [row for row in rows if any(Path(folder).glob(f"{row.name}.*"))]
    if not rows and not pinned:
        raise BadInput(f"--from: {folder} has no file <list>.*, such as openai-gptbot.json.")
    opened = created_lake(lake)
    problems = [_refresh_names(opened, pinned, folder)] if pinned else []
    problems += [_refresh_lists(opened, rows, folder)] if rows else []
    if any(problems):
        raise typer.Exit(1)


def _refresh_names(lake: Lake, pinned: "PinnedFile", folder: str) -> bool:
    """Install the release that TRAFFIC_RULES names, and print which names are in use. Return whether the installation
    failed.
    """
    from data.store.lake_tables import names_of, sha256_of_release, store_release

    problem = ""
    try:
        if sha256_of_release(lake) != pinned.sha256:
            name = str(Path(folder) / RELEASE) if folder else pinned.url
            store_release(lake, name, _read(name) if folder else _fetched(name), pinned.sha256)
    except BadInput as error:
        problem = str(error)
    if problem:
        inform(f"{_PINNED.variable}: {problem}")
    inform(f"Names of agents and referrers in use: {names_of(lake)}.")
    return bool(problem)


def _refresh_lists(lake: Lake, rows: "Sequence[IpList]", folder: str) -> bool:
    """Download the IP lists into the lake, and print a table of them. Return whether any download failed."""
    from rich.progress import track

    from data.rules.ip_lists import folder_fetcher
    from data.store.ip_list_files import refresh, snapshots

    fetch = folder_fetcher(Path(folder)) if folder else lambda row: _fetched(row.url)
    progress = messages()
    refreshed, is_hidden = refresh(lake, rows, fetch, datetime.now(UTC)), not progress.is_terminal
    outcomes = [*track(refreshed, "Fetching lists", len(rows), console=progress, transient=True, disable=is_hidden)]
    kept = snapshots(lake)
    cells = []
    for row, _, problem in outcomes:
        snapshot = kept.get(row.name)
        last = (f"{len(snapshot.networks):,}", to_text(snapshot.fetched_at)) if snapshot else ("", "never")
        cells.append((row.name, row.operator, *last, problem))
    print_rows(("list", "operator", "networks", "fetched at", "problem"), cells)
    failed = sum(outcome.snapshot is None for outcome in outcomes)
    if failed:
        inform(f"{failed} of {plural(len(rows), 'list')} could not be refreshed; their last versions are kept.")
    return bool(failed)


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}") from error


def _fetched(url: str) -> bytes:
    """Download an IP list or a release, of at most MAX_LIST_BYTES. Raises BadInput."""
    import asyncio

    from data.rules.ip_lists import MAX_LIST_BYTES
    from service.outgoing.connection import OutgoingError
    from service.outgoing.http import download

    try:
        return asyncio.run(download(url, DOWNLOAD_SECONDS, MAX_LIST_BYTES))
    except OutgoingError as error:
        raise BadInput(f"{url} cannot be fetched: {error}") from error
