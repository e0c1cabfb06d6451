"""Runs the detectors over an organization's visits, and measures the outcomes of shipped jobs.

The server does both once a day; `traffic jobs detect` runs only the detectors, on demand, and makes the same jobs from
the same visits, days and rules.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import structs

from data import BadInput, Lake, TrafficError
from queries import (
    DETECTED_DAYS,
    DETECTORS,
    JOB_KINDS,
    Detector,
    Engine,
    Finding,
    Snapshot,
    days_before,
    detect,
    measure_all,
    redirected_days,
    share_detected,
)
from service.jobs.findings import causes_of, family_of
from service.jobs.implementation_tables import read_attached_redirects
from service.jobs.outcome import Dates, outcome
from service.jobs.rates import DayCount, summed
from service.jobs.records import NO_DAYS, SYSTEM, JobOutcome
from service.jobs.states import JobConflict, JobNotFound
from service.jobs.store import Jobs
from service.jobs.subjects import ShippedJob, read_shipped, read_touched
from service.jobs.verdicts import verdict

DAYS_WITHOUT: Final = 14
"""Number of days before the approval that must be covered and show no redirects of the path, for a redirect to count as
shipped by the log."""
MIN_REDIRECTED: Final = 3
"""Minimum number of redirected requests since the approval for a redirect to count as shipped by the log."""


class DetectionRun(NamedTuple):
    """The findings of one detector, and the number of their causes by effect on jobs: created, refreshed, reopened or
    ignored.
    """

    type: str
    findings: list[Finding]
    results: Counter[str]
    error: str = ""  # why it could not run; in that case, its jobs stay unchanged


class MeasureRun(NamedTuple):
    """The measured outcomes of shipped jobs, by job, and the jobs that could not be measured."""

    outcomes: dict[str, JobOutcome]
    failed: dict[str, str]  # the reason, by job


@dataclass(frozen=True)
class Detection:
    """Detects one organization's jobs in the visits of a lake, and measures the outcomes of its shipped jobs.

    `cancelled` is passed to `Engine.answer`. Unless documented otherwise, methods raise the exceptions that `detect`
    and `measure_all` raise.
    """

    engine: Engine
    lake: Lake
    jobs: Jobs
    organization: str
    cancelled: threading.Event | None = None

    def update_jobs(self, as_of: date, now: datetime) -> list[DetectionRun]:
        """Run every detector and create, refresh or reopen jobs; then dismiss undecided jobs that have not been found
        for GONE_AFTER.

        A detector that fails does not stop the others.
        """
        runs, shared = [], None
        for detector in DETECTORS.values():
            try:
                shared = shared or share_detected(self.engine, self.organization, as_of, self.cancelled)
                findings = self.find(detector, as_of, shared)
            except TrafficError as error:
                runs.append(DetectionRun(detector.type, [], Counter(), str(error)))
                continue
            causes = causes_of(detector, findings, days_before(as_of))
            results = Counter(self.jobs.upsert(cause, now) for cause in causes)
            runs.append(DetectionRun(detector.type, findings, results))
        if shared:
            self.engine.forget(shared)
        self.jobs.dismiss_gone(self.organization, [run.type for run in runs if not run.error], now)
        return runs

    def find(self, detector: Detector, as_of: date, shared: Snapshot | None = None) -> list[Finding]:
        """Return the findings of `detect`; if the detector compares days, only findings on domains with all days
        covered and judged.
        """
        findings = detect(self.engine, detector, self.organization, as_of, self.cancelled, shared=shared)
        if not detector.compares_days:
            return findings
        domains = {finding.subject["domain"] for finding in findings}
        covered = {domain: self._covered_days(domain, *days_before(as_of)) for domain in domains}
        return [finding for finding in findings if len(covered[finding.subject["domain"]]) == DETECTED_DAYS]

    def untouched(self, kind: str, as_of: date) -> list[Finding]:
        """Return a type's findings as of a day, except those about subjects that `read_touched` returns."""
        if kind not in DETECTORS:
            return []
        touched = read_touched(self.jobs.database, self.organization)
        subjects = [subject for done, subject in touched if done in family_of(kind)]
        found = detect(self.engine, DETECTORS[kind], self.organization, as_of, self.cancelled)
        return [one for one in found if one.subject not in subjects]

    def measure_outcomes(self, now: datetime) -> MeasureRun:
        """Mark redirects as shipped if the log shows that they work; then measure the shipped jobs and store their
        outcomes.

        A job that cannot be measured now stays waiting for its outcome, and does not stop the others.
        """
        run = MeasureRun({}, {})
        with suppress(TrafficError):  # the log is checked again tomorrow
            self.mark_shipped(now)
        for job in read_shipped(self.jobs.database, self.organization):
            try:
                others = self.untouched(job.type, self._day_of(job.found_at))
                measured = self.measure_outcome(job, others, now)
            except TrafficError as error:
                if self.cancelled and self.cancelled.is_set():
                    break
                run.failed[job.id] = str(error)
                continue
            with suppress(JobNotFound, JobConflict):  # it has been withdrawn in the meantime
                checked_at, said = now.replace(microsecond=0), verdict(measured)
                measured = structs.replace(measured, checked_at=checked_at, verdict=said)
                self.jobs.set_outcome(self.organization, job.id, measured, now)
                run.outcomes[job.id] = measured
        return run

    def measure_outcome(self, job: ShippedJob, others: Sequence[Finding], now: datetime) -> JobOutcome:
        """Compare the days before a job was approved with the days since it was shipped, in the organization's zone.

        The job's subjects are counted together. `others`, the control, are untouched findings of its detector on the
        day it was found: a change that they share has another cause. A job of a type without a measure (such as a job
        written by hand) or without its subjects is not measurable.
        """
        dates = Dates(*map(self._day_of, (job.found_at, job.approved_at, job.shipped_at, now)))
        kind = JOB_KINDS.get(job.type)
        if kind is None or not job.subjects or any(set(one) != set(kind.subject) for one in job.subjects):
            return JobOutcome(
                "not_measurable", NO_DAYS, NO_DAYS, None, None, dates.until, "rate", looks_left=0, others=0
            )
        first, last = dates.first, max(dates.first, min(dates.until, dates.today) - timedelta(days=1))
        known = self._covered_days(job.subjects[0].get("domain"), first, last)
        beside = [one.subject for one in others if one.subject not in job.subjects]
        control = [one for one in beside if self._covered_days(one["domain"], first, last) >= known]
        subjects, number = [*job.subjects, *control], len(job.subjects)
        counts = measure_all(self.engine, kind, self.organization, subjects, first, last, self.cancelled)
        rest = [[DayCount(*count) for count in one] for one in counts[number:]]
        return outcome(summed(counts[:number]), rest, dates, known, kind)

    def mark_shipped(self, now: datetime) -> None:
        """Mark attached redirects as shipped if the log shows that they work for all of their paths."""
        for job_id, number, subjects, approved_at in read_attached_redirects(self.jobs.database, self.organization):
            shipped = [self.shipped_by_log(subject, approved_at, now) for subject in subjects]
            at = max((one for one in shipped if one), default=None)
            if at is None or None in shipped:
                continue
            with suppress(BadInput, JobConflict):  # the job has changed, or the redirect is over a year old
                self.jobs.set_implementation_status(
                    self.organization, job_id, number, SYSTEM, now, status="shipped", shipped_at=at, note="by the log"
                )

    def shipped_by_log(
        self, subject: Mapping[str, str | None], approved_at: datetime, now: datetime
    ) -> datetime | None:
        """Return the time of the first redirect of a path since its job's approval. Return None if the path was
        redirected in the DAYS_WITHOUT days before, if any of those days is not covered, or if there were fewer than
        MIN_REDIRECTED redirects.
        """
        approved_on, end = self._day_of(approved_at), self._day_of(now)
        first, last = approved_on - timedelta(days=DAYS_WITHOUT), approved_on - timedelta(days=1)
        covered = self.lake.manifest.coverage.covered_days(self.organization, subject["domain"] or "", first, last)
        rows = redirected_days(self.engine, self.organization, subject, (first, end), self.cancelled)
        is_new = len(covered) == DAYS_WITHOUT and all(day >= approved_on for day, _, _ in rows)
        if not is_new or sum(number for _, number, _ in rows) < MIN_REDIRECTED:
            return None
        return max(approved_at, min(at for _, _, at in rows).replace(tzinfo=UTC))

    def _day_of(self, moment: datetime) -> date:
        return self.lake.manifest.organizations.today(self.organization, moment)

    @cached_property
    def _unjudged(self) -> frozenset[date]:
        return self.lake.manifest.statistics.stored_span(self.organization).unjudged

    def _covered_days(self, domain: str | None, first: date, last: date) -> set[date]:
        """Return the days in a span that are judged and covered for a domain."""
        return self.lake.manifest.coverage.covered_days(self.organization, domain or "", first, last) - self._unjudged
