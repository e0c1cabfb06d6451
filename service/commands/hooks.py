"""`traffic hooks`: creates, lists and tests Agent Hooks, and shows what was delivered to them."""

import os
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from data import Lake
from service.clock import to_text
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, created_lake
from service.commands.printing import inform, print_rows
from service.settings import read_settings

if TYPE_CHECKING:
    from service.hooks.registry import Hooks

app = typer.Typer(help="Create, list and test Agent Hooks, which are sent signed jobs.", rich_markup_mode=None)

HookArgument = Annotated[str, typer.Argument(metavar="HOOK", help="the hook's id, as `traffic hooks list` shows it")]


@app.command()
def create(
    organization: OrganizationOption,
    name: Annotated[str, typer.Option(help="what the hook is for")],
    url: Annotated[str, typer.Option(help="where messages are sent: an https address")],
    event: Annotated[
        list[str] | None, typer.Option(help="what is sent, such as job.created; may be repeated; default: job.approved")
    ] = None,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Create a hook and print its secret, with which receivers verify messages. It cannot be shown again.

    Example: traffic hooks create --org acme --name agent --url https://automation.example/traffic
    """
    from service.hooks.records import DEFAULT_EVENTS

    hook, secret = _hooks(created_lake(lake)).create(organization, name, url, event or DEFAULT_EVENTS)
    events = ", ".join(hook.events)
    inform(f"{hook.id} of {organization} receives {events}. Its secret is shown only once:")
    typer.echo(secret)


@app.command("list")
def list_hooks(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """List the hooks of an organization.

    Example: traffic hooks list --org acme
    """
    hooks = _hooks(Lake(lake)).of(organization)
    if not hooks:
        inform(f"{organization} has no hooks; `traffic hooks create` makes one.")
        return
    cells = []
    for one in hooks:
        state = "yes" if one.active else f"no. {one.disabled_reason or ''}".strip()
        state = f"paused until {_time(one.paused_until)}" if one.paused_until else state
        times = _time(one.last_success_at), _time(one.last_failure_at)
        cells.append((one.id, one.name, one.url, ", ".join(one.events), state, *times, str(one.consecutive_failures)))
    print_rows(("id", "name", "URL", "events", "active", "last success", "last failure", "failures"), cells)


@app.command("test")
def send_test(hook: HookArgument, organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Send a made-up job to a hook. A running server sends it; `traffic hooks deliveries` shows the outcome.

    Example: traffic hooks test hook_3f2a9c0d1e4b5a6f7081 --org acme
    """
    delivery = _hooks(Lake(lake)).send_test(organization, hook)
    inform("The test is in the outbox; a running server sends it within seconds.")
    typer.echo(delivery)


@app.command()
def deliveries(hook: HookArgument, organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """List the newest messages to a hook, with the outcome of their last attempt.

    Example: traffic hooks deliveries hook_3f2a9c0d1e4b5a6f7081 --org acme
    """
    messages = _hooks(Lake(lake)).deliveries(organization, hook)
    if not messages:
        inform(f"Nothing was sent to {hook} yet; `traffic hooks test` sends a made-up job.")
        return
    cells = []
    for one in messages:
        answer = one.error or str(one.status_code or "")
        times = _time(one.created_at), _time(one.next_attempt_at)
        ms = "" if one.ms is None else str(one.ms)
        cells.append((one.id, one.event, one.job_id or "", one.status, str(one.attempts), answer, ms, *times))
    print_rows(("id", "event", "job", "status", "attempts", "answer", "ms", "created", "next attempt"), cells)


@app.command()
def replay(
    hook: HookArgument,
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="its id, as `traffic hooks deliveries` shows it")],
    organization: OrganizationOption,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Send a message again, with the same id and the same bytes.

    Example: traffic hooks replay hook_3f2a9c0d1e4b5a6f7081 evt_0a1b2c3d4e5f60718293 --org acme
    """
    _hooks(Lake(lake)).replay(organization, hook, delivery)
    inform(f"{delivery} is in the outbox again; a running server sends it within seconds.")


@app.command()
def rotate(hook: HookArgument, organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Make a new secret and print it. For 24 hours, messages are signed with the old one, too.

    Example: traffic hooks rotate hook_3f2a9c0d1e4b5a6f7081 --org acme
    """
    _, secret = _hooks(Lake(lake)).rotate(organization, hook)
    inform(f"The new secret of {hook}, shown only once. The old one is valid for 24 hours.")
    typer.echo(secret)


def _hooks(lake: Lake) -> "Hooks":
    from service.control_database import ControlDatabase
    from service.hooks.registry import Hooks

    settings = read_settings(os.environ)
    return Hooks(ControlDatabase(lake), settings.hook_networks, settings.public_url)


def _time(moment: datetime | None) -> str:
    return to_text(moment) if moment else ""
