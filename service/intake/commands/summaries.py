"""The printed summary of `traffic import`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from data import Lake
from data.logs.format_names import NAMED_COLUMN_FORMATS
from data.text import percentage, plural
from service.core.commands.printing import inform, printable

if TYPE_CHECKING:
    from data.ingest.importer import Options
    from data.ingest.summary import Summary

MIN_SHORT_CODE_SHARE: Final = 5
"""A warning is printed if a lower percentage of visits have short codes."""
OLD: Final = timedelta(days=30)
"""The length of the default range of queries, which excludes older visits. Copied here because importing `queries` is
slow.
"""


def report(file: Path, summary: "Summary", options: "Options", lake: Lake, *, dry_run: bool) -> None:
    """Print what was read from a log, and what could not be read."""
    zone = lake.manifest.organizations.zone(options.organization)
    if summary.already_imported:
        without = ", without a domain" if summary.begun_without_domain else ""
        inform(f"{file}: already imported{without}, nothing changed.")
        return
    _report_lines(file, summary, dry_run)
    if summary.visits:
        categories = [(category, count, f"{count:,}") for category, count in summary.categories.most_common()]
        widths = max(len(category) for category, *_ in categories), max(len(text) for *_, text in categories)
        for category, count, text in categories:
            inform(f"  {category:{widths[0]}}  {text:{widths[1]}}  {percentage(count, summary.visits)}")
        inform(f"  days {summary.first_day} to {summary.last_day} ({zone})")
        if dry_run:  # the short codes show whether a log was understood
            share = percentage(summary.with_short_code, summary.visits)
            codes = f", such as {', '.join(summary.short_codes)}" if summary.short_codes else ""
            inform(f"  {share} of paths match the short-code pattern{codes}")
        _warn(summary, zone)
    if summary.begun_without_domain:
        inform(f"  earlier lines were imported without a domain; these have {options.domain}")
    _report_oddities(summary)
    if summary.rejected:
        where = f", noted in {summary.rejects_file}" if summary.rejects_file else ""
        line, reason = summary.rejects[0]
        inform(f"  {plural(summary.rejected, 'line')} not read{where}; the first is line {line:,}: {reason}")
    if summary.in_future:
        lines = plural(summary.in_future, "line")
        inform(
            f"  {lines} dated more than a day in the future: check the clock here, and on the server that wrote the log"
        )
    if summary.visits and summary.without_user_agent == summary.visits:
        _report_no_agents(file, summary)
    if summary.is_truncated:
        inform("  the file is truncated: what could be read was imported; import the whole file to add the rest")
    _report_aside(summary, lake, options.organization)


def _report_lines(file: Path, summary: "Summary", dry_run: bool) -> None:
    """Print the number of visits, and how their lines were read."""
    outcome = "would be imported" if dry_run else "imported"
    grown = " of a log that was partly imported before" if summary.continued else ""
    visits, lines = plural(summary.visits, "visit"), plural(summary.lines, "line")
    log_format, _, guessed = summary.log_format.partition(" --columns ")
    named = f" ({log_format})" if log_format else ""
    inform(f"{file}: {visits} {outcome} from {lines}{grown}{named}.")
    for other, count in summary.others.most_common():
        inform(f"  {plural(count, 'line')} in another format ({other})")
    for pair in guessed.split(",") if guessed else ():
        field, _, key = pair.partition("=")
        inform(f"  its {field} is taken from the key {printable(key)}")


def _report_no_agents(file: Path, summary: "Summary") -> None:
    """Print the consequences of a log without user agents."""
    inform("  this log has no user agents: people cannot be distinguished from bots, so no visit counts as human")
    if summary.log_format in NAMED_COLUMN_FORMATS:
        inform(f"  (`traffic formats explain {quote(str(file))}` shows whether other columns have them)")


def _report_aside(summary: "Summary", lake: Lake, organization: str) -> None:
    """Print how many visits answers leave out and, if there are many files, how to leave the files out."""
    files, by_address, by_rule = (summary.aside[name] for name in ("file", "own_address", "own_rule"))
    if lake.manifest.exclusions.are_files_aside(organization):
        if files:
            inform(f"  {plural(files, 'file')} set aside: answers leave them out")
    elif 3 * files > summary.visits:
        share = percentage(files, summary.visits)
        inform(f"  {share} are files: `traffic files aside --org {organization}` leaves them out of answers")
    if by_address or by_rule:
        inform(f"  your own visits set aside: {by_address:,} by address, {by_rule:,} by user agent or path")
        for rule, visits in summary.excluded.most_common():
            inform(f"    {visits:,} by {rule.kind} {rule.value}")


def report_people(lake: Lake, organization: str, summaries: list["Summary"]) -> None:
    """Print the number of visits by people on the imported days, as answers count them."""
    firsts, lasts = ([day for one in summaries if (day := getattr(one, name))] for name in ("first_day", "last_day"))
    if firsts:
        from data.tasks.people import count_people

        first, last = min(firsts), max(lasts)
        found = count_people(lake, organization, first, last)
        inform(f"{organization}, {first} to {last}: {found.people:,} of {found.visits:,} visits are by people.")


def _report_oddities(summary: "Summary") -> None:
    """Print unusual facts about imported visits."""
    for agent, count in summary.contradicted.most_common():
        visits = plural(count, "visit")
        inform(f"  {visits} claiming to be {agent}, but not from its operator's addresses: other_bot, contradicted")
    if summary.contradicted:
        inform("  (if these addresses are your own proxy's, set TRAFFIC_TRUSTED_PROXIES to its networks)")
    if summary.behind_proxy:
        share = percentage(summary.behind_proxy, summary.visits)
        inform(
            f"  warning: {share} of these visits are from one private address, probably a proxy: they count as one "
            "visitor, without a country, and no agent is verified. Log X-Forwarded-For, too (nginx: "
            "$http_x_forwarded_for, Apache: %{X-Forwarded-For}i, as the last quoted field)"
        )
    if summary.visits and summary.log_format == "bunny":
        inform("  Bunny truncates addresses by default: several people may count as one visitor")
    if summary.assets:
        inform(f"  {plural(summary.assets, 'request')} for images, stylesheets, scripts and fonts left out")
    if summary.repaired:
        inform(f"  {plural(summary.repaired, 'line')} cut off inside the user agent, but repaired")
    if summary.invalid_domains:
        inform(f"  {plural(summary.invalid_domains, 'visit')} with an invalid host: the domain is unknown")


def _warn(summary: "Summary", zone: str) -> None:
    """Warn if a log was probably misread, if all its visits are older than the default range of queries, or if it may
    contain erased visits.
    """
    from data.local_time import today

    if 100 * summary.with_short_code < MIN_SHORT_CODE_SHARE * summary.visits:
        inform("  warning: few of its paths match the short-code pattern; set another with --short-code-pattern")
    age = today(zone, datetime.now(UTC)) - summary.last_day if summary.last_day else timedelta(0)
    if age >= OLD:
        from queries import DEFAULT_RANGE, RANGES

        ways = [f"--range {name}" for name, length in RANGES.items() if age < timedelta(days=length)]
        ways.append(f"--start-date {summary.first_day} --end-date {summary.last_day}")
        older = f"older than the default range of queries, {DEFAULT_RANGE}"
        inform(f"  warning: its newest visit is {older}: query it with {' or '.join(ways)}")
    for erasure in summary.erasures:
        inform(f"  warning: {erasure}; this log may contain them")
