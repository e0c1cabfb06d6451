"""`traffic report`: the overview as one HTML file that opens without a network, or as text for a mail."""

import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated

import typer

from service.commands.answers import check_format
from service.commands.filters import (
    DomainOption,
    EndOption,
    RangeOption,
    ShortCodeOption,
    StartOption,
    TargetOption,
    open_lake,
    parameters_of,
)
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption

FORMATS = ("html", "text")


def report(
    organization: OrganizationOption,
    days: RangeOption = "",
    start_date: StartOption = "",
    end_date: EndOption = "",
    short_code: ShortCodeOption = "",
    target_url: TargetOption = "",
    domain: DomainOption = "",
    output: Annotated[str, typer.Option("--format", help="html or text")] = "html",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print a report: the dashboard's overview as one HTML file that loads nothing, or as text for a mail.

    Example: traffic report --org acme --range 30d > report.html
    """
    from queries import Warehouse
    from service.pages.numbers.report import Report

    check_format(output, FORMATS)
    opened, now = open_lake(lake, organization), datetime.now(UTC)
    parameters = parameters_of(days, start_date, end_date, short_code, target_url, domain, "")
    with closing(Warehouse(opened)) as warehouse:
        made = Report.load(opened, warehouse, organization, parameters, opened.manifest.today(organization, now))
    text = made.html(now) if output == "html" else made.text()
    sys.stdout.buffer.write(text.encode())  # as it is, while typer.echo drops what colours a terminal
