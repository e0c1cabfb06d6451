"""`traffic import`: imports access logs into the lake."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from data import SHORT_CODE_PATTERN, BadInput, Lake
from data.logs.format_names import FORMATS
from data.text import plural
from service.core.commands.confirmation import ask, check_can_ask, may_ask
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, flag, is_new
from service.core.commands.printing import inform, progress_bar
from service.core.settings import setting
from service.intake.commands.first_choices import ask_first_choices, report_first_import
from service.intake.commands.summaries import report, report_people

if TYPE_CHECKING:
    from data.ingest.importer import Importer, Options
    from data.ingest.summary import Summary
    from data.rules.ip_lists import Network

DomainOption = Annotated[str, typer.Option(help="domain of lines without a host; required if no line has a host")]
FormatOption = Annotated[
    str, typer.Option("--format", help=f"auto, or one of {', '.join(FORMATS)}; for Parquet files: ndjson")
]
LayoutOption = Annotated[
    str,
    typer.Option(
        "--log-format",
        help="nginx's log_format, or Apache's LogFormat: "
        """'$remote_addr [$time_local] "$request" $status "$http_referer" "$http_user_agent"'""",
    ),
]
ColumnsOption = Annotated[
    str,
    typer.Option(
        help="which column of ndjson, csv or Parquet has each field (time, ip, method, url or domain and path, status, "
        "user_agent, referrer, country): time=ts,ip=client.address"
    ),
]
CapturesOption = Annotated[
    str, typer.Option(help="request headers that HAProxy captures, in order; - skips one: Host,-,User-Agent")
]


def import_logs(
    files: Annotated[list[Path], typer.Argument(help="access logs (plain, .gz or .zst) or .parquet files")],
    organization: OrganizationOption,
    domain: DomainOption = "",
    log_format: FormatOption = "auto",
    layout: LayoutOption = "",
    columns: ColumnsOption = "",
    captures: CapturesOption = "",
    short_code_pattern: Annotated[str, flag("short_code_pattern")] = SHORT_CODE_PATTERN,
    skip_assets: Annotated[bool, flag("skip_assets")] = False,
    geoip: Annotated[str, flag("geoip")] = setting("geoip").default,
    trusted_proxies: Annotated[str, flag("trusted_proxies")] = setting("trusted_proxies").default,
    files_choice: Annotated[
        str, typer.Option("--files", help="aside (leave files out of answers) or counted; only for a new organization")
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="import all lines, even if they were imported before and erased")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="read and classify, show dates and short codes, but change nothing")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="do not ask about a new organization, or before --again restores erased visits"),
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Import access logs. A log that was imported before is skipped; if the log has grown, its new lines are added.

    A log is identified by its content, not by its name; its first --domain cannot change later. Finally, the
    organization's past days are judged, as `traffic compact` does. On a terminal, an organization's first import asks
    about its time zone, files, your own addresses and countries.

    Example: traffic import /var/log/nginx/access.log* --org acme --domain go.example.com
    """
    options = options_of(organization, domain, log_format, layout, columns, captures, short_code_pattern, skip_assets)
    database, proxies = existing_database(geoip), setting("trusted_proxies").read(trusted_proxies)
    summaries = []
    with ExitStack() as stack:
        is_made_up = dry_run and is_new(lake)
        root = Path(stack.enter_context(TemporaryDirectory(prefix="traffic-"))) if is_made_up else lake
        opened = Lake(root, create=True)
        inform(f"Lake: {lake.absolute()}")
        is_first = not dry_run and opened.manifest.organizations.is_new(organization)
        choose_files(opened, organization, files_choice, dry_run)
        if is_asked := is_first and may_ask(yes):
            ask_first_choices(opened, organization, files, files_choice, database)
        importer = importer_of(opened, proxies, database)
        if again and not (yes or dry_run):
            _ask_again(importer, files, options)
        for file in files:
            summaries.append(_run(importer, file, options, dry_run, again))
            report(file, summaries[-1], options, opened, dry_run=dry_run)
        if not dry_run:
            judge_past_days(opened, organization)
            report_people(opened, organization, summaries)
        if is_first:
            report_first_import(opened, organization, summaries, database, is_asked=is_asked)
    if any(summary.is_truncated for summary in summaries):
        raise typer.Exit(1)


def _ask_again(importer: "Importer", files: list[Path], options: "Options") -> None:
    """Ask before reimporting logs that may contain erased visits. Raises BadInput without a terminal."""
    planned = [_run(importer, file, options, dry_run=True, again=True) for file in files]
    if erasures := sorted({str(erasure) for summary in planned for erasure in summary.erasures}):
        inform(f"These logs may contain erased visits: {'; '.join(erasures)}.")
        check_can_ask(yes=False)
        ask("Import them again?")


def choose_files(lake: Lake, organization: str, choice: str, dry_run: bool) -> None:
    """Set files aside, or count them, as `choice` says. Raises BadInput for an unknown choice, or for a change after
    the first visit.
    """
    if choice not in {"", "aside", "counted"}:
        raise BadInput(f"--files is {choice!r}; write aside or counted.")
    aside, exclusions = choice == "aside", lake.manifest.exclusions
    if not choice or exclusions.are_files_aside(organization) == aside:
        return
    if lake.manifest.files.span(organization):
        raise BadInput(
            f"{organization} already has visits; to change it, run `traffic files {choice} --org {organization}`."
        )
    if not dry_run:
        exclusions.switch_files(organization, aside=aside)


def judge_past_days(lake: Lake, organization: str | None) -> None:
    """Judge the past days with unjudged visits, for one organization or for all; show progress."""
    from data.tasks.compaction import COMMAND_THREADS, Compactor

    with progress_bar("Judging") as progress:
        judged = (
            Compactor(lake, threads=COMMAND_THREADS, version=1).run(progress=progress, organization=organization).judged
        )
    if judged:
        inform(f"Judged {plural(judged, 'past day')}: disguised bots no longer count as people.")


def options_of(
    organization: str,
    domain: str,
    log_format: str,
    layout: str,
    columns: str,
    captures: str,
    short_code_pattern: str,
    skip_assets: bool,
) -> "Options":
    """Return the import options from the flags. Raises BadInput for an invalid flag."""
    from data.ingest.importer import Options
    from data.logs.captures import parse_captures
    from data.logs.columns import columns_from
    from data.logs.line_layout import parse_layout

    names = columns_from(columns)
    described = parse_layout(layout) if layout else None
    captured = parse_captures(captures) if captures else ()
    return Options(
        organization, domain.lower(), log_format, short_code_pattern, names, described, skip_assets,
        needs_domain=True, captures=captured,
    )  # fmt: skip


def existing_database(geoip: str) -> Path | None:
    """Return the configured country database, if any. Raises BadInput if it does not exist."""
    if geoip and not Path(geoip).exists():
        raise BadInput(f"--geoip (or TRAFFIC_GEOIP) is {geoip}, which does not exist; name a country database.")
    return Path(geoip) if geoip else None


def importer_of(lake: Lake, proxies: "Iterable[Network]", database: Path | None) -> "Importer":
    """Return the importer that the flags describe. If its country database cannot be read, it adds no countries, and a
    message says so.
    """
    from data.ingest.importer import Importer

    countries = None
    try:
        if database or lake.country_database.exists():
            from data.store.country_file import country_database

            countries = country_database(lake, database)
    except BadInput as error:
        unknown = "countries are unknown unless the log contains them; `traffic countries` sets up a database."
        inform(f"traffic: {error}; {unknown}")
    return Importer(lake, proxies=proxies, countries=countries)


def _run(importer: "Importer", file: Path, options: "Options", dry_run: bool, again: bool) -> "Summary":
    with progress_bar(file.name) as progress:
        return importer.run(file, replace(options, guesses_columns=True), dry_run, progress, again)
