"""`traffic jobs`: finds and shows jobs. Decisions are made on the pages or through the API; the server measures
outcomes.
"""

from datetime import date, datetime, timedelta
from typing import Annotated, Final

import typer

from data import BadInput, check_organization
from service.core.commands.answers import check_format, print_answer
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption
from service.core.commands.printing import inform, progress_bar
from service.jobs.commands.job_detection import detect
from service.jobs.commands.opening import JobArgument, opened_detection, opened_jobs
from service.jobs.states import STATUSES

_FORMATS: Final = ("table", "json", "csv")
_LISTED: Final = ("id", "status", "priority", "type", "title", "path", "outcome_status", "updated_at")
"""The columns of the table."""

app = typer.Typer(help="Find and show jobs: problems that the traffic shows.", rich_markup_mode=None)


@app.command("list")
def list_jobs(
    organization: OrganizationOption,
    status: Annotated[str, typer.Option(help=f"only jobs with this status: {', '.join(STATUSES)}")] = "",
    output: Annotated[str, typer.Option("--format", help="table, json or csv")] = "table",
    wide: Annotated[bool, typer.Option("--wide", help="print the whole table, however wide it is")] = False,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """List the jobs of an organization, newest first. json and csv have all columns of GET /jobs.

    Example: traffic jobs list --org acme --status new
    """
    from service.jobs.records import JobRow

    check_organization(organization)
    if status and status not in STATUSES:
        raise BadInput(f"--status is {status!r}; use {', '.join(STATUSES)}.")
    check_format(output, _FORMATS)
    with opened_jobs(lake) as jobs:
        rows = [row for row in jobs.of(organization) if status in ("", row.status)]
    shown = _LISTED if output == "table" else JobRow.__struct_fields__
    nothing = f"{organization} has no jobs{f' that are {status}' if status else ''}."
    print_answer([{name: getattr(row, name) for name in shown} for row in rows], output, wide, nothing=nothing)


@app.command()
def show(
    job_id: JobArgument,
    output: Annotated[str, typer.Option("--format", help="table or json")] = "table",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Show a job with its evidence, possible actions, implementation, outcome and history.

    Example: traffic jobs show job_0123456789abcdef0123
    """
    from msgspec import to_builtins

    check_format(output, _FORMATS[:2])
    with opened_jobs(lake) as jobs:
        record = to_builtins(jobs.record(jobs.organization_of(job_id), job_id), builtin_types=(datetime, date))
    if output == "json":
        print_answer(record, output)
        return
    evidence, implementation = record.pop("evidence"), record.pop("implementation")
    lists = {name: record.pop(name) for name in ("actions", "outcome", "history", "deliveries")}
    print_answer([{"field": name, "value": value} for name, value in record.items()], "table", is_wide=True)
    members = {"evidence": evidence and evidence["rows"], "implementation": implementation, **lists}
    for name, member in members.items():
        if member:
            typer.echo(f"\n{name}")
            rows = [dict(row) for row in (member if isinstance(member, list) else [member])]
            for row in rows:  # print a nested object as its members
                nested = {key: value.items() for key, value in row.items() if isinstance(value, dict)}
                row |= {key: " ".join(f"{name}={value}" for name, value in pairs) for key, pairs in nested.items()}
            print_answer(rows, "table", is_wide=True)


app.command()(detect)


@app.command()
def replay(job_id: JobArgument, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Rerun the query that found a job, over the same days, and print its numbers then and now side by side.

    Example: traffic jobs replay job_0123456789abcdef0123
    """
    from data.rules.lake_tables import rules_version
    from queries import DETECTORS, days_before, detect
    from service.jobs.findings import causes_of, evidence_of

    with opened_jobs(lake) as jobs:
        organization = jobs.organization_of(job_id)
        evidence = jobs.record(organization, job_id).evidence
    detectors = [one for one in DETECTORS.values() if evidence and one.entry.name == evidence.template]
    if evidence is None or not detectors or not evidence.rows:
        raise BadInput(
            f"the job {job_id} has no evidence to replay: it was planned or written by hand, is about a "
            "silent source, lost its visits to an erasure, or had a row that was too long to keep."
        )
    as_of = evidence.scope.end_date + timedelta(days=1)
    subject, days, again = detectors[0].subject, days_before(as_of), []
    with opened_detection(lake, organization) as detection:
        for one in detectors:
            findings = detect(detection.engine, one, organization, as_of)
            again += [evidence_of(cause, job_id) for cause in causes_of(one, findings, days)]
    rows = {tuple(row[name] for name in subject): row for found_again in again for row in found_again.rows}
    shown, gone = [], 0
    for number, then in enumerate(evidence.rows, 1):
        now = rows.get(tuple(then[name] for name in subject), {})
        gone += not now
        numbered = {"subject": number} if len(evidence.rows) > 1 else {}
        shown += [{**numbered, "column": name, "then": value, "now": now.get(name)} for name, value in then.items()]
    print_answer(shown, "table", True)
    notes = [f"Both columns cover {days[0]} to {days[1]}."]
    if gone:
        which = "it" if len(evidence.rows) == 1 else f"{gone} of the {len(evidence.rows)} subjects"
        notes.append(f"The query no longer finds {which} in this period.")
    if evidence.rules_version != rules_version():
        notes.append("The classification rules have changed since.")
    if again and again[0].sql_sha256 != evidence.sql_sha256:
        notes.append("The query has changed since.")
    inform(" ".join(notes))


@app.command("placebo")
def judge_untouched(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Estimate how often outcomes are wrong: untouched findings are judged as if repaired on made-up days.

    Nothing was done on those days, so "improved", "worse" and "shipped_by_log" are false alarms. The estimate needs 8
    weeks of visits, and may take minutes.

    Example: traffic jobs placebo --org acme
    """
    from service.jobs.placebo import SHIPPED, placebo

    with opened_detection(lake, organization) as detection, progress_bar("Judging") as progress:
        found = placebo(detection, progress)
    statuses = ("improved", "worse", "unchanged", "not_measurable")
    rows = [{"type": kind, "tried": counts.total() - counts[SHIPPED],
             **{name: counts[name] for name in (*statuses, SHIPPED)}}
            for kind, counts in found.items() if counts]  # fmt: skip
    nothing = f"{organization} does not have 8 weeks of visits in which anything was found."
    print_answer(rows, "table", nothing=nothing)
