"""What a job allows: whether it is the version that a caller knows, and what the id of an action stands for."""

import sqlite3
from dataclasses import dataclass, replace

from data import BadInput
from service.jobs.records import Job
from service.jobs.states import APPROVE_FIX, IMPLEMENTATION_TYPES, PERSONS_MOVES, JobChanged, JobConflict
from service.jobs.tables import read_job


@dataclass(frozen=True)
class Approval:
    """How an approved job is to be carried out: another type than the job's own, or an implementation it had before."""

    implementation_type: str | None = None
    implementation_number: int | None = None


def read_expected(connection: sqlite3.Connection, organization: str, job_id: str, version: int | None) -> Job:
    """A job of an organization. Raises JobNotFound, or JobChanged if it has another version than `version`."""
    job = read_job(connection, organization, job_id)
    if version not in (None, job.version):
        raise JobChanged(f"The job has version {job.version}, not the one of If-Match.", job.status, job.version)
    return job


def conflict(job: Job, problem: str) -> JobConflict:
    """The error for what a job's status does not allow. `problem` follows on "The job is resolved and "."""
    return JobConflict(f"The job is {job.status} and {problem}.", job.status, job.version)


def move_of(job: Job, action_id: str) -> str:
    """The move that the id of an action asks for; the job's own action is approved. Raises BadInput."""
    if action_id in (APPROVE_FIX, job.action_id):
        return "approve"
    known = [name for name in PERSONS_MOVES if name != "approve"]
    if action_id not in known:
        own = [job.action_id] if job.action_id else []
        raise BadInput(f"action_id is {action_id[:100]!r}; use {', '.join([APPROVE_FIX, *own, *known])}.")
    return action_id


def approved_as(connection: sqlite3.Connection, job: Job, approval: Approval) -> Job:
    """The job with the type and the implementation that its approval names. Raises BadInput."""
    kind, number = approval.implementation_type, approval.implementation_number
    if kind not in (None, *IMPLEMENTATION_TYPES):
        raise BadInput(f"implementation_type is {kind!r}; use {', '.join(IMPLEMENTATION_TYPES)}.")
    if number is not None:
        rows = connection.execute(
            "SELECT implementation_type FROM implementations WHERE job_id = ? AND number = ?", [job.id, number]
        ).fetchall()
        if not rows or kind not in (None, rows[0][0]):
            raise BadInput(f"implementation_id is {number}; the job has no such implementation of this type.")
        kind = rows[0][0]
    return replace(
        job,
        implementation_type=kind or job.implementation_type,
        implementation_number=job.implementation_number if number is None else number,
    )
