"""`traffic publish`: publishes visits where other engines can read them."""

from typing import Annotated

import typer

from data import BadInput, Lake
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OnlyOrganizationOption, chosen_organizations
from service.core.commands.printing import inform, printable
from service.core.settings import setting

_TARGET = setting("publish")


def publish(
    target: Annotated[str, typer.Argument(envvar=_TARGET.variable, help=_TARGET.meaning)] = "",
    organization: OnlyOrganizationOption = "",
    forget: Annotated[bool, typer.Option("--forget", help="stop publishing there, without deleting anything")] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="read every object there; upload the log again, and missing or changed objects"),
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Publish every live visit file and link file to a folder or a bucket, as two Delta tables for each organization.

    Existing objects are not uploaded again. A server with TRAFFIC_PUBLISH does this itself, within a minute. Erasures
    and retention apply to published copies until you --forget them. A bucket's credentials, region and endpoint come
    from the usual AWS variables.

    Example: traffic publish s3://bucket/traffic
    """
    from rich.filesize import decimal

    from data.publish.publisher import LakePublisher, follow_erasures
    from service.ops.commands.erase import report_due

    name = _TARGET.read(target)
    if not name:
        raise BadInput(f"name a folder or a bucket like s3://bucket/prefix, or set {_TARGET.variable}.")
    opened = Lake(lake)
    if forget:
        copies = opened.manifest.copies.forget(name)
        inform(f"{plural(copies, 'organization')} no longer published to {name}; delete the copies there yourself.")
        return
    publisher = LakePublisher(opened, name)
    for one in chosen_organizations(opened, organization):
        if publication := publisher.publish(one, again=again):
            _, files, size, removed, version = publication
            added = f"{plural(files, 'file')} ({decimal(size)}) added, {removed:,} removed"
            change = added if files + removed else "no change"
            typer.echo(printable(f"{one}: {change}; the visits table has version {version:,}"))
    report_due(follow_erasures(opened, organization))
