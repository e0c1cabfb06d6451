"""`traffic jobs detect`: runs the detectors, or explains their criteria and near misses."""

from collections import Counter
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
"""Maximum number of subjects that a detector's SQL returns."""


def detect(
    organization: OrganizationOption,
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="print what was found, but change no job")] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="print what each detector looks for, groups and leaves out, but change no job"),
    ] = False,
    as_of: Annotated[str, typer.Option(help="the day after the 28 days to examine, YYYY-MM-DD; default: today")] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Run the detectors over the last 28 complete days, and create or refresh jobs. The server does this once a day.

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
        raise TrafficError("some detectors failed; their jobs are unchanged.")


def _explanation(
    engine: "Engine", detector: "Detector", organization: str, day: date, shared: "Snapshot | None"
) -> str:
    """Return a text with a detector's criteria, the causes that it found, and the subjects left out, with reasons."""
    from queries import days_before, detect, left_out
    from service.jobs.findings import causes_of
    from service.jobs.texts import sanitized

    found = detect(engine, detector, organization, day, shared=shared)
    causes = causes_of(detector, found, days_before(day))
    left = left_out(engine, detector, organization, day, shared)
    considered = len(found) + len(left)
    lines = [
        f"{detector.type}: {len(found)} found, {considered}{' or more' * (considered >= _MAX_FOUND)} considered.",
        f"  It looks for: {detector.entry.description}",
        f"  Findings with the same {' and '.join(detector.cause)} are one job."
        if detector.cause
        else "  Each finding is one job.",
    ]
    for cause in causes:
        named = detector.cause_of(cause.findings[0].subject).items()
        texts = ", ".join(f"{name} {sanitized(value) or 'unknown'}" for name, value in named)
        lines.append(f"  Found: {printable(texts)} ({plural(len(cause.findings), 'finding')})")
    if len(found) >= _MAX_FOUND:
        lines.append(f"  The search stopped at {_MAX_FOUND} findings: so many probably share one cause.")
    for reason, number in Counter(reason for _, reason in left).most_common():
        lines.append(f"  Left out: {number}: {reason}")
    if left:
        row = left[0][0].row.items()
        texts = ", ".join(f"{name} {sanitized(value)}" for name, value in row if name not in _MOMENTS)
        lines.append(f"  The heaviest subject left out ({left[0][1]}): {printable(texts)}")
    return "\n".join(lines)
