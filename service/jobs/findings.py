"""Turns findings into jobs: findings with the same cause become one job, with its text and evidence."""

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import Final

import msgspec
import orjson

from data.hosts import normalized_host
from data.rules.lake_tables import rules_version
from queries import JOB_KINDS, Detector, Finding, JobKind, template
from service.core.clock import to_text
from service.core.encoding import encode
from service.jobs.records import SYSTEM, Change, Evidence, EvidenceScope, Job
from service.jobs.states import PRIORITIES, UNDECIDED
from service.jobs.tables import change_job, open_jobs_of_type
from service.jobs.texts import is_short_code, sanitized

GONE_AFTER: Final = timedelta(days=28)
"""An undecided job that has not been found for this long is dismissed."""
DELETED_AFTER: Final = timedelta(days=90)
"""A job that was dismissed because it was gone, merged or too light is deleted this long afterwards."""
MAX_EVIDENCE_BYTES: Final = 64 << 10
"""Maximum size of a job's evidence as JSON. While it is larger, the last half of its rows is dropped."""
_REQUESTED: Final = ("domain", "short_code", "path")
"""Columns with text from requests; they are encoded even if a detector does not declare them untrusted."""
_PRIORITIES: Final = {
    "secret": ("high", "high", "high"), "error": ("medium", "medium", "high"), "chance": ("low", "low", "medium"),
}  # fmt: skip
"""The priorities of each urgency: for fewer than 10 requests a week, for fewer than 100, and for 100 or more."""
_LINKS: Final = ("broken_link", "invented_link")

_rules_version: Final = cache(rules_version)  # reading it takes 5 ms


@dataclass(frozen=True)
class Cause:
    """The findings of one cause, heaviest first, from which a job is made or refreshed."""

    kind: JobKind
    query: str  # the query that found them, such as jobs/broken_link
    findings: Sequence[Finding]
    days: tuple[date, date]  # the first and the last examined day
    rows: Sequence[Mapping[str, object]]  # the evidence: values by column, typed as in answers
    replay: str = ""  # the command that finds them again; "": `traffic jobs replay`

    @property
    def organization(self) -> str:
        """The findings' organization."""
        return self.findings[0].organization

    @property
    def weight(self) -> float:
        """The findings' requests in an average week, with each person counting as ten."""
        return sum(finding.weight for finding in self.findings)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the family of types, the organization and the cause."""
        return _digest(self.findings[0], self.kind.cause_of(self.findings[0].subject))

    def only(self, findings: Sequence[Finding]) -> "Cause":
        """Return the cause with only these findings."""
        kept = [row for row, finding in zip(self.rows, self.findings, strict=False) if finding in findings]
        return self if len(findings) == len(self.findings) else replace(self, findings=findings, rows=kept)


def causes_of(detector: Detector, findings: Iterable[Finding], days: tuple[date, date]) -> list[Cause]:
    """Group a detector's findings by cause, the heaviest cause first. Findings with the same cause keep their order."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(orjson.dumps(detector.cause_of(finding.subject)).decode(), []).append(finding)
    causes = [
        Cause(detector, detector.entry.name, group, days, [finding.row for finding in group])
        for group in groups.values()
    ]
    return sorted(causes, key=lambda cause: -cause.weight)


def fingerprint_of(finding: Finding) -> str:
    """Return the SHA-256 of the family of types, the organization and the subject."""
    return _digest(finding, finding.subject)


def _digest(finding: Finding, named: Mapping[str, str | None]) -> str:
    text = [family_of(finding.type)[0], finding.organization, sorted(named.items())]
    return hashlib.sha256(orjson.dumps(text)).hexdigest()


def family_of(kind: str) -> tuple[str, ...]:
    """Return the job types that share their subjects with this type: a broken link that turns out to be invented
    remains the same job.
    """
    return _LINKS if kind in _LINKS else (kind,)


def blank_job(organization: str, kind: str, title: str, now: datetime) -> Job:
    """Return a new job with a random id, this type and this title; the other columns have their defaults."""
    at = to_text(now)
    return Job(f"job_{secrets.token_hex(10)}", organization, kind, "new", title, at, at)


def dismiss_gone(connection: sqlite3.Connection, organization: str, kind: str, now: datetime) -> int:
    """Dismiss a type's undecided jobs that have not been found for GONE_AFTER. Returns their number."""
    limit, dismissed = to_text(now - GONE_AFTER), 0
    for job in open_jobs_of_type(connection, organization, kind):
        if job.status in UNDECIDED and job.last_detected_at and job.last_detected_at <= limit:
            change_job(connection, job, replace(job, status="dismissed"), Change("expire", SYSTEM, now, "gone"))
            dismissed += 1
    return dismissed


def new_job(cause: Cause, now: datetime) -> Job:
    """Return a new job for a cause."""
    finding = cause.findings[0]
    return refreshed(blank_job(finding.organization, finding.type, "", now), cause, now)


def refreshed(job: Job, cause: Cause, now: datetime) -> Job:
    """Return the job with new evidence. Decisions about it stay, and so do the subjects of an approved job."""
    kind, subjects = cause.kind, [dict(finding.subject) for finding in cause.findings]
    if job.status in UNDECIDED or not job.fingerprint:
        domain, short_code, path = (_shared(cause, name) for name in _REQUESTED)
        job = replace(
            job,
            action_id=kind.action_id,
            implementation_type=kind.implementation_type,
            fingerprint=cause.fingerprint,
            subjects=orjson.dumps(subjects).decode(),
            domain=domain,
            short_code=short_code,
            path=path,
        )
    title, summary = _sentences(job, cause)
    return replace(
        job,
        title=title,
        summary=summary,
        priority=priority_of(cause),
        weight=cause.weight,
        evidence=msgspec.json.encode(evidence_of(cause, job.id)).decode(),
        evidence_rows=len(cause.rows),
        action_label=kind.action_label,
        last_detected_at=to_text(now),
    )


def priority_of(cause: Cause) -> str:
    """Return low, medium or high: by the kind's urgency first, then by requests a week, with each person counting as
    ten.
    """
    return _PRIORITIES[cause.kind.urgency][(cause.weight >= 10) + (cause.weight >= 100)]


def rank(priority: str, kind: str) -> tuple[int, int]:
    """Return a sort key, lowest for the most urgent job: by its priority, then by the urgency of its type."""
    urgency = JOB_KINDS[kind].urgency if kind in JOB_KINDS else "error"
    return -PRIORITIES.index(priority), list(_PRIORITIES).index(urgency)


def _shared(cause: Cause, name: str) -> str | None:
    """Return the string that a column has in all findings of a cause; None if its values differ or are not strings."""
    pairs = zip(cause.rows, cause.findings, strict=False)
    values = {finding.subject.get(name) or row.get(name) for row, finding in pairs}
    value = values.pop()
    return value if isinstance(value, str) and not values else None


def evidence_of(cause: Cause, job_id: str) -> Evidence:
    """Return the evidence of a job: at most MAX_EVIDENCE_BYTES as JSON, with untrusted text encoded and truncated."""
    encoded = {*_REQUESTED, *cause.kind.untrusted}
    rows = [{name: sanitized(value) if name in encoded else value for name, value in row.items()} for row in cause.rows]
    evidence = Evidence(
        replay=cause.replay or f"traffic jobs replay {job_id}",
        template=cause.query,
        sql_sha256=hashlib.sha256(template(cause.query).encode()).hexdigest(),
        rules_version=_rules_version(),
        scope=EvidenceScope(*cause.days, domain=None, short_code=None),
        rows=msgspec.json.decode(encode(rows)),
        untrusted=list(cause.kind.untrusted),
    )
    while evidence.rows and len(msgspec.json.encode(evidence)) > MAX_EVIDENCE_BYTES:
        evidence = msgspec.structs.replace(evidence, rows=evidence.rows[: len(evidence.rows) // 2])
    return evidence


def _sentences(job: Job, cause: Cause) -> tuple[str, str]:
    """Return a job's title and summary: fixed sentences with numbers, days, a checked host and a plain short code.

    They contain no other text from requests, since it is untrusted.
    """
    host = job.domain if job.domain and normalized_host(job.domain) == job.domain else "a domain"
    number, title = len(orjson.loads(job.subjects)), cause.kind.title
    where = host
    if job.short_code and is_short_code(job.short_code) and job.path is None:
        where = f"the link {job.short_code} on {host}"
    if number > 1:
        where, title = host, f"{title} ({number} {cause.kind.many})"
    sums: dict[str, int | float] = {}
    for name, value in (pair for row in cause.rows for pair in row.items()):
        if isinstance(value, int | float) and not isinstance(value, bool):
            sums[name] = sums.get(name, 0) + value
    words = {
        **{name: f"{value:,}" for name, value in sums.items()},
        "domain": host,
        "days": f"{cause.days[0]} to {cause.days[1]}",
        "where": where,
    }
    return title.format_map(words), cause.kind.summary.format_map(words)
