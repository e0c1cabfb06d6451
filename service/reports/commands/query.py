"""`traffic query` and `traffic views`: print the API's answers and the relations behind them, without a server."""

import os
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data import BadInput, Lake
from service.core.commands.answers import check_format, check_parts, print_answer, select_columns
from service.core.commands.options import (
    DEFAULT_LAKE,
    FormatOption,
    LakeOption,
    OrganizationOption,
    RawOption,
    flag,
    open_lake,
)
from service.core.commands.printing import inform
from service.core.settings import cluster_options, read_settings, setting

if TYPE_CHECKING:
    from queries import ClusterOptions, Entry, OwnSql, Result, Scope, TrafficValue

NoDomainOption = Annotated[bool, typer.Option("--no-domain", help="only visits without a domain")]
ValuesOption = Annotated[str, flag("values")]
EngineOption = Annotated[
    str, typer.Option(help="cluster to use instead of this machine, such as sc://host:15002; queries end after 24 h")
]
_DAYS = "--start-date and --end-date"
MAX_CLUSTER_SECONDS = 24 * 3600.0
"""The time limit for a query on a cluster, in seconds."""


def query(
    name: Annotated[str, typer.Argument(help="a report's name (any other word lists them), or your own .sql file")],
    organization: OrganizationOption,
    context: typer.Context,
    no_domain: NoDomainOption = False,
    output: FormatOption = "table",
    part: Annotated[str, typer.Option(help="print only this part of an answer with several parts")] = "",
    columns: Annotated[str, typer.Option(help="the columns to print, as a comma-separated list")] = "",
    is_raw: RawOption = False,
    is_wide: Annotated[bool, typer.Option("--wide", help="do not fit columns to the terminal")] = False,
    values: ValuesOption = setting("values").default,
    memory: Annotated[str, flag("memory")] = setting("memory").default,
    engine: EngineOption = "",
    engine_lake: Annotated[str, flag("engine_lake")] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print an answer, with the same rows as GET /analytics/NAME; with --format json the bytes are identical.

    With --format csv, an apostrophe precedes text that a spreadsheet would run as a formula; --raw omits it.

    Example: traffic query top-links --org acme --range 90d --format csv
    """
    from queries import ENTRIES, OwnSql, Warehouse, empty_scope_hint, load_traffic_values
    from service.core.encoding import plain

    if engine and name.endswith(".sql"):
        raise BadInput("--engine is for endpoints; your own SQL runs on this machine.")
    check_format(output, is_raw=is_raw)
    entry = _entry(name)
    members = dict(entry.members) if entry else {}
    if part and part not in members:
        known = f"use {', '.join(members)}." if members else "this answer has no parts."
        raise BadInput(f"unknown part {part!r}; {known}")
    answered = members[part] if part else entry
    if answered:
        outline = _outline(answered)
        select_columns(outline, columns)
        check_parts(outline, output)
    memory = setting("memory").read(memory)
    opened = open_lake(lake, organization)
    scope = _scope(opened, entry or ENTRIES["bot-traffic"], organization, context.obj, no_domain)
    with_values = load_traffic_values(Path(values) if values else None)
    flags = {"engine": engine, "engine_from": "0", "engine_lake": engine_lake}  # regardless of the environment
    cluster = cluster_options(read_settings(os.environ, **flags)) if engine else None
    if answered and cluster:
        answer = _answer_of_cluster(cluster, opened, answered, scope, with_values)
    elif answered:
        with closing(Warehouse(opened, with_values, memory)) as warehouse:
            answer = warehouse.answer(answered, warehouse.snapshot(scope))
    else:
        with closing(OwnSql(opened, organization, with_values, memory)) as own_sql:
            answer = _run_sql_file(own_sql, Path(name), scope)
            answer = plain(answer) if output == "json" else answer
    print_answer(select_columns(answer, columns), output, is_wide, is_raw)
    if hint := empty_scope_hint(opened, scope, _DAYS):
        inform(hint)
    else:
        _explain_filters(opened, entry or ENTRIES["bot-traffic"], organization, context.obj, memory)


def _explain_filters(lake: Lake, entry: "Entry", organization: str, parameters: dict[str, str], memory: str) -> None:
    """Print the parameters that the answer ignores and, if no visit matches, each filter value that no visit has."""
    from queries import ENTRIES, Warehouse, parameters_of, single_filters, unknown_value_hint

    ignored = [name for name, value in parameters.items() if value and name not in parameters_of(entry)]
    for name in ignored:
        inform(f"--{name.replace('_', '-')} has no effect on {entry.name}.")
    given = {name: value for name, value in parameters.items() if name not in ignored}
    filters, overview = single_filters(given), ENTRIES["traffic-overview"]
    if not filters:
        return
    with closing(Warehouse(lake, memory=memory)) as warehouse:

        def is_empty(query: dict[str, str]) -> bool:
            scope = _scope(lake, overview, organization, {"domain": "", **query}, no_domain=False)
            answer: Any = warehouse.answer(overview, warehouse.snapshot(scope))
            return not answer["total_visits"]

        if is_empty(given):
            for name in (name for name, query in filters.items() if is_empty(query)):
                inform(unknown_value_hint(name, given[name]))


def views(
    organization: OrganizationOption,
    context: typer.Context,
    no_domain: NoDomainOption = False,
    values: ValuesOption = setting("values").default,
    is_described: Annotated[
        bool, typer.Option("--describe", help="instead of the script, print what the relations and their columns mean")
    ] = False,
    output: Annotated[str, typer.Option("--format", help="for --describe: table (the default) or json")] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print an SQL script that defines the reports' relations in the DuckDB shell, where templates then run unchanged.

    Example: traffic views --org acme > acme.sql; duckdb -init acme.sql; then .read queries/templates/devices.sql
    """
    from queries import ENTRIES, OwnSql, Warehouse, describe, empty_scope_hint, load_traffic_values, script

    if output and not is_described:
        raise BadInput("--format needs --describe; without it, the output is always SQL.")
    check_format(output := output or "table", ("table", "json"))
    opened = open_lake(lake, organization)
    scope = _scope(opened, ENTRIES["bot-traffic"], organization, context.obj, no_domain)
    if is_described:
        with closing(OwnSql(opened, organization)) as own_sql:
            print_answer(describe(own_sql, scope), output)
        return
    warehouse = Warehouse(opened, load_traffic_values(Path(values) if values else None))
    hint = empty_scope_hint(opened, scope, _DAYS)
    typer.echo(script(warehouse.snapshot(scope), hint))
    if hint:
        inform(hint)
    if opened.keep_seeds():
        inform(
            f"The lake is read-only and lacks the empty files that the script reads, so do not delete {opened.seeds}."
        )


def _entry(name: str) -> "Entry | None":
    """Return the entry with this name, or None if it names an SQL file. Raises BadInput for any other name."""
    from queries import CACHE_STATS, ENTRIES

    if name in ENTRIES:
        return ENTRIES[name]
    if name == CACHE_STATS.name:
        raise BadInput("cache-stats describes a running server: use GET /analytics/cache-stats.")
    if name.endswith(".sql"):
        return None
    raise BadInput(f"unknown endpoint {name!r}; use one of {', '.join(ENTRIES)}, or a .sql file.")


def _outline(entry: "Entry") -> "Result":
    """Return an answer with the entry's shape but no values, to reject unknown columns and formats before counting."""
    if entry.members:
        return {name: _outline(member) for name, member in entry.members}
    return [{field.name: None for field in entry.fields}]


def _scope(lake: Lake, entry: "Entry", organization: str, parameters: dict[str, str], no_domain: bool) -> "Scope":
    from data.links.index import LinkIndex
    from queries import scope_from, validate

    if no_domain and parameters["domain"]:
        raise BadInput("--domain and --no-domain exclude each other.")
    query = validate(parameters.items(), entry)
    scope = scope_from(
        query, organization, lake.manifest.organizations.today(organization, datetime.now(UTC)), LinkIndex(lake)
    )
    return replace(scope, no_domain=no_domain or scope.no_domain)


def _answer_of_cluster(
    options: "ClusterOptions", lake: Lake, entry: "Entry", scope: "Scope", values: "list[TrafficValue]"
) -> "Result":
    """Return an answer computed by a cluster, even if it reads few visits. Ctrl-C also stops the cluster's query."""
    from concurrent.futures import ThreadPoolExecutor

    from rich.console import Console

    from queries import Warehouse, open_cluster

    cancelled, options = threading.Event(), replace(options, seconds=MAX_CLUSTER_SECONDS)
    opening = closing(open_cluster(lake, Warehouse(lake, values), options, values))
    with opening as engine, ThreadPoolExecutor(1) as thread:
        answering = thread.submit(lambda: engine.answer(entry, engine.snapshot(scope), cancelled))
        try:
            with Console(stderr=True).status("Waiting for the cluster …"):
                return answering.result()
        except KeyboardInterrupt:
            engine.stop(cancelled)
            raise


def _run_sql_file(own_sql: "OwnSql", path: Path, scope: "Scope") -> "Result":
    from queries import QueryFailed

    try:
        sql = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.") from error
    try:
        result = own_sql.sql(sql, scope)
    except QueryFailed as error:
        raise BadInput(f"{path}: {error}") from error
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]
