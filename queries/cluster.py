"""Answers on a cluster that speaks Spark Connect what would be too much for one machine. Needs the extra `cluster`.

The cluster counts visits with texts that are compiled from the templates when they are needed; it reads the files that
the manifest lists, from a folder that all its workers see.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import grpc
import pyarrow as pa
from pyspark.errors import PySparkException

from data import Lake
from data.store.lake import LINKS
from data.visits import VISITS
from queries.catalog import Entry
from queries.cluster_options import ClusterOptions, ClusterUnavailable
from queries.compiler import Compiler
from queries.connect import CLIENT_ERRORS, ClusterSession, Query, col, lit
from queries.locked_engine import FilesGone, QueryFailed, QueryTimeout
from queries.scope import Scope
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.variables import CLUSTER_FILES, Variables, is_for_cluster, scope_variables
from queries.warehouse import Result, Tables, Warehouse
from queries.watchdog import Watchdog

MAX_IDLE_SESSIONS: Final = 8
MAX_COUNTING_SECONDS: Final = 4 * 3600.0
"""The limit of the rows of one relation for a rollup."""

_SPARK_TYPES: Final = {
    pa.string(): "STRING",
    pa.int16(): "SMALLINT",
    pa.bool_(): "BOOLEAN",
    pa.int64(): "BIGINT",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}
"""How Spark reads the columns of stored files."""
_ARROW_TYPES: Final = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "BOOLEAN": pa.bool_(),
    "VARCHAR[]": pa.list_(pa.string()),
}
"""The Arrow type of each kind of field, as DuckDB's tables have it."""
_SUBJECT: Final = ("domain", "path", "short_code", "agent", "operator", "ai_source")
"""The fields of the SQL type `subject` of prelude/7_jobs.sql."""


class Cluster:
    """Answers entries on a cluster, or passes them on to the warehouse. Safe to use from several threads."""

    def __init__(
        self, lake: Lake, warehouse: Warehouse, options: ClusterOptions, values: list[TrafficValue] | None = None
    ) -> None:
        """Connect to nothing yet. The warehouse is closed with it."""
        self._lake = lake
        self._warehouse = warehouse
        self._options = options
        self._folder = options.folder.rstrip("/") or str(lake.root)
        self._values = [value._asdict() for value in (load_traffic_values() if values is None else values)]
        self._compiled = cache(Compiler(warehouse.describe).compiled)
        self._idle: list[ClusterSession] = []
        self._idle_lock = threading.Lock()
        self._watchdog = Watchdog(options.seconds)
        self._patient_watchdog = Watchdog(MAX_COUNTING_SECONDS)

    def variables(self, scope: Scope) -> Variables:
        """A snapshot of the lake for a scope. It decides who answers: the cluster or the warehouse."""
        return {**scope_variables(self._lake, scope, self._options.from_visits), "traffic_values": self._values}

    def with_link_visits(self, variables: Variables, entries: Sequence[Entry]) -> Variables:
        """That of the warehouse; the cluster's snapshot is returned unchanged."""
        return variables if is_for_cluster(variables) else self._warehouse.with_link_visits(variables, entries)

    def epoch(self, organization: str) -> int:
        """That of the warehouse."""
        return self._warehouse.epoch(organization)

    def answer(self, entry: Entry, variables: Variables, cancelled: threading.Event | None = None) -> Result:
        """The answer of one entry. Raises QueryTimeout, QueryFailed, FilesGone, EngineLost or ClusterUnavailable.

        To cancel it from another thread, pass the event `cancelled` and call `stop` with it.
        """
        if not is_for_cluster(variables):
            return self._warehouse.answer(entry, variables, cancelled)
        if entry.shape == "parts":
            return {member: self.answer(part, variables, cancelled) for member, part in entry.members}
        rows: list[dict[str, Any]] = self._table(entry, variables, cancelled).to_pylist()
        return rows[0] if entry.shape == "row" else rows

    def tables(self, entry: Entry, variables: Variables) -> Tables:
        """The same answer as an Arrow table, or as a dict of them. Raises what `answer` raises."""
        if not is_for_cluster(variables):
            return self._warehouse.tables(entry, variables)
        if entry.shape == "parts":
            return {member: self.tables(part, variables) for member, part in entry.members}
        return self._table(entry, variables)

    def takes(self, visits: int) -> bool:
        """Whether rollups of so many visits are counted here."""
        return visits >= self._options.from_visits

    def rollup_rows(self, relation: str, variables: Variables, cancelled: threading.Event) -> pa.Table:
        """The rows of a relation for a new rollup, counted from the visits of a snapshot for a cluster.

        They may take MAX_COUNTING_SECONDS, and are cancelled like an answer. Raises what `answer` raises.
        """
        query = Query(cancelled, MAX_COUNTING_SECONDS)
        return self._counted(self._patient_watchdog, query, f"rollups/{relation}", variables)

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the queries of the `answer` or `rollup_rows` call that got this event."""
        self._warehouse.stop(cancelled)
        self._watchdog.check_now()
        self._patient_watchdog.check_now()

    def probe(self) -> None:
        """Check the warehouse, which answers without the cluster, too. Raises what any query may raise."""
        self._warehouse.probe()

    def close(self) -> None:
        """Close the connections and the warehouse."""
        self._watchdog.close()
        self._patient_watchdog.close()
        for session in self._take_all():
            session.close()
        self._warehouse.close()

    def _table(self, entry: Entry, variables: Variables, cancelled: threading.Event | None = None) -> pa.Table:
        """The rows of an entry with a template."""
        schema = pa.schema([(field.name, _ARROW_TYPES[field.kind.sql]) for field in entry.fields])
        query = Query(cancelled or threading.Event(), self._options.seconds)
        return self._counted(self._watchdog, query, entry.name, variables).cast(schema)

    def _counted(self, watchdog: Watchdog, query: Query, name: str, variables: Variables) -> pa.Table:
        """The rows of a text of the compiler. If its session was lost, as by a restart, it is run again once."""
        with watchdog.watching(query, query.cancelled):
            try:
                return self._run(query, name, variables)
            except _SessionLost:
                for session in self._take_all():  # they were lost together
                    session.disconnect()
            try:
                return self._run(query, name, variables)
            except _SessionLost as lost:
                raise ClusterUnavailable(f"the cluster at {self._shown_address} was lost: {lost}.") from lost

    def _run(self, query: Query, name: str, variables: Variables) -> pa.Table:
        if query.cancelled.is_set():
            raise QueryFailed("the query was cancelled.")
        session = self._session_for(variables)
        query.begin(session)
        try:
            if session.views_of is not variables:
                self._make_views(session, variables)
            table = session.table(self._compiled(name), _arguments(variables["scope"]))
        except CLIENT_ERRORS as error:
            translated = self._as_traffic_error(error, query)
            query.end()
            if isinstance(translated, _SessionLost | ClusterUnavailable):
                session.disconnect()
            else:
                self._give_back(session)
            raise translated from error
        except FilesGone:
            query.end()
            self._give_back(session)
            raise
        except BaseException:
            session.disconnect()
            raise
        query.end()
        self._give_back(session)
        self._check_files(variables)
        return table

    def _give_back(self, session: ClusterSession) -> None:
        with self._idle_lock:
            if len(self._idle) < MAX_IDLE_SESSIONS:
                self._idle.append(session)
                return
        session.close()

    def _session_for(self, variables: Variables) -> ClusterSession:
        """An idle session, if possible one that has the views of this snapshot, or a new one."""
        with self._idle_lock:
            for session in self._idle:
                if session.views_of is variables:
                    self._idle.remove(session)
                    return session
            if self._idle:
                return self._idle.pop()
        return ClusterSession(self._options.address)

    def _take_all(self) -> list[ClusterSession]:
        """The idle sessions, which are idle no more."""
        with self._idle_lock:
            taken, self._idle = self._idle, []
        return taken

    def _make_views(self, session: ClusterSession, variables: Variables) -> None:
        """Define the relations that compiled texts read, as views of this session."""
        session.views_of = None
        visits = [f"{self._folder}/{path}" for path in variables[CLUSTER_FILES]]
        links = [f"{self._folder}/{path}" for path in variables["links"]]
        organization, day = lit(_organization_of(variables[CLUSTER_FILES])), col("visited_at").cast("date")
        session.read_files("visits", _VISITS, visits, organization=organization, day=day)
        seen, expected = session.count("visits"), variables["visits"]
        if seen != expected:  # not every engine complains of files that it cannot find
            raise FilesGone(
                f"the cluster at {self._shown_address} sees {seen} of {expected} visits under {self._folder}; "
                "every worker must see the lake there, or where TRAFFIC_ENGINE_LAKE says."
            )
        session.read_files("links", _LINKS, links)
        for name in ("crowded_days", "days_without_domains"):
            session.put_rows(name, "day DATE", [(day,) for day in variables[name]])
        values = [(value["traffic_type"], value["ten_thousandths"], value["currency"]) for value in self._values]
        session.put_rows("traffic_values", "traffic_type STRING, ten_thousandths BIGINT, currency STRING", values)
        subjects = [tuple(variables["subject"][name] for name in _SUBJECT)] if "subject" in variables else []
        session.put_rows("subject", ", ".join(f"{name} STRING" for name in _SUBJECT), subjects)
        session.views_of = variables

    def _check_files(self, variables: Variables) -> None:
        """Check after a query that no file was deleted under it, which not every engine notices. Raises FilesGone."""
        for path in (*variables[CLUSTER_FILES], *variables["links"]):
            if not os.path.exists(f"{self._lake.root}/{path}"):  # noqa: PTH110  # three times as fast
                raise FilesGone(f"{self._lake.root}/{path} was deleted while the cluster read it.")

    @property
    def _shown_address(self) -> str:
        """The address without its parameters, which may hold a token."""
        return self._options.address.partition("/;")[0]

    def _as_traffic_error(self, error: Exception, query: Query) -> Exception:
        """What to raise for an error of the client."""
        condition, message = "", " ".join(str(error).split("JVM stacktrace")[0].split())[:1_000]
        if isinstance(error, PySparkException):
            condition = error.getCondition() or ""
        if query.is_interrupted:
            if query.is_given_up:
                return ClusterUnavailable(f"the cluster at {self._shown_address} does not respond.")
            if query.cancelled.is_set():
                return QueryFailed("the query was cancelled.")
            return QueryTimeout(f"the query ran longer than {query.seconds:g} seconds on the cluster; it was stopped.")
        if condition.startswith(_LOST) or _status(error) is grpc.StatusCode.UNAVAILABLE:
            return _SessionLost(message)
        if any(name in f"{condition} {message}" for name in _GONE):
            return FilesGone(f"the cluster at {self._shown_address} cannot read a file under {self._folder}: {message}")
        return QueryFailed(message)


class _SessionLost(Exception):
    """The connection broke, or the server does not know the session any more."""


_LOST: Final = ("INVALID_HANDLE", "TABLE_OR_VIEW_NOT_FOUND")
_GONE: Final = ("PATH_NOT_FOUND", "FILE_NOT_EXIST", "FileNotFound", "No such file", "not found: /")


def _organization_of(paths: list[str]) -> str:
    """Whose visits lie in these files: a text for the cluster counts them only if it asks for this organization."""
    organizations = {path.split("/")[1].removeprefix("organization=") for path in paths} or {""}
    (organization,) = organizations
    return organization


def _arguments(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The named parameters of the texts; dates as text."""
    return {name: value.isoformat() if name.endswith("_date") else value for name, value in scope.items()}


def _status(error: Exception) -> grpc.StatusCode | None:
    """The gRPC status of an error of the client."""
    if isinstance(error, grpc.RpcError):
        return error.code()
    status_of = getattr(error, "getGrpcStatusCode", None)
    return status_of() if status_of else None


def _ddl(schema: pa.Schema) -> str:
    """A schema as Spark writes it."""
    return ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in schema)


_VISITS: Final = _ddl(VISITS)
_LINKS: Final = _ddl(LINKS)
