"""`traffic keys`: API keys, made once, shown once, revocable."""

from typing import Annotated

import typer

from data import Lake
from service.api_keys import ApiKeys
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption
from service.commands.printing import console, printable

app = typer.Typer(help="Make, list and revoke API keys.", rich_markup_mode=None)


@app.command()
def create(
    organization: OrganizationOption,
    name: Annotated[str, typer.Option(help="what the key is for, to tell it from others")],
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Make a key and print it: the only time it can be seen.

    Example: traffic keys create --org acme --name dashboard
    """
    key = ApiKeys(Lake(lake, create=True)).create_key(organization, name)
    typer.echo(f"A key of {organization}. It is shown this once; send it as Authorization: Bearer <key>.", err=True)
    typer.echo(key)


@app.command("list")
def list_keys(lake: LakeOption = DEFAULT_LAKE) -> None:
    """List every key by its first characters.

    Example: traffic keys list
    """
    from rich.table import Table

    table = Table("id", "organization", "name", "created at", "created by", "last used at", "revoked at", box=None)
    for key in ApiKeys(Lake(lake, create=True)).all_keys():
        created_by = printable(key.created_by or "")
        cells = (key.id, key.organization, key.name, key.created_at, created_by, key.last_used_at, key.revoked_at)
        table.add_row(*(cell or "" for cell in cells))
    console().print(table)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="the key's id, as `traffic keys list` shows it")],
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Revoke a key: a running server refuses it within five seconds.

    Example: traffic keys revoke tak_3fJ9xQ2b
    """
    ApiKeys(Lake(lake, create=True)).revoke_key(key_id)
    typer.echo(f"{key_id} is revoked.", err=True)
