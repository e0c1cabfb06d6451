"""`traffic retain`: deletes visits that are older than the retention period."""

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from data import BadInput, Lake
from data.text import plural
from service.core.commands.confirmation import ask, check_can_ask
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OnlyOrganizationOption, existing_organization
from service.core.commands.printing import inform, print_rows
from service.core.control_database import ControlDatabase
from service.core.settings import setting
from service.ops.commands.erase import finish, report_due

if TYPE_CHECKING:
    from data.tasks.retention import RetentionResult
    from service.jobs.erasure import ErasedEvidence

_DAYS = setting("retention_days")


def retain(
    days: Annotated[
        str, typer.Option(envvar=_DAYS.variable, help="days after which visits are deleted")
    ] = _DAYS.default,
    organization: OnlyOrganizationOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would be deleted, but change nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="delete without asking")] = False,
    trust_clock: Annotated[
        bool, typer.Option("--trust-clock", help="with --yes: delete even if the clock may be ahead")
    ] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Delete visits older than a number of days, after showing how many there are.

    The evidence for jobs about these days is deleted with the visits.

    A server with TRAFFIC_RETENTION_DAYS does this without asking. If the clock is more than a day ahead of both the
    newest visit and the last run, it may be wrong: the command warns, and --yes alone is not enough.

    Example: traffic retain --days 400 --dry-run
    """
    from data.publish.publisher import follow_erasures
    from data.tasks.retention import apply_retention, clock_problem
    from service.jobs.erasure import expire_evidence

    retention_days = _DAYS.read(days.strip())
    if retention_days is None:
        raise BadInput(f"set the number of days with --days or {_DAYS.variable}.")
    check_can_ask(yes, dry_run)
    opened = Lake(lake, must_write=not dry_run)
    if organization:
        existing_organization(opened, organization)
    now = datetime.now(UTC)
    if (problem := clock_problem(opened, now)) and not trust_clock:
        if yes and not dry_run:
            raise BadInput(f"{problem}; nothing is deleted. If the date is right, add --trust-clock.")
        inform(f"{problem[0].upper()}{problem[1:]}. Is the date right?")
    with closing(ControlDatabase(opened)) as control:
        if dry_run or not yes:
            planned = apply_retention(opened, retention_days, now, dry_run=True, organization=organization)
            _print(planned, "would be")
            evidence = expire_evidence(control, planned.before, now, organization=organization, dry_run=True)
            _print_evidence(evidence, "would be")
            if dry_run:
                return
            if planned.ended or evidence.jobs:
                ask("Delete them? This cannot be undone.")
        retained = apply_retention(opened, retention_days, now, organization=organization)
        evidence = expire_evidence(control, retained.before, now, organization=organization)
    followed = follow_erasures(opened, organization)
    finish(opened, retained.dead, datetime.now(UTC))
    _print(retained, "are", is_table_shown=yes)
    _print_evidence(evidence, "is")
    report_due(followed)


def _print(result: "RetentionResult", verb: str, is_table_shown: bool = True) -> None:
    """Print a table of the deleted visits to stdout, and the total to stderr."""
    if result.ended and is_table_shown:
        rows = [(ended.organization, *(f"{number:,}" for number in ended[1:])) for ended in result.ended]
        print_rows(("organization", "days", "visits", "files"), rows)
    visits = plural(sum(ended.visits for ended in result.ended), "visit")
    organizations = plural(len(result.ended), "organization")
    inform(f"{visits} of {organizations}, all before {result.before}, {verb} deleted.")


def _print_evidence(evidence: "ErasedEvidence", verb: str) -> None:
    if evidence.jobs:
        inform(f"The evidence for {plural(evidence.jobs, 'job')} about such days {verb} deleted, too.")
