"""`traffic links`: imports and lists the target URLs of short codes."""

import csv
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from data import Lake, check_organization
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption
from service.commands.printing import plural

app = typer.Typer(help="Import and list the target URLs of short codes.", rich_markup_mode=None)


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(help="CSV with the columns short_code, target_url and optionally domain, created_at")
    ],
    organization: OrganizationOption,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Replace all links of an organization with those in a CSV file.

    Example: traffic links import links.csv --org acme
    """
    from data.store.links import import_links

    count = import_links(Lake(lake, create=True), organization, file, datetime.now(UTC))
    typer.echo(f"{organization} now has {plural(count, 'link')}.", err=True)


@app.command("list")
def list_links(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Print the links of an organization as CSV, in the format of `traffic links import`.

    Example: traffic links list --org acme > links.csv
    """
    from data.store.links import COLUMNS, links_of

    links = links_of(Lake(lake, create=True), check_organization(organization))
    writer = csv.writer(sys.stdout)
    writer.writerow(COLUMNS)
    for link in links:
        writer.writerow((link.short_code, link.domain, link.target_url, f"{link.created_at.isoformat()}Z"))
