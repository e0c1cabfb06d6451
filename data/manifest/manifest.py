"""The manifest: the SQLite database that records which Parquet files are live and which logs were imported.

It is used only through methods: no module outside this package runs SQL on it or uses its connections.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from data.errors import Conflict
from data.local_time import DEFAULT_ZONE
from data.manifest.arrivals import ArrivalCounts, Arrivals
from data.manifest.behaviour import Behaviour
from data.manifest.clock import format_time
from data.manifest.copies import Copies
from data.manifest.coverage import Coverage
from data.manifest.database import Connect, Database
from data.manifest.erasures import Erasures
from data.manifest.exclusions import Exclusions, note_excluded
from data.manifest.files import READERS_GRACE, Files, LandedFile, Move, insert_files
from data.manifest.generation import SharedDatabase, generation_problem
from data.manifest.kinds import ROLLUP_FILES, VISIT_FILES, expire, expire_of_day
from data.manifest.last_runs import LastRuns
from data.manifest.links import LinkFiles
from data.manifest.logs import Batch, Logs, put_batch, skip_rest
from data.manifest.objects import Objects
from data.manifest.organizations import Organizations, begin_epoch, check_zone_is
from data.manifest.pending import Pending
from data.manifest.policies import Policy
from data.manifest.rollups import RollupFiles
from data.manifest.schema import open_database
from data.manifest.statistics import Statistics
from data.rules.exclusions import NONE_EXCLUDED, ExcludedVisits

_SHRINK_WAIT: Final = timedelta(seconds=0.2)
"""Maximum time to block writers while the write-ahead log is emptied."""


class Manifest:
    """An open manifest. It is thread-safe, and several processes may open it at the same time."""

    def __init__(
        self, path: Path, refuse_new: str = "", connect: Connect = open_database, *, is_shared: bool = False
    ) -> None:
        """Open or create the manifest; the arguments and exceptions are the same as for Database.

        With `is_shared`, the lake is used by several programs: the manifest cannot be rebuilt while it is open, and is
        not written to if it is outdated. Raises the exceptions of SharedDatabase.
        """
        self._path = path
        self._database = database = (SharedDatabase if is_shared else Database)(path, refuse_new, connect)
        with ExitStack() as opened:
            opened.callback(database.close)
            self.organizations = Organizations(database)  # opens another connection
            opened.callback(self.organizations.close)
            self._opened = opened.pop_all()
        self.files = Files(database)
        self.links = LinkFiles(database)
        self.rollups = RollupFiles(database)
        self.logs = Logs(database)
        self.objects = Objects(database)
        self.pending = Pending(database)
        self.arrivals = ArrivalCounts(database)
        self.coverage = Coverage(database, self.organizations)
        self.behaviour = Behaviour(database)
        self.exclusions = Exclusions(database)
        self.erasures = Erasures(database)
        self.copies = Copies(database)
        self.last_runs = LastRuns(database)
        self.statistics = Statistics(database)

    def locked(self) -> AbstractContextManager[None]:
        """Keep other threads and processes from moving and registering files. Raises OSError if the manifest was
        replaced.
        """
        return self._database.locked()

    def exclusive(self) -> AbstractContextManager[object]:
        """Lock as `locked` does, for changes to the lake's files. Raises OutdatedManifest if nothing may be written."""
        return self._database.transaction()

    def check_current(self) -> None:
        """Raise OutdatedManifest if nothing may be written. Only a manifest opened with `is_shared` is checked."""
        self._database.check_current()

    def check_writable(self) -> None:
        """Commit a trivial update. Raises sqlite3.OperationalError if the disk fails, and the exceptions of
        `check_current`.
        """
        with self._database.transaction() as db:
            db.execute("UPDATE generation SET number = number")

    @property
    def problem(self) -> str:
        """The reason why nothing may be written into the lake, with the remedy, as a sentence; "" if all is well."""
        return generation_problem(self._database, self._path.parent)

    def land(
        self,
        organization: str,
        batch: Batch,
        continues: Batch | None,
        move: Move,
        *,
        zone: str = DEFAULT_ZONE,
        arrived: Arrivals | None = None,
        excluded: ExcludedVisits = NONE_EXCLUDED,
    ) -> None:
        """Register a batch (as put_batch does) and its files, dated in `zone`, in one transaction.

        `excluded` is the number of visits set aside by each of the owner's rules. The file with the visit from the
        unfinished last line of `continues` expires, since this batch has read that line again. Raises the exceptions of
        put_batch, and ZoneChanged if the organization has another zone.
        """
        with self._database.transaction() as db:
            check_zone_is(db, organization, zone)
            put_batch(db, organization, batch, arrived)
            note_excluded(db, organization, excluded)
            if continues is not None:
                expiry = format_time(datetime.fromisoformat(batch.imported_at) + READERS_GRACE)
                db.execute(
                    "UPDATE files SET deletable_at = ? WHERE unfinished_of = ? AND deletable_at IS NULL",
                    [expiry, continues.id],
                )
            insert_files(db, move())

    def replace(
        self, files: Sequence[LandedFile], move: Move, policy: Policy, now: datetime, grace: timedelta
    ) -> list[LandedFile]:
        """Replace live files of one organization atomically and return the new files. The old files can be deleted
        after `grace`.

        Raises Conflict unless all `files` are live.
        """
        organization, expiry = files[0].organization, now + grace
        with self._database.transaction() as db:
            for file in files:
                if not expire(db, VISIT_FILES, file.path, expiry):
                    raise Conflict(f"{file.path} has since been replaced by another process; try again.")
            moved = move()
            insert_files(db, moved)
            if policy.changes_answers or policy.judges:
                begin_epoch(db, organization)
            if policy.changes_answers:  # rollups of these months are out of date
                for month in {file.day.replace(day=1) for file in files}:
                    expire_of_day(db, ROLLUP_FILES, organization, month, expiry)
            if policy.erases:
                stay = {file.unfinished_of for file in moved}
                skip_rest(db, {file.unfinished_of for file in files if file.unfinished_of is not None} - stay)
                db.execute(
                    "UPDATE copies SET erasures = erasures + 1, due_since = coalesce(due_since, ?) "
                    "WHERE organization = ?",
                    [format_time(now), organization],
                )
        return moved

    def shrink(self) -> bool:
        """Empty the write-ahead log, which may contain erased data.

        Returns False if another connection is reading; the caller should then try again.
        """
        wait = _SHRINK_WAIT.total_seconds()
        with closing(sqlite3.connect(self._path, timeout=wait, isolation_level=None)) as db:
            ((is_busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not is_busy

    def close(self) -> None:
        """Close the database."""
        self._opened.close()
