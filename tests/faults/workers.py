"""Functions for processes that tests trace and kill: the program from its entry point, and parts of a server."""

import ctypes
import functools
import io
import os
import resource
import sqlite3
import sys
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, redirect_stdout, suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import data.ingest.importer
import data.publish.publisher
import data.rules.ip_verification
import data.store.landing
import data.tasks.compaction
import service.ops.commands.erase
import service.ops.maintenance
from data import Lake
from data.ingest.follower import Follower
from data.ingest.importer import Options
from data.ingest.live import LiveIngest
from data.store.pending import flush_all
from service.commands import main
from service.core.clock import utc_now
from service.jobs.commands.opening import opened_jobs
from service.jobs.records import COMMAND_LINE
from service.jobs.states import APPROVE_FIX, JobConflict
from tests.faults import chaos
from tests.faults.lakes import report
from tests.support.manifests import database_of

PR_SET_PTRACER, ANY_PROCESS = 0x59616D61, -1
data.rules.ip_verification.load = functools.cache(data.rules.ip_verification.load)


with suppress(SystemExit), redirect_stdout(io.StringIO()):  # loads what a command imports when it first runs
    sys.argv = ["traffic", "import", "--help"]
    main()


def begin(folder, function, words):
    """Run one of these functions in a folder, then exit. The process first waits until stderr, a pipe, is closed."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(ANY_PROCESS), 0, 0, 0)
    os.chdir(folder)
    os.environ["TMPDIR"] = folder
    sys.dont_write_bytecode = True  # so that the first run of a test makes the same system calls as the next
    os.read(2, 1)
    os.dup2(1, 2)
    (globals().get(function) or getattr(chaos, function))(*words)
    sys.exit()


class InThisThread(ThreadPoolExecutor):
    """A pool that does work in the calling thread, so that every system call always has the same place and number."""

    def submit(self, work, *words):
        future = Future()
        future.set_result(work(*words))
        return future


def traffic(*words):
    """Run the program, unmodified."""
    sys.argv = ["traffic", *words]
    main()


def serve(settings):
    """Run the server with these settings on a free port."""
    os.environ.update(settings)
    service.ops.maintenance.FLUSH_AFTER = timedelta(seconds=1)
    traffic("serve", "--port", "0", "--lake", "lake")


def churn():
    """Land, merge and immediately delete files, again and again."""
    data.tasks.compaction.READERS_GRACE = timedelta(0)
    lake = Lake(Path("lake"))
    intake, compactor = LiveIngest(lake), data.tasks.compaction.Compactor(lake)
    while True:
        report(intake, uuid.uuid4().hex)
        flush_all(lake)
        compactor.run()
        compactor.sweep()
        say("churned")
        time.sleep(0.2)


def in_order(function, *words):
    """Run one of these functions in a single thread; an erasure does not wait for queries to end."""
    for module in (data.store.landing, data.ingest.importer, data.publish.publisher):
        module.ThreadPoolExecutor = InThisThread
    data.ingest.importer.MAX_PARALLEL_BLOCKS = 1
    service.ops.commands.erase.time = SimpleNamespace(sleep=lambda _: None)
    globals()[function](*words)


def limited(size, function, *words):
    """Run one of these functions with a file size limit."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    in_order(function, *words)


def say(text):
    os.write(1, f"{text}\n".encode())


def follow(root, path, domain=""):
    """Land the new lines of a log and of its renamed predecessor."""
    lake = Lake(Path(root))
    follower = Follower(lake, data.ingest.importer.Importer(lake), Path(path), Options("acme", domain), notify=say)
    follower.tick()
    follower.close()
    if follower._last_error:
        sys.exit(1)
    say(f"followed {follower.totals.visits}")


def approve(root, job_id):
    """Approve a job, as the pages and the API do."""
    try:
        with opened_jobs(Path(root), must_write=True) as jobs:
            record = jobs.act("acme", job_id, APPROVE_FIX, COMMAND_LINE, utc_now())
    except JobConflict as error:
        sys.exit(str(error))
    say(f"{job_id} is {record.status}: {record.title}")


def erase_published(lake, domain):
    """Erase from a published lake, after recording that its copy has moved to the folder `copy`."""
    with closing(Lake(Path(lake)).manifest) as manifest, database_of(manifest).transaction() as db:
        db.execute("UPDATE copies SET target = ?", [str(Path("copy").absolute())])
    traffic("erase", "--org", "acme", "--domain", domain, "--yes", "--lake", lake)


def keep(root, *batches):
    """Store batches of visits as the server does, with one commit each, then move them into files."""
    lake = Lake(Path(root))
    intake, refused = LiveIngest(lake), 0
    for batch in batches:
        try:
            report(intake, batch)
        except (OSError, sqlite3.OperationalError):
            refused += 1
        else:
            say(f"kept {batch}")
    flush_all(lake)
    say("flushed")
    sys.exit(refused > 0)
