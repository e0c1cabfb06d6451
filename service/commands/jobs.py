"""`traffic jobs`: lists and shows what should be done about the traffic, and notes what was decided."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from data import BadInput, Lake, check_organization
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption
from service.commands.printing import print_answer, printable
from service.jobs.checks import Approval
from service.jobs.records import COMMAND_LINE
from service.jobs.states import APPROVE_FIX, STATUSES
from service.jobs.store import Jobs

_FORMATS: Final = ("table", "json", "csv")
_LISTED: Final = ("id", "status", "priority", "type", "title", "outcome_status", "updated_at")
"""The columns of the table."""

app = typer.Typer(help="List, show and decide what should be done about the traffic.", rich_markup_mode=None)

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="the job's id, as `traffic jobs list` shows it")]
NoteOption = Annotated[str | None, typer.Option(help="why, for the job's history")]


@app.command("list")
def list_jobs(
    organization: OrganizationOption,
    status: Annotated[str, typer.Option(help=f"only jobs of this status: {', '.join(STATUSES)}")] = "",
    output: Annotated[str, typer.Option("--format", help="table, json or csv")] = "table",
    wide: Annotated[bool, typer.Option("--wide", help="print the table whole, however wide it is")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """List the jobs of an organization, newest first. json and csv have all columns of GET /jobs.

    Example: traffic jobs list --org acme --status new
    """
    check_organization(organization)
    if status and status not in STATUSES:
        raise BadInput(f"--status is {status!r}; use {', '.join(STATUSES)}.")
    if output not in _FORMATS:
        raise BadInput(f"{output!r} is not an output format; use {', '.join(_FORMATS)}.")
    with _opened(lake) as jobs:
        rows = [row for row in jobs.of(organization) if status in ("", row["status"])]
    if output == "table":
        rows = [{name: row[name] for name in _LISTED} for row in rows]
    print_answer(rows, output, wide)


@app.command()
def show(
    job_id: JobArgument,
    output: Annotated[str, typer.Option("--format", help="table or json")] = "table",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Show a job with its evidence, what may be done, its implementation, its outcome and its history.

    Example: traffic jobs show job_0123456789abcdef0123
    """
    if output not in _FORMATS[:2]:
        raise BadInput(f"{output!r} is not an output format; use {' or '.join(_FORMATS[:2])}.")
    with _opened(lake) as jobs:
        record = jobs.record(jobs.organization_of(job_id), job_id)
    if output == "json":
        print_answer(record, output)
    else:
        _print_record(record)


@app.command()
def approve(
    job_id: JobArgument,
    action_id: Annotated[str, typer.Option("--action", help="the action to approve")] = APPROVE_FIX,
    implementation_type: Annotated[
        str | None, typer.Option(help="patch, edge_page, manual or agent_hook; default: the job's own")
    ] = None,
    note: NoteOption = None,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Approve the action of a job.

    Example: traffic jobs approve job_0123456789abcdef0123 --note "as discussed"
    """
    _act(lake, job_id, action_id, note, Approval(implementation_type))


@app.command()
def dismiss(job_id: JobArgument, note: NoteOption = None, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Dismiss a job: nothing should be done about it, also if it is found again.

    Example: traffic jobs dismiss job_0123456789abcdef0123 --note "the page is gone for good"
    """
    _act(lake, job_id, "dismiss", note)


def _act(lake: Path, job_id: str, action_id: str, note: str | None, approval: Approval | None = None) -> None:
    with _opened(lake) as jobs:
        organization, now = jobs.organization_of(job_id), datetime.now(UTC)
        record = jobs.act(organization, job_id, action_id, COMMAND_LINE, now, note=note, approval=approval)
    typer.echo(f"{job_id} is {record['status']}: {printable(record['title'])}", err=True)


@contextmanager
def _opened(lake: Path) -> Iterator[Jobs]:
    opened = Lake(lake, create=True)
    with closing(opened.manifest), closing(Jobs(opened)) as jobs:
        yield jobs


def _print_record(record: dict[str, Any]) -> None:
    """Print a job as tables: its fields, then the lists under their names."""
    evidence, implementation = record.pop("evidence"), record.pop("implementation")
    lists = {name: record.pop(name) for name in ("actions", "outcome", "history")}
    print_answer([{"field": name, "value": value} for name, value in record.items()], "table", is_wide=True)
    members = {"evidence": evidence and evidence["rows"], "implementation": implementation, **lists}
    for name, member in members.items():
        if member:
            typer.echo(f"\n{name}")
            rows = member if isinstance(member, list) else [member]
            print_answer([{key: _plain(value) for key, value in row.items()} for row in rows], "table", is_wide=True)


def _plain(value: object) -> object:
    """The value of a cell; a nested object as its members."""
    return " ".join(f"{name}={member}" for name, member in value.items()) if isinstance(value, dict) else value
