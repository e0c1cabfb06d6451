"""The background work of a server on its lake, in its own threads: this file decides when to run each task.

The tasks flush live visits to Parquet, compact files, build rollups, recheck files, delete old salts and visits, and
run the detectors of jobs. They are implemented in data/, queries/ and jobs/.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final

from data import Lake, LakeDamaged, TrafficError
from data.ingest.visitor_ids import delete_old_salts
from data.maintenance.compaction import Compactor
from data.maintenance.retention import apply_retention_unattended
from data.store.clock import is_recent
from data.store.lake import StoredFile
from data.store.link_files import all_stored_links
from data.store.pending import backlog, flush_all
from data.store.rollups import damaged_rollups
from queries import RelationCounter, RollupBuilder
from service.clock import Clock
from service.control_database import ControlDatabase
from service.jobs.detection import DailyDetection
from service.jobs.erasure import expire_evidence
from service.mail.weekly import WeeklyMail

_LOG: Final = logging.getLogger(__name__)
FLUSH_AFTER: Final = timedelta(seconds=10)
FLUSH_VISITS: Final = 50_000
CHECK_AFTER: Final = timedelta(hours=24)
"""How often the checksum of each file is verified again."""

START_DELAY_SECONDS: Final = 1.0
"""Background work starts after this, so that it does not slow down the first requests."""

QUIET_PERIOD: Final = timedelta(minutes=10)
"""How long a past day must be without new visits before its files are merged and counted."""
TURN_SECONDS: Final = 5.0
"""How long a task goes on while others of its group wait, so that none waits for one that never ends."""

MaintenanceTask = Callable[[], bool]
"""Does one step of a task. Returns whether there is more to do now."""


class Maintenance:
    """Runs the background work on one lake. Belongs to one event loop."""

    def __init__(  # noqa: PLR0917
        self,
        lake: Lake,
        control: ControlDatabase,
        clock: Clock,
        retention_days: int | None,
        detection: DailyDetection | None = None,
        mail: WeeklyMail | None = None,
        counter: RelationCounter | None = None,
    ) -> None:
        """Without `detection`, no jobs are looked for; without `mail`, none is sent.

        With `counter`, a cluster counts the rollups of many visits.
        """
        self._lake = lake
        self._control = control
        self._clock = clock
        self._retention_days = retention_days
        self._detection = detection
        self._mail = mail
        self._compactor = Compactor(lake, clock, QUIET_PERIOD)
        self._rollups = RollupBuilder(lake, clock, QUIET_PERIOD, counter)
        self._schedule: Sequence[tuple[float, Sequence[MaintenanceTask]]] = [
            (1, [self._flush_if_due]),
            (30, [self._compact, self._build_rollups, self._recheck_files, self._recheck_rollups]),
            (900, [self._forget_salts, self._retain, self._sweep]),
            (900, [self._detect_jobs]),
            *([(600, [mail.send_due])] if mail else []),
        ]
        """Groups of tasks, with the seconds to wait between two rounds of a group. No group waits for another."""
        self._threads = ThreadPoolExecutor(len(self._schedule), thread_name_prefix="maintenance")
        self._tasks: list[asyncio.Task[None]] = []
        self._damaged_files: set[str] = set()
        self._reported_damage: set[str] = set()
        self._recheck_queue: list[StoredFile] = []
        self._last_warnings: dict[MaintenanceTask, str] = {}

    def begin(self) -> None:
        """Start the background work."""
        self._tasks = [asyncio.create_task(self._repeat(*one)) for one in self._schedule]

    async def end(self) -> None:
        """Stop the background work, then flush the pending visits."""
        for task in self._tasks:
            task.cancel()
        self._compactor.interrupt()
        self._rollups.interrupt()
        if self._detection:
            self._detection.interrupt()
        if self._mail:
            self._mail.interrupt()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        if self._detection:
            self._detection.close()
        await asyncio.to_thread(self._run_safely, self._flush)

    async def _repeat(self, seconds: float, tasks: Sequence[MaintenanceTask]) -> None:
        """Let all tasks take turns until none has more to do, again and again."""
        await asyncio.sleep(START_DELAY_SECONDS)
        while True:
            while any([await self._take_turn(work) for work in tasks]):
                pass
            await asyncio.sleep(seconds)

    async def _take_turn(self, work: MaintenanceTask) -> bool:
        """Run steps for TURN_SECONDS, at least one. Returns whether there is more to do."""
        ends_at = time.monotonic() + TURN_SECONDS
        while has_more := await self._run_step(work):
            if time.monotonic() >= ends_at:
                break
        return has_more

    async def _run_step(self, work: MaintenanceTask) -> bool:
        """Run one step, then sleep as long as it took, so that queries get at least half of the machine."""
        started_at = time.monotonic()
        has_more = await asyncio.get_running_loop().run_in_executor(self._threads, self._run_safely, work)
        await asyncio.sleep(time.monotonic() - started_at)
        return has_more

    def _run_safely(self, work: MaintenanceTask) -> bool:
        """Run one step. Errors are logged, not raised: the next round tries again."""
        try:
            has_more = work()
        except LakeDamaged as error:
            self._warn_of_damage_once(str(error))
        except (TrafficError, OSError, sqlite3.Error) as error:
            self._warn_once(work, str(error))
        except Exception as error:  # noqa: BLE001  # a bug must not end the task for good
            self._warn_once(work, f"background work failed: {type(error).__name__}: {error}")
        else:
            self._last_warnings.pop(work, None)
            return has_more
        return False

    def _warn_once(self, work: MaintenanceTask, problem: str) -> None:
        """Log a problem of a task, unless it is the same as last time."""
        if self._last_warnings.get(work) != problem:
            self._last_warnings[work] = problem
            _LOG.warning(problem)

    def _warn_of_damage_once(self, damage: str) -> None:
        """Log damage once, whichever task finds it: it stays until the lake is repaired."""
        if damage not in self._reported_damage:
            self._reported_damage.add(damage)
            _LOG.warning(damage)

    def _flush_if_due(self) -> bool:
        visits, oldest = backlog(self._lake.manifest)
        if oldest and (visits >= FLUSH_VISITS or not is_recent(oldest, FLUSH_AFTER, self._clock())):
            self._flush()
        return False

    def _flush(self) -> bool:
        flush_all(self._lake)
        return False

    def _compact(self) -> bool:
        return self._compactor.run(wait=False, limit=1).partitions > 0

    def _build_rollups(self) -> bool:
        return self._rollups.run(wait=False, limit=1) > 0

    def _recheck_rollups(self) -> bool:
        """Verify rollups that were not checked for CHECK_AFTER. A damaged one is logged and built again."""
        for path in damaged_rollups(self._lake, before=self._clock() - CHECK_AFTER):
            raise LakeDamaged(f"{self._lake.root / path} was not what was written; its visits are counted again.")
        return False

    def _recheck_files(self) -> bool:
        """Verify one file that was not checked for CHECK_AFTER. A damaged one is logged and skipped from then on."""
        if not self._recheck_queue:
            before = self._clock() - CHECK_AFTER
            old: list[StoredFile] = [*all_stored_links(self._lake, before=before)]
            old += self._lake.manifest.unchecked_files(before)
            self._recheck_queue = [file for file in reversed(old) if file.path not in self._damaged_files]
        if not self._recheck_queue:
            return False
        file = self._recheck_queue.pop()
        try:
            self._lake.recheck(file)
        except LakeDamaged:
            if self._lake.manifest.is_live(file.path):  # not replaced meanwhile
                self._damaged_files.add(file.path)
                raise
        return True

    def _forget_salts(self) -> bool:
        delete_old_salts(self._lake.salts, self._clock())
        return False

    def _retain(self) -> bool:
        if self._retention_days is not None:
            now = self._clock()
            retained = apply_retention_unattended(self._lake, self._retention_days, now)
            expire_evidence(self._control, retained.before, now)
        return False

    def _sweep(self) -> bool:
        self._compactor.sweep()
        return False

    def _detect_jobs(self) -> bool:
        return self._detection is not None and self._detection.run_next()
