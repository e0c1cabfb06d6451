"""A job, its implementations and its history as they are stored, and as JSON: a row of GET /jobs, and its record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, NamedTuple

import orjson

from service.clock import from_text
from service.encoding import encode
from service.hooks.records import Delivery
from service.jobs.states import APPROVE_FIX, PERSONS_MOVES
from service.jobs.texts import harmless, harmless_text

MAX_EVIDENCE_BYTES: Final = 64 << 10
"""Maximum bytes of a job's evidence as JSON; rows beyond it are left out, from the end."""
_REQUESTED: Final = frozenset({"domain", "short_code", "path"})
"""Columns that come from requests; they are encoded whatever a detector says of them."""
_NO_MEASURE: Final = {"before": None, "after": None, "probability": None, "checked_at": None, "until": None}


class Actor(NamedTuple):
    """Who did something to a job: a person, a program with an API key, the command line, or the service itself."""

    name: str  # the `sub` of an identity token, the id of an API key, or "traffic"
    kind: str  # user, key, command_line or system


SYSTEM: Final = Actor("system", "system")
COMMAND_LINE: Final = Actor("traffic", "command_line")


class Step(NamedTuple):
    """One write of a job: what was done (None: nothing that its history tells), by whom, when, and why."""

    action: str | None
    actor: Actor
    now: datetime
    note: str | None = None


@dataclass(frozen=True)
class DetectedSubject:
    """What a detector found about one subject: the plain values that a job is made or refreshed from."""

    type: str
    template: str  # the query that found it, such as jobs/broken_link
    organization: str
    subject: Mapping[str, str | None]  # the columns that name it, as requested
    rows: Sequence[Mapping[str, object]]  # values by column, typed as in answers
    untrusted: Sequence[str]  # the columns with text of strangers
    weight: float  # AI fetches a week and ten times the referrals
    days: tuple[date, date]  # first and last
    action_id: str
    action_label: str
    implementation_type: str
    sql_sha256: str
    rules_version: str


@dataclass(frozen=True)
class Job:
    """A row of the table jobs. Times are texts as stored; `subject`, `evidence` and `outcome` are JSON."""

    id: str
    organization: str
    type: str
    status: str
    title: str
    created_at: str  # without an offset, as updated_at; all other times have one
    updated_at: str
    priority: str = "low"
    domain: str | None = None
    short_code: str | None = None
    path: str | None = None  # as requested: a stranger's text
    summary: str = ""
    action_id: str | None = None
    action_label: str | None = None
    evidence_rows: int = 0
    implementation_type: str | None = None
    implementation_number: int | None = None  # of the one in force
    outcome_status: str = "none"
    outcome: str | None = None
    last_detected_at: str | None = None
    version: int = 1
    fingerprint: str | None = None  # of what a detector found; None: written by somebody
    weight: float = 0.0
    subject: str = "{}"
    evidence: str | None = None
    written_by: str | None = None


@dataclass(frozen=True)
class ShippedJob:
    """A job whose implementation was shipped, and whose outcome is to be measured."""

    id: str
    organization: str
    type: str
    subject: Mapping[str, str | None]
    shipped_at: datetime


@dataclass(frozen=True)
class Implementation:
    """A row of the table implementations, without its content."""

    job_id: str
    number: int
    implementation_type: str
    content_type: str | None
    sha256: str | None
    bytes: int | None
    url: str | None
    status: str
    note: str | None
    attached_by: str
    attached_at: str
    shipped_at: str | None

    def public(self) -> dict[str, Any]:
        """Its JSON, without the content."""
        return {
            "number": self.number,
            "implementation_type": self.implementation_type,
            "content_type": self.content_type,
            "sha256": self.sha256,
            "bytes": self.bytes,
            "url": self.url,
            "status": self.status,
            "attached_by": self.attached_by,
            "attached_at": from_text(self.attached_at),
            "shipped_at": from_text(self.shipped_at),
            "note": self.note,
        }


@dataclass(frozen=True)
class HistoryLine:
    """A row of the table job_history."""

    at: str
    actor: str
    actor_kind: str
    action: str
    from_status: str | None
    to_status: str
    note: str | None
    version: int

    def public(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "at": from_text(self.at),
            "actor": self.actor,
            "actor_kind": self.actor_kind,
            "action": self.action,
            "from": self.from_status,
            "to": self.to_status,
            "note": self.note,
            "version": self.version,
        }


def public_row(job: Job, implementation: tuple[str, str] | None) -> dict[str, Any]:
    """A row of GET /jobs. `implementation`: type and status of the one in force."""
    return {
        "id": job.id,
        "organization": job.organization,
        "type": job.type,
        "status": job.status,
        "title": job.title,
        "created_at": from_text(job.created_at),
        "updated_at": from_text(job.updated_at),
        "priority": job.priority,
        "domain": harmless_text(job.domain),
        "short_code": harmless_text(job.short_code),
        "path": harmless_text(job.path),
        "summary": job.summary,
        "action_id": job.action_id,
        "evidence_rows": job.evidence_rows,
        "implementation_type": implementation[0] if implementation else job.implementation_type,
        "implementation_status": implementation[1] if implementation else None,
        "outcome_status": job.outcome_status,
        "last_detected_at": from_text(job.last_detected_at),
        "version": job.version,
    }


def public_record(
    job: Job,
    implementation: Implementation | None,
    history: Sequence[HistoryLine] | None = None,
    deliveries: Sequence[Delivery] = (),
) -> dict[str, Any]:
    """The record of GET /jobs/{id}. Without `history`, what hooks are sent."""
    in_force = (implementation.implementation_type, implementation.status) if implementation else None
    evidence = orjson.loads(job.evidence) if job.evidence else None
    measured = orjson.loads(job.outcome) if job.outcome else {}
    return {
        **public_row(job, in_force),
        "written_by": job.written_by,
        "evidence": {"replay": f"traffic jobs replay {job.id}", **evidence} if evidence else None,
        "actions": _actions(job),
        "implementation": implementation.public() if implementation else None,
        "outcome": {"status": job.outcome_status, **_NO_MEASURE, **measured},
    } | ({} if history is None else _past(history, deliveries))


def _past(history: Sequence[HistoryLine], deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """What was done about a job, and which messages told of it."""
    sent = [
        {
            "id": one.id,
            "hook_id": one.hook_id,
            "event": one.event,
            "status": one.status,
            "attempts": one.attempts,
            "last_status_code": one.status_code,
            "at": one.attempted_at or one.created_at,
        }
        for one in deliveries
    ]
    return {"history": [line.public() for line in history], "deliveries": sent}


def evidence_of(detected: DetectedSubject) -> str:
    """The evidence of a job as JSON of at most MAX_EVIDENCE_BYTES, with strangers' text encoded and cut."""
    encoded = _REQUESTED.union(detected.untrusted)
    rows = [
        {name: harmless(value) if name in encoded else value for name, value in row.items()} for row in detected.rows
    ]
    while True:
        evidence = {
            "template": detected.template,
            "sql_sha256": detected.sql_sha256,
            "rules_version": detected.rules_version,
            "scope": {
                "start_date": detected.days[0].isoformat(),
                "end_date": detected.days[1].isoformat(),
                "domain": None,
                "short_code": None,
            },
            "rows": rows,
            "untrusted": list(detected.untrusted),
        }
        text = encode(evidence)
        if len(text) <= MAX_EVIDENCE_BYTES or not rows:
            return text.decode()
        rows = rows[: len(rows) // 2]


def priority_of(weight: float) -> str:
    """The priority of a weekly weight."""
    return "high" if weight >= 100 else "medium" if weight >= 10 else "low"


def _actions(job: Job) -> list[dict[str, Any]]:
    """The job's own action, which is approved by its id, and what else its status allows now."""
    own = [{"id": job.action_id or APPROVE_FIX, "label": job.action_label or "Approve it", "is_default": True}]
    others = [
        {"id": name, "label": label, "is_default": False}
        for name, (moves, label) in PERSONS_MOVES.items()
        if name != "approve" and job.status in moves
    ]
    return [*own, *others]
