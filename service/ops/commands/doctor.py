"""`traffic doctor`: checks an installation, and suggests how to fix it."""

import os
from datetime import UTC, datetime

import typer

from service.core.commands.options import DEFAULT_LAKE, LakeOption
from service.core.commands.printing import pasteable, printable
from service.core.settings import setting


def doctor(lake: LakeOption = DEFAULT_LAKE) -> None:
    """Check settings, disk, files, clock, agents, keys, a first answer and the cluster: one line each, with a remedy.

    The output ends with the background tasks of a running server and their intervals.

    Run it as the service's user and in the service's environment. The exit code is 1 if something is broken; warnings
    leave it at 0.

    Example: traffic doctor --lake /srv/traffic
    """
    from service.ops.doctor import examine
    from service.ops.maintenance import TASKS

    is_broken = False
    for check in examine({**os.environ, setting("lake").variable: str(lake)}, datetime.now(UTC)):
        typer.echo(f"{check.level:7}  {check.subject:12}  {pasteable(printable(check.text))}")
        is_broken |= check.level == "broken"
    typer.echo("\nBackground tasks of a running server:")
    for task in TASKS:
        every = f"{task.every} s" if task.every < 60 else f"{task.every // 60} min"
        typer.echo(f"{every:7}  {task.name:15}  {task.what}")
    if is_broken:
        raise typer.Exit(1)
