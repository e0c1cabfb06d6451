"""`traffic report`: the overview as one HTML file that opens without a network, or as text for an email."""

import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated

import typer

from service.core.commands.answers import check_format
from service.core.commands.filters import WithParameters
from service.core.commands.options import DEFAULT_LAKE, CommandRow, LakeOption, OrganizationOption, open_lake


class ReportCommand(WithParameters):
    """A command without --traffic-type, since the overview's numbers cover every traffic type."""

    left_out = ("traffic_type",)


def report(
    organization: OrganizationOption,
    context: typer.Context,
    output: Annotated[str, typer.Option("--format", help="html or text")] = "html",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print a report: the dashboard's overview as one HTML file that loads nothing, or as text for an email.

    Example: traffic report --org acme --range 30d > report.html
    """
    from queries import Warehouse
    from service.dashboard.report import Report

    check_format(output, ("html", "text"))
    opened, now = open_lake(lake, organization), datetime.now(UTC)
    with closing(Warehouse(opened)) as warehouse:
        made = Report.load(
            opened, warehouse, organization, context.obj, opened.manifest.organizations.today(organization, now)
        )
    text = made.html(now) if output == "html" else made.text()
    sys.stdout.buffer.write(text.encode())  # unchanged: typer.echo would strip colour codes


COMMANDS = {"report": CommandRow(report, ReportCommand)}
