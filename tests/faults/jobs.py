"""A job that waits for a decision, a hook that waits for it, and what became of both."""

import sqlite3
from contextlib import closing

from data import Lake
from service.hooks.registry import Hooks
from service.setting_values import parse_networks
from tests.support.control import open_store
from tests.support.lakes import opened

JOB = "job_00000000000000000001"
HOOK_NETWORKS = "127.0.0.0/8"
"""Where the hook is: nobody listens there."""


def undecided_job(folder):
    """A new job, and a hook that is sent what is approved."""
    Lake(folder / "lake", create=True).manifest.close()
    with opened(folder / "lake") as lake:
        with open_store(Hooks, lake, parse_networks(HOOK_NETWORKS)) as hooks:
            hooks.create("acme", "receiver", "http://127.0.0.1:9/")
        with closing(sqlite3.connect(lake.root / "control.sqlite")) as database, database:
            database.execute(
                "INSERT INTO jobs (id, organization, type, status, title, created_at, updated_at) "
                "VALUES (?, 'acme', 'manual', 'new', 'A job', '2026-03-01T00:00:00', '2026-03-01T00:00:00')",
                [JOB],
            )


def job_and_messages(folder):
    """The status and version of the job, the moves in its history, and the events in the outbox: they go together."""
    with opened(folder / "lake") as lake, closing(sqlite3.connect(lake.root / "control.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (job,) = database.execute("SELECT status, version FROM jobs").fetchall()
        moves = database.execute("SELECT from_status, to_status, version FROM job_history").fetchall()
        messages = database.execute("SELECT event, job_id FROM deliveries").fetchall()
        return {"job": (job, moves, messages)}


def is_approved(state):
    """Whether it is approved, and the hook has exactly one message of it; else it must be as new as it was."""
    if state["job"] == (("new", 1), [], []):
        return False
    assert state["job"] == (("approved", 2), [("new", "approved", 2)], [("job.approved", JOB)])
    return True
