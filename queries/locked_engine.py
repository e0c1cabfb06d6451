"""A DuckDB engine that can only read some folders of a lake, with limits on memory, disk and time."""

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from data import BadInput, TrafficError
from data.disk.files import link_problem
from data.store.layout import LakeFolders, spill_folder
from data.store.rollups import ROLLUPS_FOLDER
from queries.definitions import define_relations
from queries.snapshot import Snapshot, empty_snapshot, set_variables
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.watchdog import Watchdog

QUERY_TIMEOUT_SECONDS: Final = 10.0
MAX_IDLE_CURSORS: Final = 4
"""Maximum number of idle cursors that wait for the next query of their snapshot; the oldest is closed first."""
MAX_SPILL: Final = "4GB"
"""Maximum disk space for what an engine's queries spill: about as much as a disk writes within the timeout."""

_DENIED_FILE: Final = re.compile(r'Cannot access file "([^"]+)"')


class QueryTimeout(TrafficError):
    """A query exceeded its time limit."""


class QueryFailed(TrafficError):
    """The engine rejected a query or could not finish it."""


class OutOfMemory(QueryFailed):
    """A query needs more memory and disk space than the engine has left. It may succeed alone or for fewer days."""


class FilesGone(QueryFailed):
    """A file was deleted while it was being read. A retry with a new snapshot works."""


class EngineLost(QueryFailed):
    """The engine failed because of another query and was replaced. A retry works."""


class _IdleCursor(NamedTuple):
    """An idle cursor with the variables of a snapshot."""

    engine: duckdb.DuckDBPyConnection
    snapshot: Snapshot
    cursor: duckdb.DuckDBPyConnection


class LockedEngine:
    """Runs SQL on the relations of the prelude. Safe to use from several threads: each query has its own cursor.

    The engine contains only definitions, no data, so it is simply replaced after a fatal error.
    """

    def __init__(
        self,
        folders: LakeFolders,
        organization: str | None,
        values: list[TrafficValue] | None = None,
        memory: str | None = None,
        seconds: float = QUERY_TIMEOUT_SECONDS,
        *,
        in_background: bool = False,
    ) -> None:
        """Define the relations, then lock the engine.

        `organization`: the only organization whose files it can open; None: all organizations. `memory`, such as
        "300MB", limits all queries together; None: DuckDB's default. `seconds` limits each query. With `in_background`,
        the engine uses a single core and caches no file footers in memory. Raises QueryFailed if the engine cannot
        start, and BadInput if the lake cannot be written.
        """
        self._folders = folders
        self._readable = _readable(folders, organization)
        self._memory = memory
        self._seconds = seconds
        self._in_background = in_background
        self.traffic_values = tuple(load_traffic_values() if values is None else values)
        try:
            self._duckdb = self._new()
        except duckdb.Error as error:
            raise QueryFailed(f"the query engine cannot start: {' '.join(str(error).split())}") from error
        self._replace_lock = threading.Lock()
        self._idle: list[_IdleCursor] = []
        self._idle_lock = threading.Lock()
        try:
            self._watchdog = Watchdog(seconds)
        except BaseException:  # no threads left
            self._duckdb.close()
            self._has_closed()
            raise

    @contextmanager
    def cursor(
        self, snapshot: Snapshot, cancelled: threading.Event | None = None, is_kept: bool = False
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor for one query, which the watchdog may interrupt. The cursor's session variables are those in
        the snapshot.

        With `is_kept`, the cursor is kept for the next query of the same snapshot, since setting the variables takes as
        long as a small query. After an error it is not kept. In this context, DuckDB's errors are raised as
        QueryTimeout, OutOfMemory, FilesGone, EngineLost or QueryFailed.
        """
        cancelled = cancelled or threading.Event()
        engine = self._duckdb
        try:
            idle = self._idle_cursor(engine, snapshot) if is_kept else None
            with ExitStack() as closing_stack:
                cursor = closing_stack.enter_context(closing(idle or engine.cursor()))
                with self._watchdog.watching(cursor, cancelled):
                    if cancelled.is_set():
                        raise QueryFailed("the query was cancelled.")
                    if idle is None:
                        # starts the thread that returns freed memory: all engines share it, and closing any engine
                        # ends it
                        cursor.execute("SET GLOBAL allocator_background_threads = TRUE")
                        set_variables(cursor, snapshot)
                    yield cursor
                if is_kept and engine is self._duckdb:
                    closing_stack.pop_all()
                    with self._idle_lock:
                        self._idle.append(_IdleCursor(engine, snapshot, cursor))
                    self._close_idle(MAX_IDLE_CURSORS)
        except duckdb.Error as error:
            if isinstance(error, duckdb.FatalException | duckdb.InternalException):
                self._replace(engine)
            raise self._as_traffic_error(error, cancelled) from error

    def describe(self, sql: str) -> dict[str, str]:
        """Return the columns of one of this package's queries in order, with their types. The query is not run."""
        with closing(self._duckdb.cursor()) as cursor:
            set_variables(cursor, empty_snapshot(self._folders))
            return {name: kind for name, kind, *_ in cursor.execute(f"DESCRIBE {sql}").fetchall()}

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the queries of the cursors that were given this event."""
        cancelled.set()
        self._watchdog.check_now()

    def forget(self, snapshot: Snapshot) -> None:
        """Close the idle cursors of a snapshot, which keep its shared visits in memory."""
        with self._idle_lock:
            done = [idle for idle in self._idle if idle.snapshot is snapshot]
            self._idle = [idle for idle in self._idle if idle.snapshot is not snapshot]
        for idle in done:
            idle.cursor.close()

    def delete_spilled(self) -> None:
        """Delete the engine's spilled files before the process ends, even in the middle of a query."""
        shutil.rmtree(self._spilled, ignore_errors=True)

    def close(self) -> None:
        """Close the engine."""
        self._watchdog.close()
        self._close_idle(0)
        self._duckdb.close()
        self._has_closed()

    def _idle_cursor(self, engine: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> duckdb.DuckDBPyConnection | None:
        """Remove and return an idle cursor of this engine with this snapshot's variables; None if there is none."""
        with self._idle_lock:
            for place, idle in enumerate(self._idle):
                if idle.snapshot is snapshot and idle.engine is engine:
                    return self._idle.pop(place).cursor
        return None

    def _close_idle(self, most: int) -> None:
        """Close the oldest idle cursors until at most `most` are left."""
        with self._idle_lock:
            while len(self._idle) > most:
                self._idle.pop(0).cursor.close()

    def _as_traffic_error(self, error: duckdb.Error, cancelled: threading.Event) -> TrafficError:
        """Return the TrafficError to raise for an engine error."""
        message = " ".join(_QUOTED_LINE.sub(r" In line \1: \2", str(error)).split())
        denied = _DENIED_FILE.search(message)
        match error:
            case duckdb.InterruptException() if not cancelled.is_set():
                return QueryTimeout(f"the query ran longer than {self._seconds:g} seconds and was stopped.")
            case duckdb.PermissionException() if denied and (
                problem := link_problem(self._folders.root, Path(denied[1]))
            ):
                return QueryFailed(f"{problem}.")
            case duckdb.OutOfMemoryException():
                return OutOfMemory(message)
            case duckdb.IOException():
                return FilesGone(message)
            case duckdb.FatalException():
                return EngineLost(message)
        return QueryFailed(message)

    def _new(self) -> duckdb.DuckDBPyConnection:
        """Return an engine with its limits set and its configuration locked. It can only read the folders in
        `_readable` and the folder that it spills into.
        """
        engine = duckdb.connect(config=_CONFIG)
        engine.execute("SET TimeZone = 'UTC'")
        # lake files never change, so their footers stay valid
        engine.execute("SET GLOBAL parquet_metadata_cache = $is_on", {"is_on": not self._in_background})
        if self._in_background:
            engine.execute("SET threads = 1")
        define_relations(engine, self._folders)
        if self._memory:
            engine.execute("SET memory_limit = $memory", {"memory": self._memory})
        self._spilled, self._has_closed = spill_folder(self._folders.staging, engine)
        engine.execute("SET temp_directory = $folder", {"folder": self._spilled})
        engine.execute("SET max_temp_directory_size = $max", {"max": MAX_SPILL})
        with suppress(duckdb.CatalogException):  # not in DuckDB 1.5, where only the watchdog limits the time
            engine.execute("SET GLOBAL max_execution_time = $ms", {"ms": max(1, round(self._seconds * 1000))})
        engine.execute("SET allowed_directories = $folders", {"folders": self._readable})
        engine.execute("SET enable_external_access = FALSE")
        engine.execute("SET allowed_configs = ['allocator_background_threads']")
        engine.execute("SET lock_configuration = TRUE")
        return engine

    def _replace(self, broken: duckdb.DuckDBPyConnection) -> None:
        """Replace a broken engine, unless another thread has done so. Queries still running on the old engine may
        finish.
        """
        with self._replace_lock, suppress(duckdb.Error, BadInput):  # if it fails, the next query tries again
            if self._duckdb is broken:
                self._duckdb = self._new()
                self._close_idle(0)


def _readable(folders: LakeFolders, organization: str | None) -> list[str]:
    """Return the folders with the seeds and with the visits, links and rollups of one organization, or of all.

    The folders do not contain the rest of the lake (keys, salts, the manifest).
    """
    parts = ["organization=_seed/", f"organization={organization}/"] if organization else [""]
    kinds = ("visits", "links", ROLLUPS_FOLDER)
    readable = [f"{folders.root}/{kind}/{part}" for kind in kinds for part in parts]
    return [*readable, *(f"{folders.seeds}/{kind}/organization=_seed/" for kind in kinds)]


_QUOTED_LINE: Final = re.compile(r"\s*LINE (\d+): (?:EXPLAIN )?(.*)\n *\^+\s*$")
"""The end of an error message: the line of SQL, and a caret below the error."""

_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # otherwise an unknown table name could read a Python variable
}
