"""`traffic zone`: sets or shows an organization's time zone, which determines the days and hours in its answers."""

from typing import Annotated

import typer

from data import Lake
from data.local_time import check_zone
from data.visits import check_organization
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, created_lake
from service.core.commands.printing import inform

app = typer.Typer(help="Show or set the time zone of an organization.", rich_markup_mode=None)


@app.command("set")
def set_zone(
    zone: Annotated[str, typer.Argument(help="a name from the tz database, such as Europe/Berlin")],
    organization: OrganizationOption,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Set an organization's time zone, before its first visit. It determines the organization's days, hours and weeks.

    Example: traffic zone set Europe/Berlin --org acme
    """
    check_organization(organization)
    check_zone(zone)
    opened = created_lake(lake)
    with opened.import_lock():  # wait for a running import, which has already read the zone
        opened.manifest.organizations.set_zone(organization, zone)
    inform(f"The days of {organization} follow {zone}.")


@app.command("show")
def show_zone(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Print an organization's time zone, which is UTC if none was set.

    Example: traffic zone show --org acme
    """
    check_organization(organization)
    typer.echo(Lake(lake, must_write=False).manifest.organizations.zone(organization))
