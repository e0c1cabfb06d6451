"""Runs all detectors on a lake, and measures outcomes, once a day in the server, one organization at a time."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime, timedelta
from typing import Final

from data import Lake, TrafficError
from data.local_time import today
from data.store.lake_tables import rules_version_of
from data.tasks.lake_process import MAX_VISITS_IN_SERVER, LakeProcess
from queries import Engine, Warehouse, days_before
from service.core.clock import to_text
from service.core.control_database import ControlDatabase
from service.jobs.detection import Detection
from service.jobs.store import Jobs

QUERY_SECONDS: Final = 120.0
"""Time limit for each query of a detector or measurement, in seconds; they run one at a time in the background."""
FIRST_HOUR: Final = 3
"""First hour of the daily run, in the organization's zone: the previous day's visits have arrived by then."""
MAX_WAIT: Final = timedelta(hours=3)
"""Maximum wait for days to be judged, since the set of unjudged days last changed: a day with a damaged file is never
judged."""
_LOG: Final = logging.getLogger(__name__)


def last_run(database: ControlDatabase, organization: str) -> date | None:
    """Return the day of an organization's last recorded run, even if it failed; None if there is none. A run covers the
    28 days before its day.
    """
    rows = database.rows("SELECT max(day) FROM detection_runs WHERE organization = ?", [organization])
    return date.fromisoformat(rows[0][0]) if rows[0][0] else None


class DailyDetection:
    """Runs all detectors once a day for each organization in a lake. Servers of one lake share the work."""

    def __init__(
        self,
        lake: Lake,
        jobs: Jobs,
        clock: Callable[[], datetime],
        open_engine: Callable[[float], Engine],
        memory: str = "",
    ) -> None:
        """Prepare the runs. `open_engine` starts an engine with a time limit in seconds; starting it takes longer than
        most runs.

        With `memory`, such as "300MB", an organization with many visits is processed in a separate process, with that
        much memory for queries.
        """
        self.failures = 0
        """Number of failed detectors, measurements and whole runs since the start."""
        self._lake = lake
        self._jobs = jobs
        self._clock = clock
        self._open_engine = open_engine
        self._memory = memory
        self._process = LakeProcess(lake)
        self._cancelled = threading.Event()
        self._engine: Engine | None = None
        self._failed: set[str] = set()
        """Organizations whose last run raised an exception; they come last, so that they do not delay the others."""
        self._waiting: dict[str, tuple[frozenset[date], datetime]] = {}
        """By organization, the days that must be judged before its run, and when this set last changed."""

    def run_next(self) -> bool:
        """Run the detectors and measurements of one organization that is due today. Returns whether more may be due.

        An organization with examined days that are not judged yet waits, up to MAX_WAIT, because detectors leave out
        such days. The engine stays open until the last organization is done.
        """
        now = self._clock()
        for organization in sorted(self._lake.manifest.organizations.names(), key=self._failed.__contains__):
            zone = self._lake.manifest.organizations.zone(organization)
            day = today(zone, now)
            has_begun = today(zone, now - timedelta(hours=FIRST_HOUR)) == day
            is_due = has_begun and last_run(self._jobs.database, organization) != day
            if is_due and not self._waits(organization, day, now):
                self._failed.add(organization)
                try:
                    self._run(organization, day, now)
                except Exception:
                    self.failures += 1
                    raise
                self._failed.discard(organization)
                return True
        self.close()
        return False

    def interrupt(self) -> None:
        """Stop the current detector and all that follow. They run again at the next start."""
        self._cancelled.set()
        self._process.interrupt()
        if self._engine:
            self._engine.stop(self._cancelled)

    def close(self) -> None:
        """Close the engine, if one is open."""
        engine, self._engine = self._engine, None
        if engine:
            engine.close()

    def _waits(self, organization: str, day: date, now: datetime) -> bool:
        """Return whether the run still waits for examined days to be judged, such as after an import or an upgrade."""
        first, last = days_before(day)
        left = frozenset(
            one for one in self._lake.manifest.statistics.stored_span(organization).unjudged if first <= one <= last
        )
        before, since = self._waiting.get(organization, (None, now))
        self._waiting[organization] = left, since if left == before else now
        return bool(left) and now - self._waiting[organization][1] < MAX_WAIT

    def _run(self, organization: str, day: date, now: datetime) -> None:
        problems, files = list[str](), self._lake.manifest.files.live(organization, *days_before(day))
        if self._memory and sum(file.visits for file in files) > MAX_VISITS_IN_SERVER:
            try:
                self._process.run(detect_jobs, organization, self._memory, now.isoformat())
            except TrafficError as error:
                if self._cancelled.is_set():
                    return
                problems = [str(error)]
                if last_run(self._jobs.database, organization) != day:
                    _record_run(
                        self._lake, self._jobs, organization, day, now
                    )  # it runs again tomorrow, like everything that fails here
        else:
            engine = self._engine = self._engine or self._open_engine(QUERY_SECONDS)
            detection = Detection(engine, self._lake, self._jobs, organization, self._cancelled)
            problems = _run_all(detection, day, now)
        self.failures += len(problems)
        for problem in problems:
            _LOG.warning(problem)


def detect_jobs(lake: Lake, organization: str, memory: str, now: str) -> None:
    """Run one organization's detectors and measurements, for LakeProcess; `now` is in ISO 8601. Raises TrafficError if
    part of the run failed.
    """
    moment = datetime.fromisoformat(now)
    with (
        closing(ControlDatabase(lake)) as control,
        closing(Warehouse(lake, [], memory, QUERY_SECONDS, in_background=True)) as warehouse,
    ):
        detection = Detection(warehouse, lake, Jobs(control), organization)
        problems = _run_all(detection, lake.manifest.organizations.today(organization, moment), moment)
    if problems:
        raise TrafficError("; ".join(problems))


def _run_all(detection: Detection, day: date, now: datetime) -> list[str]:
    """Run the detectors, measure outcomes, and record the run. Returns the failures; none for a cancelled run,
    which is not recorded.
    """
    started_at, organization = time.monotonic(), detection.organization
    runs = detection.update_jobs(day, now)
    measured = detection.measure_outcomes(now)
    if detection.cancelled and detection.cancelled.is_set():
        return []
    findings, ms = sum(len(run.findings) for run in runs), round((time.monotonic() - started_at) * 1_000)
    _record_run(detection.lake, detection.jobs, organization, day, now, findings=findings, ms=ms)
    failed = [f"the detector {run.type} did not run for {organization}: {run.error}" for run in runs if run.error]
    return [*failed, *(f"the outcome of {job} was not measured: {error}" for job, error in measured.failed.items())]


def _record_run(
    lake: Lake, jobs: Jobs, organization: str, day: date, now: datetime, *, findings: int = 0, ms: int = 0
) -> None:
    jobs.database.rows(
        "INSERT OR REPLACE INTO detection_runs VALUES (?, ?, ?, ?, ?, ?)",
        [organization, day.isoformat(), rules_version_of(lake), findings, ms, to_text(now)],
    )
