"""Deletes job evidence that counts visits deleted by an erasure or by retention.

Messages to hooks repeat evidence; messages about such a job are deleted, too, whether they were sent or not. When in
doubt, evidence is deleted: a row counts many visits together, and names a path that perhaps only the deleted visits
requested. Evidence identifies no visitor, so erasing one visitor leaves it unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import orjson

from data.disk.locks import locked
from data.hosts import normalized_host
from data.tasks.erasure import Criteria
from service.core.control_database import ControlDatabase
from service.hooks.outbox import delete_messages
from service.jobs.implementation_tables import delete_contents
from service.jobs.records import SYSTEM, Change, Job
from service.jobs.states import next_status
from service.jobs.tables import change_job, organizations_with_jobs, read_job, read_jobs
from service.jobs.texts import sanitized

Row = dict[str, Any]


@dataclass
class ErasedEvidence:
    """Numbers of deleted records; in a dry run, of records that would be deleted."""

    jobs: int = 0  # jobs that lost evidence
    rows: int = 0  # rows of evidence
    implementations: int = 0  # implementations that lost their content, since it may contain paths of these visits


def erase_evidence(
    database: ControlDatabase, organization: str, visits: Criteria, now: datetime, *, dry_run: bool = False
) -> ErasedEvidence:
    """Delete the evidence rows that may count visits matching these criteria. If the criteria name a visitor, nothing
    is deleted, since evidence never names visitors.

    A job with no rows left also loses its subjects, its title and summary, its outcome, and the contents, notes and
    URLs of its implementations, except the contents of shipped redirects. If it is open, it is dismissed.
    """
    if visits.visitor is not None:
        return ErasedEvidence()
    return _erase(database, organization, lambda job, row: _is_about(job, row, visits), now, dry_run)


def expire_evidence(
    database: ControlDatabase, before: date, now: datetime, *, organization: str = "", dry_run: bool = False
) -> ErasedEvidence:
    """Delete evidence that counts only visits before a day, of one organization or of all."""
    return _erase(database, organization, lambda job, _: _days(job)[1] < before, now, dry_run)


def _erase(
    database: ControlDatabase, organization: str, is_erased: Callable[[Job, Row], bool], now: datetime, dry_run: bool
) -> ErasedEvidence:
    """Delete the evidence rows for which `is_erased` is true; `organization` is "" for all organizations."""
    with database.snapshot() as connection:
        organizations = [organization] if organization else organizations_with_jobs(connection)
    erased = ErasedEvidence()
    for name in organizations:
        while not _erase_once(database, name, is_erased, now, dry_run, erased):
            pass
    if erased.jobs and not dry_run:
        with locked(database.lake.links_root, wait=True):  # another thread may be writing one of their links
            pass
        database.rows("PRAGMA wal_checkpoint(TRUNCATE)")  # the write-ahead log still contains overwritten data
    return erased


def _erase_once(  # noqa: PLR0917
    database: ControlDatabase,
    organization: str,
    is_erased: Callable[[Job, Row], bool],
    now: datetime,
    dry_run: bool,
    erased: ErasedEvidence,
) -> bool:
    """Delete rows of the current jobs. Returns False if some jobs changed concurrently; these keep their rows."""
    with database.snapshot() as connection:
        jobs = read_jobs(connection, organization)
    cuts = []
    for job in jobs:
        rows: list[Row] = orjson.loads(job.evidence)["rows"] if job.evidence else []
        kept = [row for row in rows if not is_erased(job, row)]
        if len(kept) < len(rows):
            subjects: list[Row] = orjson.loads(job.subjects)
            if len(subjects) > 1:  # the remaining subjects keep their numbers
                subjects = [one if any(_has_subject(row, one) for row in kept) else {} for one in subjects]
            cuts.append((job, _without(job, kept, subjects), len(rows) - len(kept)))
    if not cuts:
        return True
    with database.snapshot() if dry_run else database.transaction() as connection:
        cuts, all_cuts = [cut for cut in cuts if read_job(connection, organization, cut[0].id) == cut[0]], cuts
        for job, after, lost in cuts:
            erased.jobs += 1
            erased.rows += lost
            if after.evidence is None:
                erased.implementations += delete_contents(connection, job.id, dry_run)
            if not dry_run:
                delete_messages(connection, job.id)
                action = "cut_evidence" if after.status == job.status else "erase"
                change_job(connection, job, after, Change(action, SYSTEM, now))
    return len(cuts) == len(all_cuts)


def _without(job: Job, kept: list[Row], subjects: list[Row]) -> Job:
    """Return the job with only these rows and subjects. If no rows are left, everything that may have come from the
    visits is removed as well, and an open job is dismissed.
    """
    evidence = orjson.dumps({**orjson.loads(job.evidence or "{}"), "rows": kept}).decode()
    if kept:
        return replace(job, evidence=evidence, evidence_rows=len(kept), subjects=orjson.dumps(subjects).decode())
    return replace(
        job,
        status=next_status("erase", job.status) or job.status,
        title="A job whose evidence was deleted",
        summary="The visits that it was about were deleted, along with its evidence.",
        domain=None,
        short_code=None,
        path=None,
        fingerprint=None,  # if other visits show the same cause, they get another job
        subjects="[]",
        evidence=None,
        evidence_rows=0,
        outcome_status="none",
        outcome=None,
    )


def _has_subject(row: Row, subject: Row) -> bool:
    """Return whether an evidence row, in which untrusted text is encoded, is about a subject."""
    return all(row.get(name) in (value, sanitized(value)) for name, value in subject.items())


def _days(job: Job) -> tuple[date, date]:
    """Return the first and last day of the visits that a job's evidence counts."""
    scope = orjson.loads(job.evidence or "{}")["scope"]
    return date.fromisoformat(scope["start_date"]), date.fromisoformat(scope["end_date"])


def _is_about(job: Job, row: Row, visits: Criteria) -> bool:
    """Return whether a row may count visits that match the criteria. If the row has no link or domain, the job's are
    used.
    """
    first, last = _days(job)
    if (visits.since and last < visits.since) or (visits.before and first >= visits.before):
        return False
    short_code, domain = row.get("short_code", job.short_code), row.get("domain", job.domain)
    if visits.short_code is not None and short_code not in (visits.short_code, sanitized(visits.short_code)):
        return False
    if visits.no_domain and domain is not None:
        return False
    return visits.domain is None or (domain is not None and _host(domain) == _host(visits.domain))


def _host(text: str) -> str:
    return normalized_host(text) or str(sanitized(text.lower()))
