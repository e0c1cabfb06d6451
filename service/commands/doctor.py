"""`traffic doctor`: checks an installation and says how to mend it."""

import os
from datetime import UTC, datetime

import typer

from service.commands.options import DEFAULT_LAKE, LakeOption
from service.commands.printing import printable
from service.settings import setting


def doctor(lake: LakeOption = DEFAULT_LAKE) -> None:
    """Check settings, disk, files, clock, IP lists and API keys, and time a first answer: a line each, with a remedy.

    Run it as the user of the service and with its environment. The exit code is 1 if something is broken; warnings
    leave it at 0.

    Example: traffic doctor --lake /srv/traffic
    """
    from service.doctor import examine

    is_broken = False
    for check in examine({**os.environ, setting("lake").variable: str(lake)}, datetime.now(UTC)):
        typer.echo(f"{check.level:7}  {check.subject:12}  {printable(check.text)}")
        is_broken |= check.level == "broken"
    if is_broken:
        raise typer.Exit(1)
