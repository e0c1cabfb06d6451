"""`traffic keys`: creates, lists and revokes API keys."""

from typing import Annotated, Final

import typer

from data import Lake
from service.access.api_keys import ApiKeys
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, created_lake
from service.core.commands.printing import inform, print_rows
from service.core.control_database import ControlDatabase, opened_control

MAX_NAMED: Final = 5
"""Maximum number of organizations that a hint names."""
app = typer.Typer(help="Create, list and revoke API keys.", rich_markup_mode=None)


@app.command()
def create(
    organization: OrganizationOption,
    name: Annotated[str, typer.Option(help="what the key is for")],
    expires_at: Annotated[
        str,
        typer.Option(help="expiry: the last day of validity (UTC), such as 2027-01-31, or a time; default: never"),
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Create an API key and print it. It cannot be shown again.

    Example: traffic keys create --org acme --name dashboard
    """
    opened = created_lake(lake)
    key = ApiKeys(ControlDatabase(opened)).create_key(organization, name, None, expires_at)
    others = opened.manifest.organizations.names()
    if others and organization not in others:
        inform(f"{organization} has no visits yet; the lake has visits for {', '.join(others[:MAX_NAMED])}.")
    inform(f"API key for {organization}. It is shown only once; send it as Authorization: Bearer <key>.")
    typer.echo(key)


@app.command("list")
def list_keys(lake: LakeOption = DEFAULT_LAKE) -> None:
    """List all API keys. A key's id is its first characters.

    Example: traffic keys list
    """
    with opened_control(lake) as control:
        keys = ApiKeys(control).all_keys()
    if not keys:
        inform("No API keys yet; create one with `traffic keys create --org ORGANIZATION --name NAME`.")
        return
    names = "id", "organization", "name", "created_at", "created_by", "last_used_at", "expires_at", "revoked_at"
    rows = [[getattr(key, name) or "" for name in names] for key in keys]
    print_rows([name.replace("_", " ") for name in names], rows)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="the key's id, as `traffic keys list` shows it")],
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Revoke an API key. A running server rejects it within five seconds.

    Example: traffic keys revoke tak_3fJ9xQ2b
    """
    ApiKeys(ControlDatabase(Lake(lake))).revoke_key(key_id)
    inform(f"{key_id} is revoked.")
