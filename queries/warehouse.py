"""Runs templates over the lake: the only file that holds a DuckDB engine for answers. It knows no HTTP."""

import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import duckdb

from data import Lake, TrafficError
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
"""Visits of a link that are held for the answers of a dashboard; about 10 MB."""
MAX_SPILL: Final = "4GB"
"""What queries may write to disk in all when memory is short: about as much as a disk takes in their time."""

Result = list[dict[str, Any]] | dict[str, Any]
"""An array of objects, or one object whose members may be results again."""


class QueryTimeout(TrafficError):
    """A query ran longer than it may."""


class QueryFailed(TrafficError):
    """A query that the engine refused or could not finish."""


class FilesGone(QueryFailed):
    """A file was deleted while it was read; with the files of a moment later the same query works."""


class EngineLost(QueryFailed):
    """The engine ended under the query by no fault of its own; on the new one the same query works."""


class Warehouse:
    """Answers of one lake. Safe to use from several threads: every query has a cursor of its own.

    The engine holds definitions and no data, so one that an error made useless is replaced on the spot.
    """

    def __init__(
        self,
        lake: Lake,
        values: list[TrafficValue] | None = None,
        memory: str | None = None,
        seconds: float = QUERY_TIMEOUT_SECONDS,
    ) -> None:
        """Set up the engine, lock it down to the lake, and check the shape of every template.

        `memory` is what queries may use in all, such as "300MB"; None leaves it to the engine.
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
        """A snapshot of what the manifest holds for a scope now; answers from one snapshot agree with each other."""
        return {**scope_variables(self._lake, scope), "traffic_values": self._values}

    def with_link_visits(self, variables: Variables) -> Variables:
        """The same snapshot for several answers on one link: its visits lie in many files, and are read here once.

        Where they are more than MAX_LINK_VISITS, each answer reads them. Raises what `answer` raises.
        """
        if variables["scope"]["short_code"] is None or LINK_VISITS in variables:
            return variables
        with self._cursor(variables) as cursor:
            visits = cursor.sql("FROM link_visits LIMIT $max + 1", params={"max": MAX_LINK_VISITS}).to_arrow_table()
        if len(visits) > MAX_LINK_VISITS:
            return variables
        return {**variables, LINK_VISITS: visits, "sources": one_source(LINK_VISITS)}

    def epoch(self, organization: str) -> int:
        """How often visits that an organization's earlier answers rest on were changed."""
        return self._lake.manifest.epoch(organization)

    def answer(self, entry: Entry, variables: Variables, cancelled: threading.Event | None = None) -> Result:
        """The answer of one entry of the catalogue. Raises QueryTimeout, QueryFailed, FilesGone or EngineLost.

        Who waits for it no more sets `cancelled` and calls `stop`; then what is raised is for nobody.
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
        """Stop the queries of an answer that nobody waits for any more."""
        cancelled.set()
        self._watchdog.look()

    def rows(self, sql: str, variables: Variables) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The column names and rows of somebody's own SELECT over the relations of the prelude.

        Raises QueryTimeout, or QueryFailed for what is no single SELECT, what writes or what the engine refuses.
        """
        with self._cursor(variables) as cursor:
            _check_read_only(cursor, sql)
            return _fetch_all(cursor, sql)

    def probe(self) -> None:
        """Run a real query over the seed file; raises what any query may raise."""
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
        """A private cursor, watched until it is closed: shared, it would mix up two callers' scopes."""
        cancelled = cancelled or threading.Event()
        engine = self._engine
        try:
            with closing(engine.cursor()) as cursor, self._watchdog.watching(cursor, cancelled):
                if cancelled.is_set():
                    raise QueryFailed("nobody waits for it any more.")
                set_variables(cursor, variables)
                yield cursor
        except duckdb.Error as error:
            if isinstance(error, duckdb.FatalException | duckdb.InternalException):
                self._replace_engine(engine)
            raise self._as_traffic_error(error, cancelled) from error

    def _as_traffic_error(self, error: duckdb.Error, cancelled: threading.Event) -> TrafficError:
        """What an error of the engine means to who asked."""
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
        """Put a new engine in the place of one that answers no more, unless somebody has; queries on it may end."""
        with (
            self._replace_lock,
            suppress(duckdb.Error),
        ):  # if it fails, the next query tries again
            if self._engine is broken:
                self._engine = self._new_engine()

    def _restrict_access(self, engine: duckdb.DuckDBPyConnection) -> None:
        """Let queries read visits, rollups and links and nothing else, within limits, and let nobody change that.

        The rest of the lake is closed to them: keys, salts and the manifest lie there. Each engine spills into a
        folder of its own, since DuckDB 1.5 mixes up the files of two; it may use that without being told.
        """
        if self._memory:
            engine.execute("SET memory_limit = $memory", {"memory": self._memory})
        spill_folder = self._lake.staging / f"engine-{uuid.uuid4().hex}"
        engine.execute("SET temp_directory = $folder", {"folder": str(spill_folder)})
        engine.execute("SET max_temp_directory_size = $max", {"max": MAX_SPILL})
        with suppress(duckdb.CatalogException):  # DuckDB 1.5 has no such setting; the watchdog does without it
            engine.execute("SET GLOBAL max_execution_time = $ms", {"ms": max(1, round(self._seconds * 1000))})
        folders = [f"{self._lake.root}/{name}/" for name in ("visits", "links", ROLLUPS_FOLDER)]
        engine.execute("SET allowed_directories = $folders", {"folders": folders})
        engine.execute("SET enable_external_access = FALSE")
        engine.execute("SET lock_configuration = TRUE")

    def _check_columns(self) -> None:
        """Every template must give exactly the columns that its entry declares: once, as neither changes."""
        with closing(self._engine.cursor()) as cursor:  # start-up takes the time it takes
            set_variables(cursor, self._empty_variables())
            for entry in (leaf for answer in ENTRIES.values() for leaf in template_entries(answer)):
                if entry in _CHECKED_ENTRIES:  # also those that the dashboard repeats
                    continue
                described = cursor.execute(f"DESCRIBE {template(entry.name)}").fetchall()
                found = [(name, kind) for name, kind, *_ in described]
                declared = [(field.name, field.kind.sql) for field in entry.fields]
                if found != declared:
                    raise AssertionError(f"template {entry.name} gives {found}, the catalogue declares {declared}")
                _CHECKED_ENTRIES.append(entry)


_CHECKED_ENTRIES: Final[list[Entry]] = []
"""Entries whose templates were found to give what they declare."""


def _fetch_all(cursor: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The column names and rows of a query; read whole, since they stream and belong to this thread."""
    result = cursor.execute(sql)
    return [column[0] for column in result.description or ()], result.fetchall()


def _check_read_only(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Let pass what is one SELECT that only reads. Raises QueryFailed, and what the engine raises.

    A SELECT is no promise: since DuckDB 2.0 its WITH may hold a COPY, an INSERT, an UPDATE or a DELETE, though not
    inside query(); and functions of 1.5 write logs and profiles wherever they are told, locked down or not.
    """
    if [statement.type for statement in cursor.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise QueryFailed("it must hold one SELECT and nothing else.")
    ((tree,),) = cursor.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    forbidden = sorted({name.lower() for name in _FUNCTION_CALL.findall(tree)} & _FORBIDDEN_FUNCTIONS)
    if forbidden:
        raise QueryFailed(f"it may not call {forbidden[0]}.")
    cursor.execute("DESCRIBE FROM query($sql)", {"sql": sql}).fetchall()


_ENGINE_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # else a name that is no table may read a variable of this program
}

_FUNCTION_CALL: Final = re.compile(r'"function_name":"([^"]*)"')
_FORBIDDEN_FUNCTIONS: Final = frozenset(
    ("enable_logging", "disable_logging", "enable_profiling", "disable_profiling", "truncate_duckdb_logs", "write_log",
     "query", "query_table", "json_execute_serialized_sql")  # the last three read their SQL out of a text
)  # fmt: skip
