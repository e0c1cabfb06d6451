"""From what detectors find to jobs: one open job for a subject. Each function runs in the transaction of its caller."""

import hashlib
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import Final

import msgspec
import orjson

from data.hosts import normalized_host
from data.rules.lake_tables import rules_version
from queries import Finding, JobKind, template
from service.core.clock import to_text
from service.core.encoding import encode
from service.jobs.records import SYSTEM, Change, Evidence, EvidenceScope, Job
from service.jobs.states import OPEN, PRIORITIES
from service.jobs.tables import change_job, closing_line, count_open, create_job, open_jobs_of_type
from service.jobs.texts import is_short_code, sanitized

MAX_OPEN_JOBS: Final = 100
"""Open jobs of one type and organization: the heaviest."""
RETURNS_AFTER: Final = timedelta(days=7)
"""A resolved job that is found again this long after its resolution is opened again."""
GONE_AFTER: Final = timedelta(days=28)
"""An undecided job that was not found for this long is dismissed."""
DELETED_AFTER: Final = timedelta(days=90)
"""A job that the service dismissed is deleted this long afterwards."""
MAX_EVIDENCE_BYTES: Final = 64 << 10
"""Maximum bytes of a job's evidence as JSON; rows beyond it are left out, from the end."""
_REQUESTED: Final = ("domain", "short_code", "path")
"""Columns that come from requests; they are encoded whatever a detector says of them."""
_DECIDED: Final = ("approved", "sent")


_rules_version: Final = cache(rules_version)  # which takes 5 ms


@dataclass(frozen=True)
class DetectedSubject:
    """What a query found about one subject, that a job is made or refreshed from."""

    kind: JobKind
    query: str  # that found it, such as jobs/broken_link
    finding: Finding
    days: tuple[date, date]  # first and last
    rows: Sequence[Mapping[str, object]]  # its evidence: values by column, typed as in answers
    replay: str = ""  # the command that finds it again; "": the one for jobs of detectors


def blank_job(organization: str, kind: str, title: str, now: datetime) -> Job:
    """A new job with a random id, of a type and with a title, about which nothing else is known yet."""
    at = to_text(now)
    return Job(f"job_{secrets.token_hex(10)}", organization, kind, "new", title, at, at)


def fingerprint_of(finding: Finding) -> str:
    """The SHA-256 of type, organization and subject. A broken link that turns out to be invented stays one job."""
    kind = "broken_link" if finding.type == "invented_link" else finding.type
    named = [kind, finding.organization, sorted(finding.subject.items())]
    return hashlib.sha256(orjson.dumps(named)).hexdigest()


def upsert(
    connection: sqlite3.Connection, known: Job | None, detected: DetectedSubject, found: Job, now: datetime
) -> str:
    """Make or refresh the job of a subject: created, refreshed, reopened or ignored.

    `known` is the newest job of the subject, and `found` this one with the new evidence, or a new one. Ignored is what
    was resolved a short time ago, what a person dismissed, and what is lighter than all open jobs of its type when
    there are too many.
    """
    if known and known.status in OPEN:
        is_heavier = PRIORITIES.index(found.priority) > PRIORITIES.index(known.priority)
        change_job(connection, known, found, Change("update" if is_heavier else None, SYSTEM, now))
        return "refreshed"
    if (known and not _returns(connection, known, now)) or not _has_room(connection, detected, now):
        return "ignored"
    if known:
        reopened = replace(found, status="new", implementation_number=None, outcome_status="none", outcome=None)
        change_job(connection, known, reopened, Change("return", SYSTEM, now))
        return "reopened"
    create_job(connection, found, Change("create", SYSTEM, now))
    return "created"


def dismiss_gone(connection: sqlite3.Connection, organization: str, kind: str, now: datetime) -> int:
    """Dismiss the undecided jobs of a type that were not found for GONE_AFTER. Returns how many."""
    limit, dismissed = to_text(now - GONE_AFTER), 0
    for job in open_jobs_of_type(connection, organization, kind):
        if job.status not in _DECIDED and job.last_detected_at and job.last_detected_at <= limit:
            change_job(connection, job, replace(job, status="dismissed"), Change("expire", SYSTEM, now, "gone"))
            dismissed += 1
    return dismissed


def new_job(detected: DetectedSubject, now: datetime) -> Job:
    """The job of a subject that has none."""
    found = detected.finding
    named = {**detected.rows[0], **{name: value for name, value in found.subject.items() if value}}
    domain, short_code, path = (one if isinstance(one := named.get(name), str) else None for name in _REQUESTED)
    job = replace(
        blank_job(found.organization, found.type, "", now),
        action_id=detected.kind.action_id,
        fingerprint=fingerprint_of(found),
        subject=orjson.dumps(found.subject).decode(),
        domain=domain,
        short_code=short_code,
        path=path,
    )
    return refreshed(job, detected, now)


def refreshed(job: Job, detected: DetectedSubject, now: datetime) -> Job:
    """The job with new evidence. Decisions about it stay."""
    title, summary = _sentences(job, detected)
    weight, kind = detected.finding.weight, detected.kind
    return replace(
        job,
        title=title,
        summary=summary,
        priority="high" if weight >= 100 else "medium" if weight >= 10 else "low",
        weight=weight,
        evidence=msgspec.json.encode(evidence_of(detected, job.id)).decode(),
        evidence_rows=len(detected.rows),
        action_label=kind.action_label,
        implementation_type=job.implementation_type if job.status in _DECIDED else kind.implementation_type,
        last_detected_at=to_text(now),
    )


def evidence_of(detected: DetectedSubject, job_id: str) -> Evidence:
    """The evidence of a job: at most MAX_EVIDENCE_BYTES as JSON, with untrusted text encoded and cut."""
    encoded = {*_REQUESTED, *detected.kind.untrusted}
    rows = [
        {name: sanitized(value) if name in encoded else value for name, value in row.items()} for row in detected.rows
    ]
    evidence = Evidence(
        replay=detected.replay or f"traffic jobs replay {job_id}",
        template=detected.query,
        sql_sha256=hashlib.sha256(template(detected.query).encode()).hexdigest(),
        rules_version=_rules_version(),
        scope=EvidenceScope(*detected.days, domain=None, short_code=None),
        rows=msgspec.json.decode(encode(rows)),
        untrusted=list(detected.kind.untrusted),
    )
    while evidence.rows and len(msgspec.json.encode(evidence)) > MAX_EVIDENCE_BYTES:
        evidence = msgspec.structs.replace(evidence, rows=evidence.rows[: len(evidence.rows) // 2])
    return evidence


def _sentences(job: Job, detected: DetectedSubject) -> tuple[str, str]:
    """The title and the summary of a job: fixed sentences with numbers, days, a checked host and a plain short code.

    Nothing else that was requested is repeated here, as it is untrusted: any other path is "a path".
    """
    host = job.domain if job.domain and normalized_host(job.domain) == job.domain else "a domain"
    where = f"a path of {host}" if job.path is not None or job.short_code else host
    if job.short_code and is_short_code(job.short_code) and job.path is None:
        where = f"the link {job.short_code} of {host}"
    sums: dict[str, int | float] = {}
    for name, value in (pair for row in detected.rows for pair in row.items()):
        if isinstance(value, int | float) and not isinstance(value, bool):
            sums[name] = sums.get(name, 0) + value
    words = {
        **{name: f"{value:,}" for name, value in sums.items()},
        "domain": host,
        "days": f"{detected.days[0]} to {detected.days[1]}",
        "where": where,
    }
    return detected.kind.title.format_map(words), detected.kind.summary.format_map(words)


def _returns(connection: sqlite3.Connection, job: Job, now: datetime) -> bool:
    """Whether a closed job that is found again is opened again. A person's dismissal stays."""
    closed = closing_line(connection, job.id)
    if closed is None or job.status == "resolved":
        return closed is None or now - closed[0] >= RETURNS_AFTER
    return closed[1] == SYSTEM.kind


def _has_room(connection: sqlite3.Connection, detected: DetectedSubject, now: datetime) -> bool:
    """Whether there may be one more open job of a type. A lighter one that was not reviewed makes room."""
    found = detected.finding
    if count_open(connection, found.organization, found.type) < MAX_OPEN_JOBS:
        return True
    jobs = open_jobs_of_type(connection, found.organization, found.type)
    lightest = next((job for job in jobs if job.status == "new" and job.weight < found.weight), None)
    if lightest:
        expired = Change("expire", SYSTEM, now, "heavier ones were found")
        change_job(connection, lightest, replace(lightest, status="dismissed"), expired)
    return lightest is not None
