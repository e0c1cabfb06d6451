"""One write of a job: the job, its line of history and the messages to hooks, in the transaction of the caller."""

import sqlite3
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import msgspec

from service.clock import to_text
from service.hooks.outbox import ClaimedDelivery, enqueue
from service.jobs.records import SYSTEM, HistoryLine, Job, Step, job_content
from service.jobs.states import EVENTS, JobNotFound, next_status
from service.jobs.tables import add_history, implementation_in_force, insert_job, read_job, update_job


def create(connection: sqlite3.Connection, job: Job, step: Step) -> None:
    """Add a new job."""
    insert_job(connection, job)
    _record_step(connection, None, job, step)


def change(connection: sqlite3.Connection, before: Job, after: Job, step: Step) -> None:
    """Replace `before` by `after`, which becomes the next version of the job."""
    stored = replace(after, version=before.version + 1, updated_at=to_text(step.now))
    update_job(connection, stored)
    _record_step(connection, before, stored, step)


def mark_sent(connection: sqlite3.Connection, delivered: ClaimedDelivery, now: datetime) -> None:
    """Note that a hook took an approved job, in the transaction that records the delivery.

    Nothing happens if the message is about something else, or the job has another status.
    """
    if delivered.event != EVENTS["approve"] or delivered.job_id is None:
        return
    with suppress(JobNotFound):
        job = read_job(connection, delivered.organization, delivered.job_id)
        if status := next_status("deliver", job.status):
            step = Step("deliver", SYSTEM, now, delivered.hook_id)
            change(connection, job, replace(job, status=status), step)


def _record_step(connection: sqlite3.Connection, before: Job | None, after: Job, step: Step) -> None:
    """Write the line of history, and announce the change if it is an event."""
    action, actor, now, note = step
    if action is None:
        return
    status = before.status if before else None
    line = HistoryLine(now, actor.name, actor.kind, action, status, after.status, note, after.version)
    add_history(connection, after.id, line)
    if action in EVENTS:
        content = job_content(after, implementation_in_force(connection, after))
        enqueue(connection, after.organization, EVENTS[action], msgspec.to_builtins(content), now)
