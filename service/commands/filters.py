"""What the commands that print numbers share: the filters of the API as options, and an organization's lake."""

from pathlib import Path
from typing import Annotated

import typer

from data import Lake
from service.commands.options import existing_organization

RangeOption = Annotated[str, typer.Option("--range", help="7d, 30d or 90d, ending today")]
StartOption = Annotated[str, typer.Option(help="first day, YYYY-MM-DD, with --end-date")]
EndOption = Annotated[str, typer.Option(help="last day, YYYY-MM-DD, with --start-date")]
ShortCodeOption = Annotated[str, typer.Option(help="only visits to this short code")]
TargetOption = Annotated[str, typer.Option(help="only visits to the link to this URL")]
DomainOption = Annotated[str, typer.Option(help="only visits to this domain")]
TypeOption = Annotated[str, typer.Option(help="only this category or group; for bot-traffic only")]


def open_lake(lake: Path, organization: str) -> Lake:
    """The lake, to be read only. Raises BadInput if it has no such organization."""
    opened = Lake(lake, must_write=False)
    existing_organization(opened, organization)
    return opened


def parameters_of(*values: str) -> dict[str, str]:
    """The values of these options, in the order in which they stand above, as the parameters of the API.

    Warns of a day without its other end, which has no effect.
    """
    names = ("range", "start_date", "end_date", "short_code", "target_url", "domain", "traffic_type")
    parameters = dict(zip(names, values, strict=True))
    for given, missing in (("start", "end"), ("end", "start")):
        if parameters[f"{given}_date"] and not parameters[f"{missing}_date"]:
            typer.echo(f"--{given}-date has no effect without --{missing}-date.", err=True)
    return parameters
