"""A server's background work on its lake, in separate threads. TASKS lists the tasks and their intervals.

The tasks are implemented in data/, queries/, service/jobs/ and service/mail/.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from typing import Final, NamedTuple

from data import Lake, LakeDamaged, TrafficError
from data.disk.files import RegisteredFile
from data.ingest.visitor_ids import delete_old_salts
from data.manifest.clock import is_recent
from data.publish.publisher import LakePublisher, PublishInterrupted, follow_erasures
from data.store.link_files import fold_due
from data.store.pending import flush_all
from data.store.rollups import damaged_rollups
from data.tasks.compaction import Compactor
from data.tasks.lake_process import LakeProcess
from data.tasks.retention import apply_retention_unattended
from queries import RelationCounter, RollupBuilder
from service.core.clock import Clock
from service.core.control_database import ControlDatabase
from service.core.threads import in_thread
from service.jobs.daily import DailyDetection
from service.jobs.erasure import expire_evidence
from service.jobs.implementation_tables import organizations_that_want_links
from service.jobs.silence import update_silences
from service.jobs.store import Jobs
from service.mail.weekly import WeeklyMail

_LOG: Final = logging.getLogger(__name__)
FLUSH_AFTER: Final = timedelta(seconds=10)
FLUSH_VISITS: Final = 20_000
CHECK_AFTER: Final = timedelta(hours=24)
"""Interval after which the checksum of each file is verified again."""

START_DELAY_SECONDS: Final = 1.0
"""Delay before the background work starts, so that it does not slow down the first requests."""

QUIET_PERIOD: Final = timedelta(minutes=10)
"""Time without new visits after which the files of a past day are merged, and rollups of its visits built."""
TURN_SECONDS: Final = 5.0
"""Time after which a task's turn ends with its current step, so that the other tasks of its group get a turn."""


class Maintenance:
    """Runs the background work on one lake. Belongs to one event loop."""

    def __init__(
        self,
        lake: Lake,
        control: ControlDatabase,
        clock: Clock,
        *,
        retention_days: int | None = None,
        detection: DailyDetection | None = None,
        mail: WeeklyMail | None = None,
        counter: RelationCounter | None = None,
        publisher: LakePublisher | None = None,
    ) -> None:
        """Without `detection`, no jobs are detected; without `mail`, no mail is sent.

        With `counter`, a cluster counts the visits for large rollups; with `publisher`, visits are published.
        """
        self._lake = lake
        self._control = control
        self._clock = clock
        self._retention_days = retention_days
        self._detection = detection
        self._mail = mail
        self._publisher = publisher
        self._to_publish: list[str] = []
        self._process, self._merging_process = LakeProcess(lake), LakeProcess(lake)
        self._merger = Compactor(lake, clock, QUIET_PERIOD, self._merging_process)
        self._compactor = Compactor(lake, clock, QUIET_PERIOD, self._process)
        self._rollups = RollupBuilder(lake, clock, QUIET_PERIOD, counter, self._process)
        self._groups = [(every, [*group]) for every, group in groupby(TASKS, lambda task: task.every)]
        self._threads = ThreadPoolExecutor(len(self._groups), thread_name_prefix="maintenance")
        self._running: list[asyncio.Task[None]] = []
        self._damaged_files: set[str] = set()
        self._reported_damage: set[str] = set()
        self._recheck_queue: list[RegisteredFile] = []
        self._last_warnings: dict[Step, str] = {}

    def begin(self) -> None:
        """Start the background work."""
        self._running = [asyncio.create_task(self._repeat(*one)) for one in self._groups]

    async def end(self) -> None:
        """Stop the background work, then flush the pending visits."""
        for running in self._running:
            running.cancel()
        processes = self._process, self._merging_process
        parts = (*processes, self._merger, self._compactor, self._rollups, self._publisher, self._detection)
        for part in (*parts, self._mail):
            if part:
                part.interrupt()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        if self._detection:
            self._detection.close()
        await asyncio.to_thread(self._run_safely, Maintenance._flush)

    async def _repeat(self, seconds: int, tasks: Sequence["Task"]) -> None:
        """At each interval, run the tasks of a group in turn until none has more to do."""
        await asyncio.sleep(START_DELAY_SECONDS)
        while True:
            while any([await self._take_turn(task.step) for task in tasks]):
                pass
            await asyncio.sleep(seconds)

    async def _take_turn(self, step: "Step") -> bool:
        """Run a task's step until it has no more to do, or TURN_SECONDS have passed. Returns whether there is more.

        After each step, sleep for as long as the step took, but at most TURN_SECONDS, so that queries get half of the
        machine.
        """
        ends_at, has_more = time.monotonic() + TURN_SECONDS, True
        while has_more:
            started_at = time.monotonic()
            has_more = await in_thread(self._threads, self._run_safely, step)
            await asyncio.sleep(min(time.monotonic() - started_at, TURN_SECONDS))
            if time.monotonic() >= ends_at:
                break
        return has_more

    def _run_safely(self, step: "Step") -> bool:
        """Run one step; return whether there is more to do. Errors are only logged: the next round tries again."""
        try:
            has_more = bool(step(self))
        except LakeDamaged as error:
            if str(error) not in self._reported_damage:  # the damage stays until the lake is repaired
                self._reported_damage.add(str(error))
                _LOG.warning(str(error))
        except (TrafficError, OSError, sqlite3.Error) as error:
            self._warn_once(step, str(error))
        except Exception as error:  # noqa: BLE001  # a bug must not end the task for good
            self._warn_once(step, f"background work failed: {type(error).__name__}: {error}")
        else:
            self._last_warnings.pop(step, None)
            return has_more
        return False

    def _warn_once(self, step: "Step", problem: str) -> None:
        """Log a problem of a task, unless it is the same as last time."""
        if self._last_warnings.get(step) != problem:
            self._last_warnings[step] = problem
            _LOG.warning(problem)

    def flush_if_due(self) -> None:
        """Write live visits to files, once the oldest has waited for ten seconds or there are 20,000."""
        visits, oldest = self._lake.manifest.pending.backlog()
        if oldest and (visits >= FLUSH_VISITS or not is_recent(oldest, FLUSH_AFTER, self._clock())):
            self._flush()

    def _flush(self) -> None:
        flush_all(self._lake)

    def merge_open_days(self) -> bool:
        """Merge the files of days that still receive visits."""
        return self._merger.run(wait=False, limit=1, are_past=False).partitions > 0

    def close_days(self) -> bool:
        """Merge and judge past days."""
        return self._compactor.run(wait=False, limit=1, are_past=True).partitions > 0

    def build_rollups(self) -> bool:
        """Precompute counts of past days."""
        return self._rollups.run(wait=False, limit=1) > 0

    def recheck_rollups(self) -> None:
        """Verify rollups once a day. A damaged rollup is logged and rebuilt."""
        for path in damaged_rollups(self._lake, before=self._clock() - CHECK_AFTER):
            raise LakeDamaged(f"{self._lake.root / path} was damaged; its visits are counted again.")

    def recheck_files(self) -> bool:
        """Verify each file once a day. A damaged file is logged once, then skipped."""
        if not self._recheck_queue:
            before = self._clock() - CHECK_AFTER
            old = self._lake.manifest.files.due_for_check(before)
            self._recheck_queue = [file for file in reversed(old) if file.path not in self._damaged_files]
        if not self._recheck_queue:
            return False
        file = self._recheck_queue.pop()
        try:
            self._lake.recheck(file)
        except LakeDamaged:
            if self._lake.manifest.files.is_live(file.path):  # not replaced meanwhile
                self._damaged_files.add(file.path)
                raise
        return True

    def publish(self) -> bool:
        """Publish new and changed visits, one organization after another, if TRAFFIC_PUBLISH is set."""
        if self._publisher is None:
            return False
        self._to_publish = self._to_publish or self._lake.manifest.organizations.names()
        if self._to_publish:
            with suppress(PublishInterrupted):
                self._publisher.publish(self._to_publish.pop(), wait=False)
        return bool(self._to_publish)

    def follow_erasures(self) -> None:
        """Apply erasures to published copies that were unreachable."""
        for followed in follow_erasures(self._lake):
            if followed.problem:
                name, organization, problem = followed
                raise TrafficError(f"{name} may hold erased visits of {organization}: {problem}")

    def forget_salts(self) -> None:
        """Delete salts of visitor ids once they are 48 hours old."""
        delete_old_salts(self._lake.salts, self._clock())

    def retain(self) -> None:
        """Delete visits older than TRAFFIC_RETENTION_DAYS, if it is set, and the evidence for jobs about those days."""
        if self._retention_days is not None:
            now = self._clock()
            retained = apply_retention_unattended(self._lake, self._retention_days, now)
            expire_evidence(self._control, retained.before, now)

    def sweep(self) -> None:
        """Delete replaced files that no query reads any more."""
        self._compactor.sweep()

    def detect_jobs(self) -> bool:
        """Run the detectors of jobs once a day, and measure shipped implementations."""
        return self._detection is not None and self._detection.run_next()

    def find_silences(self) -> None:
        """Create a job for each source of visits that has fallen silent; resolve it when visits arrive again."""
        update_silences(self._lake, Jobs(self._control), self._clock())

    def write_links(self) -> None:
        """Write redirect links that a kill or a full disk left unwritten."""
        problem, jobs = None, Jobs(self._control)
        for organization in organizations_that_want_links(self._control):
            try:
                jobs.write_links(organization)
            except (TrafficError, OSError, sqlite3.Error) as error:  # continue with the other organizations
                problem = error
        if problem:
            raise problem

    def fold_links(self) -> None:
        """Fold the latest changes to links into the files with all links."""
        fold_due(self._lake, self._clock())

    def send_mail(self) -> None:
        """Send the weekly reports, if mail is configured."""
        if self._mail:
            self._mail.send_due()


Step = Callable[[Maintenance], bool | None]
"""Runs one step of a task. Returns whether there is more to do now; None means no."""


class Task(NamedTuple):
    """A background task; the first line of its step's docstring describes it."""

    name: str
    every: int  # seconds between two rounds; tasks with the same interval take turns, independently of other tasks
    step: Step

    @property
    def what(self) -> str:
        """The task's description, as a sentence."""
        return (self.step.__doc__ or "").partition("\n")[0]


TASKS: Final = (
    Task("flush", 1, Maintenance.flush_if_due),
    Task("links", 15, Maintenance.write_links),
    Task("merge", 15, Maintenance.merge_open_days),
    Task("publish", 20, Maintenance.publish),
    Task("close days", 30, Maintenance.close_days),
    Task("rollups", 30, Maintenance.build_rollups),
    Task("recheck files", 30, Maintenance.recheck_files),
    Task("recheck rollups", 30, Maintenance.recheck_rollups),
    Task("erasures", 60, Maintenance.follow_erasures),
    Task("fold links", 60, Maintenance.fold_links),
    Task("jobs", 600, Maintenance.detect_jobs),
    Task("silence", 600, Maintenance.find_silences),
    Task("mail", 600, Maintenance.send_mail),
    Task("salts", 900, Maintenance.forget_salts),
    Task("retention", 900, Maintenance.retain),
    Task("sweep", 900, Maintenance.sweep),
)
"""The background tasks, by interval."""
