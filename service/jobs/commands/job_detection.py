"""`traffic jobs detect`: runs the detectors, or explains their criteria and near misses."""

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import TrafficError
from data.text import plural
from service.core.commands.answers import print_answer
from service.core.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, day_of
from service.core.commands.printing import inform, printable
from service.jobs.commands.opening import opened_detection

if TYPE_CHECKING:
    from queries import Detector, Engine, Snapshot

_MOMENTS: Final = ("first_seen", "last_seen")
_MAX_FOUND: Final = 100
"""Maximum number of subjects that the SQL of a detector returns."""


def detect(
    organization: OrganizationOption,
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="print what was found, and change no job")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="print what each detector looks for and nearly found, and change no job")
    ] = False,
    as_of: Annotated[str, typer.Option(help="the day after the 28 days to examine, YYYY-MM-DD; default: today")] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Run the detectors over the last 28 complete days, and make or refresh jobs. The server does it once a day.

    Example: traffic jobs detect --org acme --dry-run
    """
    from queries import DETECTORS, days_before, share_detected

    now, must_write = datetime.now(UTC), not (is_dry_run or explain)
    with opened_detection(lake, organization, must_write) as detection:
        day = day_of("--as-of", as_of) if as_of else detection.lake.manifest.organizations.today(organization, now)
        first, last = days_before(day)
        if unjudged := sum(
            first <= one <= last for one in detection.lake.manifest.statistics.stored_span(organization).unjudged
        ):
            inform(f"Not judged yet, so left out: {plural(unjudged, 'day')}; run `traffic compact`.")
        shared = None if must_write else share_detected(detection.engine, organization, day)
        if explain:
            for detector in DETECTORS.values():
                typer.echo(_explanation(detection.engine, detector, organization, day, shared))
            return
        if is_dry_run:
            findings = [finding for one in DETECTORS.values() for finding in detection.find(one, day, shared)]
            rows = [{"type": finding.type, "weight": finding.weight, **finding.subject} for finding in findings]
            columns = dict.fromkeys(name for row in rows for name in row)
            nothing = f"The detectors found nothing from {first} to {last}; --explain shows near misses."
            print_answer([{name: row.get(name) for name in columns} for row in rows], "table", nothing=nothing)
            return
        runs = detection.update_jobs(day, now)
    counts = ("created", "refreshed", "reopened", "ignored")
    rows = [{"type": run.type, **{name: run.results[name] for name in counts}, "error": run.error} for run in runs]
    print_answer(rows, "table")
    if any(run.error for run in runs):
        raise TrafficError("some detectors did not run; their jobs are unchanged.")


def _explanation(
    engine: "Engine", detector: "Detector", organization: str, day: date, shared: "Snapshot | None"
) -> str:
    """Print the criteria of a detector, how many subjects it found and considered, and the heaviest near miss."""
    from queries import days_before, detect
    from service.jobs.findings import causes_of
    from service.jobs.texts import sanitized

    found = detect(engine, detector, organization, day, shared=shared)
    causes = causes_of(detector, found, days_before(day))
    considered = detect(engine, detector, organization, day, explain=True, shared=shared)
    subjects = [finding.subject for finding in found]
    below = next((finding.row for finding in considered if finding.subject not in subjects), None)
    candidates = f"{len(considered)} or more" if len(considered) >= _MAX_FOUND else str(len(considered))
    lines = [
        f"{detector.type}: {len(found)} found, {candidates} considered.",
        f"  It looks for: {detector.entry.description}",
    ]
    if len(causes) < len(found):
        largest = max(causes, key=lambda cause: len(cause.findings))
        named = detector.cause_of(largest.findings[0].subject).items()
        shared_by = ", ".join(f"{name} {sanitized(value) or 'unknown'}" for name, value in named)
        lines.append(
            f"  Grouped into {plural(len(causes), 'cause')}, each of which is one job; the largest has "
            f"{len(largest.findings)}: {printable(shared_by)}"
        )
    if len(found) >= _MAX_FOUND:
        lines.append(f"  {_MAX_FOUND} is the most that are found: they probably share a cause that is not known here.")
    if below:
        texts = ", ".join(f"{name} {sanitized(value)}" for name, value in below.items() if name not in _MOMENTS)
        lines.append(f"  The heaviest that was not found: {printable(texts)}")
    return "\n".join(lines)
