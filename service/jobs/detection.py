"""Runs the detectors over the visits of an organization, and measures the outcomes of shipped jobs.

The server does it once a day, `traffic jobs` at will: both make the same jobs from the same visits, days and rules.
"""

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple

from data import Lake, TrafficError
from data.local_time import today
from data.maintenance.status import stored_span
from data.rules.tables import rules_version
from data.store.coverage import covered_days
from queries import (
    DETECTED_DAYS,
    DETECTORS,
    JOB_KINDS,
    Detector,
    Engine,
    Finding,
    JobKind,
    days_before,
    detect,
    measure_all,
    template,
)
from service.jobs.findings import DetectedSubject, fingerprint_of
from service.jobs.outcome import Dates, MeasuredOutcome, MeasureKind, outcome
from service.jobs.rates import DayCount, Period
from service.jobs.records import ShippedJob
from service.jobs.shipping import mark_shipped
from service.jobs.states import JobConflict, JobNotFound
from service.jobs.store import Jobs
from service.jobs.verdicts import outcome_record

_LOG: Final = logging.getLogger(__name__)


class DetectionRun(NamedTuple):
    """What one detector found, by the effect on jobs: created, refreshed, reopened or ignored."""

    type: str
    findings: list[Finding]
    results: Counter[str]
    error: str = ""  # why it could not run; then its jobs are left alone


class MeasureRun(NamedTuple):
    """What was measured of shipped jobs, by job, and the jobs that could not be measured."""

    outcomes: dict[str, MeasuredOutcome]
    failed: list[str]


def update_jobs(  # noqa: PLR0917
    engine: Engine,
    lake: Lake,
    jobs: Jobs,
    organization: str,
    as_of: date,
    now: datetime,
    cancelled: threading.Event | None = None,
) -> list[DetectionRun]:
    """Run every detector and make, refresh or reopen jobs; then dismiss those that were not found for long.

    A detector that fails does not stop the others. `cancelled` is that of `Engine.answer`.
    """
    runs, version = [], rules_version()
    for detector in DETECTORS.values():
        try:
            findings = find(engine, lake, detector, organization, as_of, cancelled)
        except TrafficError as error:
            runs.append(DetectionRun(detector.type, [], Counter(), str(error)))
            continue
        query = detector.entry.name
        subjects = [subject_of(detector, query, finding, days_before(as_of), version) for finding in findings]
        results = Counter(jobs.upsert(subject, now) for subject in subjects)
        runs.append(DetectionRun(detector.type, findings, results))
    jobs.dismiss_gone(organization, [run.type for run in runs if not run.error], now)
    return runs


def find(  # noqa: PLR0917  # as detect, and the lake that knows which days are covered
    engine: Engine,
    lake: Lake,
    detector: Detector,
    organization: str,
    as_of: date,
    cancelled: threading.Event | None = None,
) -> list[Finding]:
    """What `detect` finds; of a detector that compares days, only where all of its days are covered and judged."""
    findings = detect(engine, detector, organization, as_of, cancelled)
    if not detector.compares_days:
        return findings
    days, unjudged = days_before(as_of), stored_span(lake, organization).unjudged
    covered = {
        domain: covered_days(lake.manifest, organization, domain or "", *days) - unjudged
        for domain in {finding.subject["domain"] for finding in findings}
    }
    return [finding for finding in findings if len(covered[finding.subject["domain"]]) == DETECTED_DAYS]


def subject_of(
    kind: JobKind,
    query: str,
    finding: Finding,
    days: tuple[date, date],
    version: str,
    **more: Any,  # noqa: ANN401
) -> DetectedSubject:
    """A finding of a query as a job is made from it; `more` are fields in which it differs from others of its kind."""
    fields: dict[str, Any] = {"rows": [finding.row], "title": kind.title, "summary": kind.summary, **more}
    return DetectedSubject(
        type=finding.type,
        template=query,
        organization=finding.organization,
        subject=finding.subject,
        untrusted=kind.untrusted,
        weight=finding.weight,
        days=days,
        action_id=kind.action_id,
        action_label=kind.action_label,
        implementation_type=kind.implementation_type,
        sql_sha256=hashlib.sha256(template(query).encode()).hexdigest(),
        rules_version=version,
        **fields,
    )


def measure_outcome(  # noqa: PLR0917  # as measure_outcomes, of one job
    engine: Engine,
    lake: Lake,
    job: ShippedJob,
    others: Sequence[Finding],
    now: datetime,
    cancelled: threading.Event | None = None,
) -> MeasuredOutcome:
    """Compare the days before a job was approved with those since it was shipped, in the organization's zone.

    `others` are findings of its detector of the same day about which nothing was done: what changed for them as well
    has another cause. Jobs written by hand cannot be measured. Raises what `measure_all` raises.
    """
    zone = lake.manifest.zone(job.organization)
    days = (today(zone, at) for at in (job.found_at, job.approved_at, job.shipped_at, now))
    dates, kind = Dates(*days), JOB_KINDS.get(job.type)
    if kind is None or set(job.subject) != set(kind.subject):
        return MeasuredOutcome("not_measurable", Period(0, 0, 0), Period(0, 0, 0), dates.until)
    last = max(dates.first, min(dates.until, dates.today) - timedelta(days=1))
    unjudged = stored_span(lake, job.organization).unjudged

    def covered(domain: str | None) -> set[date]:
        return covered_days(lake.manifest, job.organization, domain or "", dates.first, last) - unjudged

    known = covered(job.subject.get("domain"))
    beside = [one.subject for one in others if one.subject != job.subject and covered(one.subject["domain"]) >= known]
    subjects = [job.subject, *beside]
    counts = measure_all(engine, kind, job.organization, subjects, dates.first, last, cancelled)
    own, *rest = [[DayCount(*count) for count in one] for one in counts]
    return outcome(own, rest, dates, known, MeasureKind(kind.more_is_better, kind.counts_refusals, kind.closes_by_rate))


def untouched(  # noqa: PLR0917  # as detect, and the jobs
    engine: Engine,
    jobs: Jobs,
    kind: str,
    organization: str,
    as_of: date,
    cancelled: threading.Event | None = None,
) -> list[Finding]:
    """What the detector of a type found on a day, without that about which something was done."""
    if kind not in DETECTORS:
        return []
    touched = jobs.touched(organization)
    found = detect(engine, DETECTORS[kind], organization, as_of, cancelled)
    return [one for one in found if fingerprint_of(one) not in touched]


def measure_outcomes(  # noqa: PLR0917  # as update_jobs, and the lake that knows which days are covered
    engine: Engine,
    lake: Lake,
    jobs: Jobs,
    organization: str,
    now: datetime,
    cancelled: threading.Event | None = None,
) -> MeasureRun:
    """Measure the shipped jobs of an organization that wait for it, and store their outcomes. First, what the log shows
    to be shipped is marked so.

    A job that cannot be measured now waits on, and does not stop the others. `cancelled` is that of `Engine.answer`.
    """
    run = MeasureRun({}, [])
    with suppress(TrafficError):  # it comes again tomorrow
        mark_shipped(engine, lake, jobs, organization, now, cancelled)
    for job in jobs.shipped(organization):
        try:
            found_on = today(lake.manifest.zone(organization), job.found_at)
            others = untouched(engine, jobs, job.type, organization, found_on, cancelled)
            measured = measure_outcome(engine, lake, job, others, now, cancelled)
        except TrafficError as error:
            if cancelled and cancelled.is_set():
                break
            _LOG.warning("the outcome of %s was not measured: %s", job.id, error)
            run.failed.append(job.id)
            continue
        with suppress(JobNotFound, JobConflict):  # it was withdrawn meanwhile
            jobs.set_outcome(organization, job.id, outcome_record(measured, now), now)
            run.outcomes[job.id] = measured
    return run
