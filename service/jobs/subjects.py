"""Reads what detection needs to know about jobs: known jobs, shipped jobs, and subjects that were acted on."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from service.core.clock import from_text
from service.core.control_database import ControlDatabase

Subject = Mapping[str, str | None]
"""The values that identify a job's subject, by column."""


class KnownJob(NamedTuple):
    """The parts of a job that decide whether a finding belongs to it."""

    id: str
    type: str
    status: str
    version: int
    fingerprint: str
    subjects: Sequence[Subject]
    weight: float
    closed_at: datetime | None  # when it was last closed
    closed_by: str | None  # the kind of actor that last closed it


class ShippedJob(NamedTuple):
    """A job with a shipped implementation and an outcome to measure."""

    id: str
    type: str
    subjects: Sequence[Subject]
    """Subjects of the implementation."""
    found_at: datetime
    approved_at: datetime
    shipped_at: datetime


def chosen(subjects: Sequence[Subject], number: int | None) -> Sequence[Subject]:
    """Return the subjects of an implementation: the subject with this number, from 1, or all if it is None. Erased
    subjects are left out.
    """
    of_number = subjects if number is None else subjects[number - 1 : number]
    return [subject for subject in of_number if subject]


def known_jobs(connection: sqlite3.Connection, organization: str, types: Sequence[str]) -> list[KnownJob]:
    """Return the jobs of these types that were detected, newest first."""
    rows = connection.execute(
        "SELECT jobs.id, type, status, jobs.version, fingerprint, subjects, weight, closing.at, actor_kind FROM jobs "
        "LEFT JOIN job_history AS closing ON closing.id = (SELECT max(id) FROM job_history WHERE job_id = jobs.id "
        "AND to_status IN ('resolved', 'dismissed') AND from_status IS NOT to_status) "
        "WHERE organization = ? AND type IN (SELECT value FROM json_each(?)) AND fingerprint IS NOT NULL "
        "ORDER BY created_at DESC, jobs.id DESC",
        [organization, orjson.dumps(types).decode()],
    )
    return [
        KnownJob._make((*first, orjson.loads(subjects), weight, closed_at and from_text(closed_at), closed_by))
        for *first, subjects, weight, closed_at, closed_by in rows
    ]


def versions(connection: sqlite3.Connection, organization: str, types: Sequence[str]) -> list[tuple[str, int]]:
    """Return the id and version of each job that `known_jobs` returns, in the same order, to detect changes."""
    rows = connection.execute(
        "SELECT id, version FROM jobs WHERE organization = ? AND type IN (SELECT value FROM json_each(?)) "
        "AND fingerprint IS NOT NULL ORDER BY created_at DESC, id DESC",
        [organization, orjson.dumps(types).decode()],
    )
    return rows.fetchall()


def read_shipped(database: ControlDatabase, organization: str) -> list[ShippedJob]:
    """Read an organization's jobs that are waiting for an outcome, in the order of shipping."""
    rows = database.rows(
        "SELECT jobs.id, jobs.type, subjects, implementations.subject, "
        "coalesce((SELECT max(at) FROM job_history WHERE job_id = jobs.id AND action = 'return'), created_at), "
        "coalesce((SELECT max(at) FROM job_history WHERE job_id = jobs.id AND action = 'approve'), shipped_at), "
        "shipped_at FROM jobs JOIN implementations "
        "ON implementations.job_id = jobs.id AND implementations.number = jobs.implementation_number "
        "WHERE organization = ? AND outcome_status = 'waiting' AND shipped_at IS NOT NULL ORDER BY shipped_at, jobs.id",
        [organization],
    )
    return [
        ShippedJob(job_id, kind, chosen(orjson.loads(subjects), number), *map(from_text, times))
        for job_id, kind, subjects, number, *times in rows
    ]


def read_touched(database: ControlDatabase, organization: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return a pair of type and subject for each subject of the detected jobs that are approved, sent or resolved, or
    have an outcome status other than none.
    """
    rows = database.rows(
        "SELECT type, subjects FROM jobs WHERE organization = ? AND fingerprint IS NOT NULL "
        "AND (status IN ('approved', 'sent', 'resolved') OR outcome_status <> 'none')",
        [organization],
    )
    return [(kind, subject) for kind, subjects in rows for subject in orjson.loads(subjects)]
