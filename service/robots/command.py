"""`traffic robots`: computes the savings and costs of blocking AI crawlers, and lists violations of a robots.txt."""

from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import BadInput
from data.text import plural
from service.core.commands.answers import check_format, print_answer
from service.core.commands.options import DEFAULT_LAKE, FormatOption, LakeOption, OrganizationOption, open_lake
from service.core.commands.printing import inform, printable
from service.jobs.commands.opening import opened_jobs

if TYPE_CHECKING:
    from protego import Protego

    from queries import Result
    from service.robots.plans import Crawled

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Plan what AI crawlers may fetch; check what they fetch."
)
DomainOption = Annotated[str, typer.Option(help="only visits to this domain")]


@app.command("plan")
def plan(
    organization: OrganizationOption,
    block: Annotated[list[str], typer.Option(help="operator, or operator:purpose, to block; may be repeated")] = [],  # noqa: B006  # typer copies it
    write_as: Annotated[
        str, typer.Option("--as", help="what --block prints: robots.txt, nginx or caddy")
    ] = "robots.txt",
    robots: Annotated[
        Path | None, typer.Option(help="your robots.txt: count requests that violate it, as `ignored`")
    ] = None,
    domain: DomainOption = "",
    is_job: Annotated[
        bool,
        typer.Option(
            "--job", help="turn the file that --block prints into a job, which is measured once it is shipped"
        ),
    ] = False,
    output: FormatOption = "table",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print what AI crawlers fetched in the 28 days before today, or the file that blocks some of them.

    Purposes are asked, indexed, trained and coding. With --block, comments state what blocking would have saved, and
    the visits by people sent by the blocked operators' products. A crawler may ignore robots.txt, but not the rules for
    nginx and Caddy, which reject its requests. Requests under a false name are left out.

    Example: traffic robots plan --org acme --block OpenAI:trained
    """
    from service.jobs.records import COMMAND_LINE
    from service.robots import plans

    check_format(output)
    if write_as not in plans.SNIPPETS:
        raise BadInput(f"--as {write_as!r} is not known; use {', '.join(plans.SNIPPETS)}.")
    if is_job and not block:
        raise BadInput("--job needs --block: a job is about the blocked crawlers.")
    rules = plans.read_robots(robots) if robots else None
    first, last, waiting, found, ignored = _read_fetches(lake, organization, rules, domain)
    if block:
        blocked = plans.cost(found, block)
        for line in plans.snippet(write_as, blocked, first, last).splitlines():
            typer.echo(printable(line))
        if is_job:
            days, now = (first, last), datetime.now(UTC)
            with opened_jobs(lake, must_write=True) as jobs:
                job = plans.make_job(
                    jobs, organization, blocked, write_as, days, COMMAND_LINE, now, domain=domain, ignored=ignored
                )
            inform(f"{job.id} is {job.status}: {printable(job.title)}")
        return
    rows: Result = [one.row(ignored) for one in found]
    if rows or output != "table":
        print_answer(rows, output)
    judged = f"; {plural(waiting, 'day')} not judged yet: some of the people sent may be bots" if waiting else ""
    inform(f"{first} to {last}{judged}. Choose with --block, as in --block OpenAI:trained.")


def _read_fetches(
    lake: Path, organization: str, rules: "Protego | None", domain: str
) -> tuple[date, date, int, list["Crawled"], Counter[str] | None]:
    """Return the first and last day, the number of unjudged days, fetches, and violations by agent (None: no rules)."""
    from queries import Reader
    from service.robots import plans

    opened = open_lake(lake, organization)
    ignored: Counter[str] | None = None
    with closing(Reader(opened)) as reader:
        first, last = plans.last_days(reader.today(organization))
        waiting = sum(first <= day <= last for day in opened.manifest.statistics.stored_span(organization).unjudged)
        fetched = reader.query("ai-agents", organization=organization, start_date=first, end_date=last, domain=domain)
        if rules:
            ignored = Counter()
            for one in plans.offences(reader, rules, organization, first, last, domain=domain):
                ignored[one["agent"]] += one["visits"]
    return first, last, waiting, plans.crawled(plans.rows_of(fetched)), ignored


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="the robots.txt that your server returns")],
    organization: OrganizationOption,
    domain: DomainOption = "",
    output: FormatOption = "table",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print visits by crawlers to paths that a robots.txt disallows for them, in the 28 days before today.

    If each domain has its own robots.txt, add --domain. Visits from before the file was last changed count, too.

    Example: traffic robots check robots.txt --org acme
    """
    from queries import Reader
    from service.robots.plans import last_days, offences, read_robots

    check_format(output)
    rules = read_robots(file)
    with closing(Reader(open_lake(lake, organization))) as reader:
        rows = offences(reader, rules, organization, *last_days(reader.today(organization)), domain=domain)
    print_answer(rows, output, nothing="No crawler violated the file.")


COMMANDS = {"robots": app}
