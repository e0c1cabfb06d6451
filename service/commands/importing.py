"""`traffic import`: imports access logs into the lake."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import SHORT_CODE_PATTERN, BadInput, Lake
from data.logs.format_names import FORMATS
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, flag
from service.commands.printing import messages, plural, progress_bar
from service.settings import parse_networks, setting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from data.ingest.importer import Importer, Options, Summary
    from data.rules.geoip import CountryDatabase

DomainOption = Annotated[str, typer.Option(help="domain of lines that name no host; required where none does")]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        help=f"auto, or one of {', '.join(FORMATS)}; for Parquet files: ndjson",
    ),
]
NginxLogFormatOption = Annotated[
    str,
    typer.Option(
        "--log-format",
        help="the log_format of nginx: "
        """'$remote_addr [$time_local] "$request" $status "$http_referer" "$http_user_agent"'""",
    ),
]
ColumnsOption = Annotated[
    str,
    typer.Option(
        help="names of our fields (time, ip, method, url or domain and path, status, user_agent, referrer, "
        "country) in ndjson, csv or Parquet: time=ts,ip=client.address"
    ),
]


def import_logs(
    files: Annotated[list[Path], typer.Argument(help="access logs: plain, .gz or .zst; or .parquet")],
    organization: OrganizationOption,
    domain: DomainOption = "",
    log_format: FormatOption = "auto",
    nginx_log_format: NginxLogFormatOption = "",
    columns: ColumnsOption = "",
    short_code_pattern: Annotated[str, flag("short_code_pattern")] = SHORT_CODE_PATTERN,
    geoip: Annotated[str, flag("geoip")] = setting("geoip").default,
    trusted_proxies: Annotated[str, flag("trusted_proxies")] = setting("trusted_proxies").default,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="read and classify, but change nothing")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Import access logs. A log that was imported before is skipped; of a log that has grown only new lines are added.

    A log is known by its content, whatever its name, and goes on with the --domain that it was begun with.

    Example: traffic import /var/log/nginx/access.log* --org acme --domain go.example.com
    """
    from data.ingest.importer import Importer

    console = messages()
    options = options_of(organization, domain, log_format, nginx_log_format, columns, short_code_pattern)
    opened = Lake(lake, create=True)
    countries = countries_of(console, geoip)
    importer = Importer(opened, proxies=parse_networks(trusted_proxies), countries=countries)
    console.print(f"Lake: {opened.root}")
    summaries = [_import(console, importer, file, options, dry_run) for file in files]
    if any(summary.cut_short for summary in summaries):
        raise typer.Exit(1)


def options_of(
    organization: str, domain: str, log_format: str, nginx_log_format: str, columns: str, short_code_pattern: str
) -> "Options":
    """The import options given by the flags. Raises BadInput."""
    from data.ingest.importer import Options
    from data.logs.formats import columns_from, parse_nginx_log_format

    column_names, log_format_rules = (
        columns_from(columns),
        parse_nginx_log_format(nginx_log_format) if nginx_log_format else None,
    )
    return Options(
        organization, domain.lower(), log_format, short_code_pattern, column_names, log_format_rules, needs_domain=True
    )


def countries_of(console: "Console", geoip: str) -> "CountryDatabase | None":
    """The country database, or None with a message if it cannot be read: imports work without countries."""
    from data.rules.geoip import CountryDatabase

    try:
        return CountryDatabase(Path(geoip)) if geoip else None
    except BadInput as error:
        console.print(f"traffic: {error}; countries are unknown unless the log contains them.")
        return None


def _import(console: "Console", importer: "Importer", file: Path, options: "Options", dry_run: bool) -> "Summary":
    """Import one file with a progress bar and print the summary."""
    with progress_bar(console, file.name) as progress:
        summary = importer.run(file, options, dry_run, progress)
    _report(console.print, file, summary, options.domain, dry_run)
    return summary


def _categories(summary: "Summary") -> "Table":
    """A table of the visits of each category."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for category, count in summary.categories.most_common():
        table.add_row(f"  {category}", f"{count:,}", f"{100 * count / summary.visits:.1f} %", style=None)
    return table


def _report(write: Callable[[object], None], file: Path, summary: "Summary", domain: str, dry_run: bool) -> None:
    """Print the summary of an import."""
    if summary.already_imported:
        write(f"{file}: already imported, nothing changed.")
        return
    outcome = "would land" if dry_run else "landed"
    grown = " of a log whose beginning was imported before" if summary.continued else ""
    visits, lines = plural(summary.visits, "visit"), plural(summary.lines, "line")
    write(f"{file}: {visits} {outcome} from {lines}{grown} ({summary.log_format}).")
    if summary.visits:
        write(_categories(summary))
        write(f"  days {summary.first_day} to {summary.last_day} (UTC)")
    if summary.begun_without_domain:
        write(f"  earlier lines were imported without a domain; these have {domain}")
    for agent, count in summary.contradicted.most_common():
        claim = f"{plural(count, 'visit')} claiming to be {agent}"
        write(f"  {claim}, but not from its operator's addresses: other_bot, contradicted")
    if summary.contradicted:
        write("  (if these are addresses of a proxy of yours, name its networks in TRAFFIC_TRUSTED_PROXIES)")
    if summary.repaired:
        write(f"  {summary.repaired:,} mended: cut short inside the user agent")
    if summary.invalid_domains:
        write(f"  {summary.invalid_domains:,} with an invalid host: the domain is unknown")
    if summary.rejected:
        where = f", noted in {summary.rejects_file}" if summary.rejects_file else ""
        line, reason = summary.rejects[0]
        write(f"  {plural(summary.rejected, 'line')} not read{where}; the first is line {line:,}: {reason}")
    if summary.visits and summary.without_user_agent == summary.visits:
        write("  this log names no user agents: people cannot be told from automata, so none is counted as human")
    if summary.cut_short:
        write("  the file is cut short: what could be read counts; import the whole file and only the rest is added")
