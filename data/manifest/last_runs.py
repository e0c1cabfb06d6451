"""The times of the last runs of scheduled tasks."""

from datetime import datetime

from data.manifest.clock import format_time, parse_time
from data.manifest.database import Database


class LastRuns:
    """The times of the last runs, by task name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def time_of(self, task: str) -> datetime | None:
        """Return the time of a task's last run; None if it never ran."""
        ((at,),) = self._database.rows("SELECT max(at) FROM last_runs WHERE task = ?", [task])
        return parse_time(at)

    def note(self, task: str, now: datetime) -> None:
        """Record a run of a task."""
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO last_runs VALUES (?, ?)", [task, format_time(now)])
