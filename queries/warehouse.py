"""Runs templates over the lake. The only file with a DuckDB engine that answers queries; it knows nothing of HTTP."""

import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import duckdb

from data import BadInput, Lake, TrafficError
from data.store.rollups import ROLLUPS_FOLDER
from queries.catalog import ENTRIES, Entry, template, template_entries
from queries.scope import Scope
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.variables import (
    LINK_VISITS,
    Variables,
    define_relations,
    empty_variables,
    one_source,
    scope_variables,
    set_variables,
)
from queries.watchdog import Watchdog

QUERY_TIMEOUT_SECONDS: Final = 10.0
MAX_LINK_VISITS: Final = 50_000
"""Visits of one link that are kept in memory for the answers of a dashboard; about 10 MB."""
MAX_SPILL: Final = "4GB"
"""Disk space for all queries together when memory is short: about what a disk can write within the timeout."""

Result = list[dict[str, Any]] | dict[str, Any]
"""An array of objects, or one object, whose members may be results themselves."""


class QueryTimeout(TrafficError):
    """A query exceeded its time limit."""


class QueryFailed(TrafficError):
    """The engine rejected a query or could not finish it."""


class FilesGone(QueryFailed):
    """A file was deleted while it was read. A retry with fresh variables works."""


class EngineLost(QueryFailed):
    """The engine failed because of another query and was replaced. A retry works."""


class Warehouse:
    """Runs queries over one lake. Safe to use from several threads: every query has its own cursor.

    The engine contains only definitions, no data, so it is simply replaced after a fatal error.
    """

    def __init__(
        self,
        lake: Lake,
        values: list[TrafficValue] | None = None,
        memory: str | None = None,
        seconds: float = QUERY_TIMEOUT_SECONDS,
    ) -> None:
        """Set up the engine, lock it down to the lake, and check the shape of every template.

        `memory` limits all queries together, such as "300MB"; None: the default of DuckDB. `seconds` limits each query.
        """
        self._lake = lake
        self._memory = memory
        self._seconds = seconds
        self._values = [value._asdict() for value in (load_traffic_values() if values is None else values)]
        self._engine = self._new_engine()
        self._replace_lock = threading.Lock()
        self._check_columns()
        self._watchdog = Watchdog(seconds)

    def variables(self, scope: Scope) -> Variables:
        """A snapshot of the lake for a scope. Answers computed from one snapshot are consistent with each other."""
        return {**scope_variables(self._lake, scope), "traffic_values": self._values}

    def with_link_visits(self, variables: Variables) -> Variables:
        """The snapshot with the visits of its link read into memory, so that several answers share them.

        Returned unchanged if it has no short code or more than MAX_LINK_VISITS visits. Raises what `answer` raises.
        """
        if variables["scope"]["short_code"] is None or LINK_VISITS in variables:
            return variables
        with self._cursor(variables) as cursor:
            visits = cursor.sql("FROM link_visits LIMIT $max + 1", params={"max": MAX_LINK_VISITS}).to_arrow_table()
        if len(visits) > MAX_LINK_VISITS:
            return variables
        return {**variables, LINK_VISITS: visits, "sources": one_source(LINK_VISITS)}

    def epoch(self, organization: str) -> int:
        """A counter that rises when stored visits of the organization are changed, which outdates earlier answers."""
        return self._lake.manifest.epoch(organization)

    def answer(self, entry: Entry, variables: Variables, cancelled: threading.Event | None = None) -> Result:
        """The answer of one entry of the catalog. Raises QueryTimeout, QueryFailed, FilesGone or EngineLost.

        To cancel it from another thread, pass the event `cancelled` and call `stop` with it.
        """
        if entry.shape == "parts":
            shared = self.with_link_visits(variables)
            return {member: self.answer(part, shared, cancelled) for member, part in entry.members}
        names = [field.name for field in entry.fields]
        with self._cursor(variables, cancelled) as cursor:
            found = _fetch_all(cursor, template(entry.name))[1]
        rows = [dict(zip(names, row, strict=True)) for row in found]
        return rows[0] if entry.shape == "row" else rows

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the queries of the `answer` call that got this event."""
        cancelled.set()
        self._watchdog.check_now()

    def rows(self, sql: str, variables: Variables) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The column names and rows of a user's own SELECT over the relations of the prelude.

        Raises QueryTimeout, or QueryFailed if it is not a single SELECT, would write, or is rejected by the engine.
        """
        with self._cursor(variables) as cursor:
            _check_read_only(cursor, sql)
            return _fetch_all(cursor, sql)

    def probe(self) -> None:
        """Run a query over the empty seed file, as a health check. Raises what any query may raise."""
        with self._cursor(self._empty_variables()) as cursor:
            _fetch_all(cursor, "SELECT count(*) FROM visits_in_scope")

    def close(self) -> None:
        """Close the engine."""
        self._watchdog.close()
        self._engine.close()

    @contextmanager
    def _cursor(
        self, variables: Variables, cancelled: threading.Event | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A new cursor under the watchdog. Cursors are not shared: session variables belong to one caller's scope."""
        cancelled = cancelled or threading.Event()
        engine = self._engine
        try:
            with closing(engine.cursor()) as cursor, self._watchdog.watching(cursor, cancelled):
                if cancelled.is_set():
                    raise QueryFailed("the query was cancelled.")
                set_variables(cursor, variables)
                yield cursor
        except duckdb.Error as error:
            if isinstance(error, duckdb.FatalException | duckdb.InternalException):
                self._replace_engine(engine)
            raise self._as_traffic_error(error, cancelled) from error

    def _as_traffic_error(self, error: duckdb.Error, cancelled: threading.Event) -> TrafficError:
        """The TrafficError to raise for an error of the engine."""
        message = " ".join(str(error).split())
        match error:
            case duckdb.InterruptException() if not cancelled.is_set():
                return QueryTimeout(f"the query ran longer than {self._seconds:g} seconds and was stopped.")
            case duckdb.IOException():
                return FilesGone(message)
            case duckdb.FatalException():
                return EngineLost(message)
        return QueryFailed(message)

    def _empty_variables(self) -> Variables:
        return {**empty_variables(self._lake), "traffic_values": self._values}

    def _new_engine(self) -> duckdb.DuckDBPyConnection:
        engine = duckdb.connect(config=_ENGINE_CONFIG)
        engine.execute("SET TimeZone = 'UTC'")
        engine.execute("SET GLOBAL parquet_metadata_cache = TRUE")  # files of the lake never change
        set_variables(engine, {"traffic_values": self._values})
        define_relations(engine, self._lake)
        self._restrict_access(engine)
        return engine

    def _replace_engine(self, broken: duckdb.DuckDBPyConnection) -> None:
        """Replace a broken engine, unless another thread already did. Queries still running on it may finish."""
        with self._replace_lock, suppress(duckdb.Error, BadInput):  # if it fails, the next query tries again
            if self._engine is broken:
                self._engine = self._new_engine()

    def _restrict_access(self, engine: duckdb.DuckDBPyConnection) -> None:
        """Limit queries to reading visits, rollups and links, set memory and time limits, and lock the configuration.

        The rest of the lake (keys, salts, the manifest) is not readable. Each engine spills into its own folder,
        because DuckDB 1.5 mixes up the spill files of two engines; the spill folder is readable implicitly.
        """
        if self._memory:
            engine.execute("SET memory_limit = $memory", {"memory": self._memory})
        spill_folder = self._lake.staging / f"engine-{uuid.uuid4().hex}"
        engine.execute("SET temp_directory = $folder", {"folder": str(spill_folder)})
        engine.execute("SET max_temp_directory_size = $max", {"max": MAX_SPILL})
        with suppress(duckdb.CatalogException):  # not in DuckDB 1.5, where the watchdog alone has to do
            engine.execute("SET GLOBAL max_execution_time = $ms", {"ms": max(1, round(self._seconds * 1000))})
        folders = [f"{self._lake.root}/{name}/" for name in ("visits", "links", ROLLUPS_FOLDER)]
        engine.execute("SET allowed_directories = $folders", {"folders": folders})
        engine.execute("SET enable_external_access = FALSE")
        engine.execute("SET lock_configuration = TRUE")

    def _check_columns(self) -> None:
        """Check that every template returns the columns that its entry declares. Raises AssertionError."""
        with closing(self._engine.cursor()) as cursor:  # no watchdog: start-up has no time limit
            set_variables(cursor, self._empty_variables())
            for entry in (leaf for answer in ENTRIES.values() for leaf in template_entries(answer)):
                if entry in _CHECKED_ENTRIES:  # by an earlier Warehouse, or as part of the dashboard
                    continue
                described = cursor.execute(f"DESCRIBE {template(entry.name)}").fetchall()
                found = [(name, kind) for name, kind, *_ in described]
                declared = [(field.name, field.kind.sql) for field in entry.fields]
                if found != declared:
                    raise AssertionError(f"template {entry.name} returns {found}, the catalog declares {declared}")
                _CHECKED_ENTRIES.append(entry)


_CHECKED_ENTRIES: Final[list[Entry]] = []
"""Entries whose templates were checked in this process: neither changes."""


def _fetch_all(cursor: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The column names and all rows of a query; the cursor streams them and cannot be read in another thread."""
    result = cursor.execute(sql)
    return [column[0] for column in result.description or ()], result.fetchall()


def _check_read_only(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Check that `sql` is one SELECT that only reads. Raises QueryFailed, and what the engine raises.

    The statement type is not enough: since DuckDB 2.0 a WITH clause may contain COPY, INSERT, UPDATE or DELETE, but
    not inside query(); and some functions of 1.5 write logs and profiles to any path despite the lock-down.
    """
    if [statement.type for statement in cursor.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise QueryFailed("it must be one SELECT statement and nothing else.")
    ((tree,),) = cursor.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    forbidden = sorted({name.lower() for name in _FUNCTION_CALL.findall(tree)} & _FORBIDDEN_FUNCTIONS)
    if forbidden:
        raise QueryFailed(f"it may not call {forbidden[0]}.")
    cursor.execute("DESCRIBE FROM query($sql)", {"sql": sql}).fetchall()


_ENGINE_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # else an unknown table name could read a Python variable
}

_FUNCTION_CALL: Final = re.compile(r'"function_name":"([^"]*)"')
_FORBIDDEN_FUNCTIONS: Final = frozenset(
    ("enable_logging", "disable_logging", "enable_profiling", "disable_profiling", "truncate_duckdb_logs", "write_log",
     "query", "query_table", "json_execute_serialized_sql")  # the last three run SQL from a string
)  # fmt: skip
