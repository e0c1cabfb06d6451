"""`traffic sign-in`: prints a one-time link that signs a browser in to the dashboard."""

import os
from typing import Annotated

import typer

from data import Lake
from service.core.commands.options import (
    DEFAULT_LAKE,
    LakeOption,
    OrganizationOption,
    created_lake,
    existing_organization,
    flag,
)
from service.core.commands.printing import inform
from service.core.settings import read_settings, setting


def sign_in(
    organization: OrganizationOption,
    role: Annotated[str, typer.Option(help="editor or viewer")] = "editor",
    days: Annotated[int, typer.Option(help="days after which the browser is signed out, 1 to 366")] = 30,
    host: Annotated[str, flag("host")] = setting("host").default,
    port: Annotated[str, flag("port")] = setting("port").default,
    base_path: Annotated[str, flag("base_path")] = setting("base_path").default,
    is_new: Annotated[bool, typer.Option("--new", help="allow a new organization; create a missing lake")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Print a link that signs a browser in to an organization's dashboard. It works once, within ten minutes.

    The server's address is TRAFFIC_PUBLIC_URL or, if that is not set, --host and --port.

    Example: traffic sign-in --org acme --role viewer
    """
    from service.access.sessions import SessionStore, enter_url
    from service.core.control_database import ControlDatabase

    settings = read_settings(os.environ, host=host, port=port, base_path=base_path, lake=str(lake))
    if is_new:
        opened = created_lake(lake)
    else:
        existing_organization(opened := Lake(lake), organization)
    code = SessionStore(ControlDatabase(opened)).create_link(organization, role, days)
    inform(f"Dashboard for {organization}, as {role}. The link works once, within ten minutes:")
    typer.echo(enter_url(settings, code))
