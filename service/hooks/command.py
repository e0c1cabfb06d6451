"""`traffic hooks`: lists Agent Hooks. The pages and the API create, test and delete them, and rotate their secrets."""

from datetime import datetime

import typer

from service.core.clock import to_text
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption
from service.core.commands.printing import inform, print_rows

app = typer.Typer(help="List Agent Hooks, which get signed messages about jobs.", rich_markup_mode=None)


@app.callback()
def hooks() -> None:
    """Keep `list` a subcommand: without this callback, typer would turn it into the whole command."""


@app.command("list")
def list_hooks(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """List the hooks of an organization. Create hooks in Settings > Agent Hooks or with POST /agent-hooks.

    Example: traffic hooks list --org acme
    """
    from service.core.control_database import opened_control
    from service.hooks.registry import Hooks

    with opened_control(lake) as control:
        found = Hooks(control).of(organization)
    if not found:
        inform(f"{organization} has no hooks; create one in Settings > Agent Hooks or with POST /agent-hooks.")
        return
    cells = []
    for one in found:
        state = "yes" if one.active else f"no. {one.disabled_reason or ''}".strip()
        state = f"paused until {_time(one.paused_until)}" if one.paused_until else state
        times = _time(one.last_success_at), _time(one.last_failure_at)
        cells.append((one.id, one.name, one.url, ", ".join(one.events), state, *times, str(one.consecutive_failures)))
    print_rows(("id", "name", "URL", "events", "active", "last success", "last failure", "failures"), cells)


def _time(moment: datetime | None) -> str:
    return to_text(moment) if moment else ""


COMMANDS = {"hooks": app}
