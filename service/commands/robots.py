"""`traffic robots`: lines for robots.txt and what they would mean, and visits that went against such a file."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import BadInput
from service.commands.answers import check_format, print_answer
from service.commands.filters import open_lake
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption
from service.commands.printing import printable

if TYPE_CHECKING:
    from datetime import date

    from queries import Reader, Result

app = typer.Typer(invoke_without_command=True, no_args_is_help=True, rich_markup_mode=None)
DAYS = 28


@app.callback()
def robots(
    context: typer.Context,
    organization: Annotated[
        str, typer.Option("--org", metavar="ORG", help="organization whose crawlers are listed")
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print lines for robots.txt, or check such a file.

    Lines stand by group (training, search, assistants); a file is checked against the visits.

    Comments say how many visits of the 28 days before today each line would have kept away, and how many people the AI
    products of that operator sent. Nothing obliges a crawler to obey; those that only use another's name are left out.

    Example: traffic robots --org acme > robots-suggested.txt
    """
    from queries import Reader
    from service.robots import crawlers, robots_lines

    if context.invoked_subcommand:
        source = context.get_parameter_source("lake")
        if organization or (source and source.name == "COMMANDLINE"):
            raise BadInput("write options after check: traffic robots check robots.txt --org NAME.")
        return
    with closing(Reader(open_lake(lake, organization))) as reader:
        first, last = _days(reader, organization)
        listed, zone = crawlers(reader, organization, first, last), reader.zone(organization)
    typer.echo(f"# {organization}: crawlers from {first} to {last} ({zone}); remove the lines of those that may come.")
    for line in robots_lines(listed):
        typer.echo(printable(line))


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="the robots.txt that your server answers with")],
    organization: OrganizationOption,
    domain: Annotated[str, typer.Option(help="only visits to this domain")] = "",
    output: Annotated[str, typer.Option("--format", help="table, json, csv or parquet")] = "table",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print the visits of crawlers to paths that a robots.txt closes to them, in the 28 days before today.

    With a robots.txt for each domain, add --domain. Visits from before the file was changed count as well.

    Example: traffic robots check robots.txt --org acme
    """
    from queries import Reader
    from service.robots import offences, read_robots

    check_format(output)
    rules = read_robots(file)
    with closing(Reader(open_lake(lake, organization))) as reader:
        rows = offences(reader, rules, organization, *_days(reader, organization), domain=domain)
    answer: Result = [one._asdict() for one in rows]
    if rows or output != "table":
        print_answer(answer, output)
    else:
        typer.echo("No crawler went against it.", err=True)


def _days(reader: "Reader", organization: str) -> "tuple[date, date]":
    today = reader.today(organization)
    return today - timedelta(days=DAYS), today - timedelta(days=1)
