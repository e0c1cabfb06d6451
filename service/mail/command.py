"""`traffic mail`: sends the report of the last complete week, even if a server has sent it already."""

import os
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated

import typer

from data import BadInput
from service.core.commands.options import DEFAULT_LAKE, CommandRow, LakeOption, OrganizationOption, open_lake
from service.core.commands.printing import inform
from service.core.settings import read_settings


def mail(
    organization: OrganizationOption,
    to: Annotated[str, typer.Option(help="addresses, separated by commas; default: TRAFFIC_MAIL_TO")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the headers and the text without sending the mail")
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Mail the report of the last complete week, Monday to Sunday, through TRAFFIC_SMTP.

    Example: traffic mail --org acme --to ops@acme.example
    """
    from queries import Warehouse
    from service.core.control_database import ControlDatabase
    from service.core.mail_settings import parse_addresses
    from service.mail.weekly import weekly_message
    from service.outgoing.mail import Mailer

    settings = read_settings(os.environ)
    recipients = parse_addresses(to) if to else settings.mail_to.get(organization, ())
    if not recipients:
        raise BadInput(f"no mail address for {organization}; give addresses with --to or in TRAFFIC_MAIL_TO.")
    if not settings.smtp and not dry_run:
        raise BadInput("no mail server is configured; set TRAFFIC_SMTP and TRAFFIC_MAIL_FROM.")
    opened, sender = open_lake(lake, organization), settings.mail_from or "traffic@localhost"
    with closing(Warehouse(opened)) as warehouse, closing(ControlDatabase(opened)) as control:
        message = weekly_message(
            opened, warehouse, control, organization, datetime.now(UTC), sender=sender, recipients=recipients
        )
    if dry_run or not settings.smtp:
        headers = "".join(f"{name}: {value}\n" for name, value in message.items())
        body = message.get_body(("plain",))
        sys.stdout.buffer.write(f"{headers}\n{body.get_content() if body else ''}".encode())
        return
    problems = Mailer(settings.smtp).send(message, sender, recipients)
    for problem in problems:
        inform(f"traffic: {problem}")
    if problems:
        raise typer.Exit(1)
    inform(f"Sent to {', '.join(recipients)}.")


COMMANDS = {"mail": CommandRow(mail)}
