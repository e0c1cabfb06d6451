"""`traffic export`: the answers of single days as files, for other programs."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import quote

import typer

from data import BadInput, Lake
from data.errors import Conflict
from data.text import plural
from service.commands.answers import check_format
from service.commands.filters import WithParameters
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, RawOption, flag, open_lake
from service.commands.printing import inform, progress_bar
from service.settings import setting

if TYPE_CHECKING:
    import pyarrow as pa

    from queries import Entry, Scope, Warehouse


class ExportCommand(WithParameters):
    """Its ranges are of complete days."""

    changed_help: ClassVar = {"range": "yesterday, or 7d, 30d or 90d that end yesterday [default: yesterday]"}


def export(
    organization: OrganizationOption,
    folder: Annotated[Path, typer.Option("--to", metavar="DIR", help="folder of the files, created if missing")],
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="every day with visits, instead of a range")] = False,
    endpoints: Annotated[str, typer.Option(help="only these, separated by commas; default: every endpoint")] = "",
    output: Annotated[str, typer.Option("--format", help="parquet or csv")] = "parquet",
    is_raw: RawOption = False,
    again: Annotated[bool, typer.Option("--again", help="write existing files again")] = False,
    values: Annotated[str, flag("values")] = setting("values").default,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Write one file for each endpoint and complete day: DIR/ENDPOINT/organization=ORG/day=DAY/rows.parquet.

    Each has the rows of GET /analytics/ENDPOINT for that day alone; an endpoint with parts has a folder for each, and
    filters have folders too: organization=ORG/country=DE/day=DAY. A file appears when it is complete. Files that exist
    are kept, so an export that was stopped resumes where it stopped; --again writes them again, after visits of these
    days were imported late or erased. Days without visits are left out.

    Example, for cron after the import: traffic export --org acme --to exports --range yesterday
    """
    from queries import Warehouse, load_traffic_values

    check_format(output, ("parquet", "csv"), is_raw=is_raw)
    if everything and any(context.obj[name] for name in ("range", "start_date", "end_date")):
        raise BadInput("--all is every day; leave out --range, --start-date and --end-date.")
    entries = _entries(endpoints)
    opened = open_lake(lake, organization)
    if folder.resolve().is_relative_to(opened.root.resolve()):
        raise BadInput(f"{folder} is inside the lake; choose a folder outside of it.")
    with_values = load_traffic_values(Path(values) if values else None)
    with closing(opened.manifest), closing(Warehouse(opened, with_values, seconds=600)) as warehouse:  # no client waits
        yesterday = opened.manifest.organizations.today(organization, datetime.now(UTC)) - timedelta(days=1)
        scopes = _scopes(opened, organization, context.obj, entries, yesterday)
        folders = {}
        for name, scope in scopes.items():
            partitions = {"organization": scope.organization, **scope.filters}
            hive = [f"{key}={quote(value, safe='')}" for key, value in partitions.items()]
            folders[name] = folder.joinpath(name, *hive)
        paths = {
            (day, name): folders[name] / f"day={day}" / f"rows.{output}"
            for day in _days(opened, organization, None if everything else scopes[min(scopes)], yesterday)
            for name in entries
        }
        missing = {key: path for key, path in paths.items() if again or not path.exists()}
        _write_files(warehouse, scopes, entries, missing, folder, is_raw)
    inform(f"{folder}: {plural(len(missing), 'file')} written, {len(paths) - len(missing):,} kept.")


def _entries(names: str) -> dict[str, "Entry"]:
    """The entries with these names, separated by commas, or all; parts by the names of both. Raises BadInput.

    The dashboard is not one of them: each of its parts is an endpoint.
    """
    from queries import ENTRIES

    known = {name: entry for name, entry in ENTRIES.items() if name != "dashboard"}
    chosen = [name.strip() for name in names.split(",") if name.strip()] or list(known)
    for name in chosen:
        if name not in known:
            raise BadInput(f"unknown endpoint {name!r} to export; use any of {', '.join(known)}.")
    parts = {f"{name}/{part}": entry for name in chosen for part, entry in known[name].members}
    return {name: known[name] for name in chosen if not known[name].members} | parts


def _scopes(
    lake: Lake, organization: str, parameters: dict[str, str], entries: dict[str, "Entry"], yesterday: date
) -> dict[str, "Scope"]:
    """The scopes that parameters of the API mean to these entries, by their names. Raises InvalidParameter."""
    from data.links.index import LinkIndex
    from queries import scope_from, validate

    if parameters["range"] in ("", "yesterday"):
        only_yesterday = {"start_date": str(yesterday), "end_date": str(yesterday)}
        parameters = only_yesterday | {name: value for name, value in parameters.items() if value and name != "range"}
    links = LinkIndex(lake)
    return {  # a range ends yesterday
        name: scope_from(validate(parameters.items(), entry), organization, yesterday, links)
        for name, entry in entries.items()
    }


def _days(lake: Lake, organization: str, scope: "Scope | None", yesterday: date) -> list[date]:
    """The complete days of a scope that have visits, or all that have some."""
    stored = {file.day for file in lake.manifest.files.live(organization) if file.day <= yesterday}
    if scope is None:
        return sorted(stored)
    days = sorted(day for day in stored if scope.start_date <= day <= scope.end_date)
    length = (scope.end_date - scope.start_date).days + 1
    if len(days) < length:
        inform(
            f"{organization} has visits on {len(days):,} of {plural(length, 'day')} from {scope.start_date} to "
            f"{scope.end_date}; the others are left out.")  # fmt: skip
    return days


def _write_files(
    warehouse: "Warehouse",
    scopes: dict[str, "Scope"],
    entries: dict[str, "Entry"],
    paths: dict[tuple[date, str], Path],
    folder: Path,
    is_raw: bool,
) -> None:
    """Write the files of days and endpoints, with a progress bar. Raises Conflict while another export does so.

    Each is written beside them, synced, and renamed. What a killed export left there is overwritten by the next one.
    """
    from data.disk.files import make_durably, move_durably, sync, write_parquet
    from data.disk.locks import locked
    from service.csv_files import csv_of

    make_durably(folder)
    staged, done = folder / ".staged", 0
    with locked(folder, wait=False) as has_lock, progress_bar("Exporting") as progress:
        if not has_lock:
            raise Conflict(f"another export writes to {folder}: wait until it has ended.")
        for day, group in groupby(paths, key=lambda key: key[0]):
            scopes_of_day = {name: replace(scopes[name], start_date=day, end_date=day) for _, name in group}
            variables = {scope: warehouse.variables(scope) for scope in set(scopes_of_day.values())}
            for name, scope in scopes_of_day.items():
                path = paths[day, name]
                table: pa.Table = warehouse.tables(entries[name], variables[scope])
                if path.suffix == ".parquet":
                    write_parquet([table], table.schema, staged)
                else:
                    staged.write_bytes(csv_of(table.column_names, table.to_pylist(), is_raw=is_raw))
                    sync(staged)
                move_durably(staged, path)
                done += 1
                progress(done, len(paths))
        staged.unlink(missing_ok=True)
