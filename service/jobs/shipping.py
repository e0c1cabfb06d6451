"""Redirects that were shipped but not marked so: the log shows since when a dead path is answered."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from data import BadInput, Lake
from data.local_time import today
from data.store.coverage import covered_days
from queries import Engine, redirected
from service.jobs.records import SYSTEM
from service.jobs.states import JobConflict
from service.jobs.store import Jobs

DAYS_WITHOUT: Final = 14
"""On these days before the approval, all of which must be covered, the path was never redirected."""
MIN_REDIRECTED: Final = 3
"""Requests that must have been redirected since."""


def mark_shipped(  # noqa: PLR0917  # as measure_outcomes
    engine: Engine, lake: Lake, jobs: Jobs, organization: str, now: datetime, cancelled: threading.Event | None = None
) -> list[str]:
    """Mark attached redirects as shipped that work by the log; the ids of their jobs. Raises what `detect` raises."""
    marked = []
    for job_id, number, subject, approved_at in jobs.attached_redirects(organization):
        at = shipped_by_log(engine, lake, organization, subject, approved_at, now, cancelled)
        if at is None:
            continue
        with suppress(BadInput, JobConflict):  # it was changed meanwhile, or is from more than a year ago
            jobs.set_implementation_status(
                organization, job_id, number, SYSTEM, now, status="shipped", shipped_at=at, note="by the log"
            )
            marked.append(job_id)
    return marked


def shipped_by_log(  # noqa: PLR0917  # as mark_shipped, of one path
    engine: Engine,
    lake: Lake,
    organization: str,
    subject: Mapping[str, str | None],
    approved_at: datetime,
    now: datetime,
    cancelled: threading.Event | None = None,
) -> datetime | None:
    """When the path of a subject was first redirected after its approval; None if it was before, or hardly since.

    Raises what `detect` raises.
    """
    zone = lake.manifest.zone(organization)
    approved_on, end = today(zone, approved_at), today(zone, now)
    first = approved_on - timedelta(days=DAYS_WITHOUT)
    covered = covered_days(lake.manifest, organization, subject["domain"] or "", first, approved_on - timedelta(days=1))
    rows = redirected(engine, organization, subject, (first, end), cancelled)
    if len(covered) < DAYS_WITHOUT or any(day < approved_on for day, _, _ in rows):
        return None
    if sum(number for _, number, _ in rows) < MIN_REDIRECTED:
        return None
    return max(approved_at, min(at for _, _, at in rows).replace(tzinfo=UTC))
