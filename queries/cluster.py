"""Runs queries on a Spark Connect cluster if they are too large for one machine. Needs the extra `cluster`.

The cluster counts visits with SQL compiled from the templates on demand; it reads the files that the manifest lists,
from a folder that all workers share or from the published lake.
"""

import logging
import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pyarrow as pa

from data import Lake, TrafficError
from data.manifest.organizations import OrganizationState
from queries.catalog import Entry
from queries.cluster_options import ClusterOptions, ClusterTimeout, ClusterUnavailable
from queries.cluster_sources import ClusterLake, PublishedCopy, SharedFolder
from queries.cluster_views import make_views
from queries.compiler import Compiler
from queries.connect import CLIENT_ERRORS, ClusterSession, Query, SessionLost, as_traffic_error
from queries.locked_engine import FilesGone, QueryFailed
from queries.scope import FILTERS, LISTING, Scope
from queries.snapshot import ClusterSnapshot, Snapshot, for_cluster, live_files, snapshot_of
from queries.traffic_values import TrafficValue, load_traffic_values
from queries.warehouse import Result, Tables, Warehouse
from queries.watchdog import Watchdog

_LOG: Final = logging.getLogger(__name__)
MAX_IDLE_SESSIONS: Final = 8
MAX_COUNTING_SECONDS: Final = 4 * 3600.0
"""Time limit for counting the rows of one relation for a rollup."""

_ARROW_TYPES: Final = {
    "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"), "BOOLEAN": pa.bool_(), "VARCHAR[]": pa.list_(pa.string()),
}  # fmt: skip
"""The Arrow type for each kind of field, as in DuckDB's Arrow tables."""
OUTCOMES: Final[dict[type[TrafficError], str]] = {
    ClusterTimeout: "timeout",
    ClusterUnavailable: "unavailable",
    FilesGone: "files_gone",
    QueryFailed: "failed",
}
"""The outcome counted for each error, unless the query was cancelled."""
CHECK_TASKS: Final = 64
_EVERYWHERE: Final = (
    f"SELECT count(*) AS visits FROM ({' UNION ALL '.join(['SELECT status FROM visits'] * CHECK_TASKS)})"
)


class Cluster:
    """Computes reports on a cluster, or has the warehouse compute them. Safe to use from several threads."""

    def __init__(
        self, lake: Lake, warehouse: Warehouse, options: ClusterOptions, values: list[TrafficValue] | None = None
    ) -> None:
        """Prepare the cluster without connecting yet; `close` also closes the warehouse.

        Raises BadInput if the extra `publish` is needed but not installed.
        """
        self._lake = lake
        self._warehouse = warehouse
        self._options = options
        self._folder = options.folder.rstrip("/") or str(lake.root)
        published = PublishedCopy(lake, self._folder) if options.is_published else None
        self._cluster_lake: ClusterLake = published or SharedFolder(self._folder)
        self._values = tuple(load_traffic_values() if values is None else values)
        self._compiled = cache(Compiler(warehouse.describe).compiled)
        self.outcomes: Counter[str] = Counter(dict.fromkeys((*OUTCOMES.values(), "answered", "cancelled"), 0))
        """Number of queries sent to the cluster, by outcome."""
        self._idle: list[ClusterSession] = []
        self._idle_lock = threading.Lock()
        self._watchdog = Watchdog(options.seconds)
        self._patient_watchdog = Watchdog(MAX_COUNTING_SECONDS)

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return a snapshot of the lake for a scope: a ClusterSnapshot if the cluster is to answer."""
        live = live_files(self._lake, scope)
        here = replace(snapshot_of(self._lake, scope, live), traffic_values=self._values)
        return for_cluster(self._lake, here, live) if self.takes(here.visits_to_read) else here

    def with_shared_visits(
        self, snapshot: Snapshot, entries: Sequence[Entry], cancelled: threading.Event | None = None
    ) -> Snapshot:
        """Share visits as Warehouse does; a ClusterSnapshot is returned unchanged."""
        if isinstance(snapshot, ClusterSnapshot):
            return snapshot
        return self._warehouse.with_shared_visits(snapshot, entries, cancelled)

    def forget(self, snapshot: Snapshot) -> None:
        """Release the visits that a snapshot's answers share, as Warehouse does."""
        self._warehouse.forget(snapshot)

    def state(self, organization: str) -> OrganizationState:
        """Return an organization's time zone and epoch, as Warehouse does."""
        return self._warehouse.state(organization)

    def answer(self, entry: Entry, snapshot: Snapshot, cancelled: threading.Event | None = None) -> Result:
        """Return the answer for one entry. Raises QueryTimeout, QueryFailed, FilesGone, EngineLost or
        ClusterUnavailable.

        To cancel the query from another thread, pass an event as `cancelled` and call `stop` with that event.
        """
        if not isinstance(snapshot, ClusterSnapshot):
            return self._warehouse.answer(entry, snapshot, cancelled)
        if entry.shape == "parts":
            return {member: self.answer(part, snapshot, cancelled) for member, part in entry.members}
        rows: list[dict[str, Any]] = self._table(entry, snapshot, cancelled).to_pylist()
        return rows[0] if entry.shape == "row" else rows

    def tables(self, entry: Entry, snapshot: Snapshot) -> Tables:
        """Return the answer for one entry as a table or as a dict of tables. Raises the exceptions of `answer`."""
        if not isinstance(snapshot, ClusterSnapshot):
            return self._warehouse.tables(entry, snapshot)
        if entry.shape == "parts":
            return {member: self.tables(part, snapshot) for member, part in entry.members}
        return self._table(entry, snapshot)

    def takes(self, visits: int) -> bool:
        """Return whether the cluster, not this machine, reads this many visits for a query or a rollup."""
        return visits >= self._options.from_visits

    def rollup_rows(self, relation: str, snapshot: ClusterSnapshot, cancelled: threading.Event) -> pa.Table:
        """Return the rows of a relation for a new rollup, counted from the visits in a cluster snapshot.

        Counting may take up to MAX_COUNTING_SECONDS, and can be cancelled like `answer`. Raises the exceptions of
        `answer`.
        """
        query = Query(cancelled, MAX_COUNTING_SECONDS)
        text = self._compiled(f"rollups/{relation}")
        return self._run_watched(self._patient_watchdog, query, f"rows of {relation}", text, snapshot)

    def count_everywhere(self, scope: Scope) -> None:
        """Count the visits in a scope CHECK_TASKS times, so that every executor probably reads them: a task cannot
        choose its executor.

        Raises the exceptions of `answer`, such as FilesGone if an executor sees different visits.
        """
        live = live_files(self._lake, scope)
        snapshot = for_cluster(self._lake, snapshot_of(self._lake, scope, live), live)
        query = Query(threading.Event(), self._options.seconds)
        table = self._run_watched(self._watchdog, query, "a check", _EVERYWHERE, snapshot)
        self._check_count(table["visits"][0].as_py(), CHECK_TASKS * snapshot.visits)

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the queries of the `answer` or `rollup_rows` call that was given this event."""
        self._warehouse.stop(cancelled)
        self._watchdog.check_now()
        self._patient_watchdog.check_now()

    def probe(self) -> None:
        """Check the warehouse, which answers even without the cluster. Raises the exceptions of a query."""
        self._warehouse.probe()

    def close(self) -> None:
        """Close the connections and the warehouse."""
        self._watchdog.close()
        self._patient_watchdog.close()
        for session in self._take_all():
            session.close()
        self._warehouse.close()

    def _table(self, entry: Entry, snapshot: ClusterSnapshot, cancelled: threading.Event | None = None) -> pa.Table:
        """Return the rows of an entry that has a template."""
        schema = pa.schema([(field.name, _ARROW_TYPES[field.kind.sql]) for field in entry.fields])
        query = Query(cancelled or threading.Event(), self._options.seconds)
        return self._run_watched(self._watchdog, query, entry.name, self._compiled(entry.name), snapshot).cast(schema)

    def _run_watched(
        self, watchdog: Watchdog, query: Query, name: str, text: str, snapshot: ClusterSnapshot
    ) -> pa.Table:
        """Return the rows of a query in Spark SQL. If the query fails, log the reason, unless it was cancelled."""
        outcome = "failed"
        try:
            with watchdog.watching(query, query.cancelled):
                table = self._run_with_retry(query, text, snapshot)
            outcome = "answered"
            return table  # noqa: TRY300  # the outcome is counted either way
        except TrafficError as error:
            outcome = "cancelled" if query.cancelled.is_set() else OUTCOMES.get(type(error), outcome)
            if isinstance(error, FilesGone):
                self._cluster_lake.forget()
            if outcome != "cancelled":
                _LOG.warning("the cluster did not answer %s: %s", name, error)
            raise
        finally:
            with self._idle_lock:
                self.outcomes[outcome] += 1

    def _run_with_retry(self, query: Query, text: str, snapshot: ClusterSnapshot) -> pa.Table:
        """Return the rows of a query. If its session is lost, for example because the server restarts, run it again."""
        try:
            return self._run(query, text, snapshot)
        except SessionLost:
            for session in self._take_all():  # a restart loses all sessions
                session.disconnect()
        try:
            return self._run(query, text, snapshot)
        except SessionLost as lost:
            place = self._options.shown_address
            raise ClusterUnavailable(f"the session on the cluster at {place} was lost: {lost}.") from lost

    def _run(self, query: Query, text: str, snapshot: ClusterSnapshot) -> pa.Table:
        if query.cancelled.is_set():
            raise QueryFailed("the query was cancelled.")
        session = self._session_for(snapshot)
        query.begin(session)
        try:
            if session.views_of is not snapshot:
                session.views_of = None
                sources = self._cluster_lake.sources(snapshot)
                make_views(session, snapshot, sources)
                self._check_count(session.count("visits"), snapshot.visits)
                session.views_of, session.epoch = snapshot, sources.epoch
            table = session.table(text, _arguments(snapshot))
        except CLIENT_ERRORS as error:
            query.end()
            if query.is_interrupted and not query.is_given_up:
                self._give_back(session)
            else:  # no later query uses a session that failed
                session.close()
            raise self._as_traffic_error(error, query) from error
        except BaseException:
            session.close()
            raise
        query.end()
        epoch = session.epoch
        self._give_back(session)
        # not every engine notices that a file is deleted while it is being read
        for path in (*(file.path for file in snapshot.landed), *snapshot.landed_links):
            if not os.path.exists(f"{self._lake.root}/{path}"):  # noqa: PTH110  # three times as fast
                raise FilesGone(f"{self._lake.root}/{path} was deleted while the cluster was reading it.")
        organization = snapshot.scope.organization
        if epoch is not None and epoch != self._lake.manifest.organizations.epoch(organization):
            raise FilesGone(f"visits of {organization} were changed while the cluster was reading them.")
        return table

    def _give_back(self, session: ClusterSession) -> None:
        with self._idle_lock:
            if len(self._idle) < MAX_IDLE_SESSIONS:
                self._idle.append(session)
                return
        session.close()

    def _session_for(self, snapshot: ClusterSnapshot) -> ClusterSession:
        """Return an idle session, preferably one with this snapshot's views, or a new session."""
        with self._idle_lock:
            for session in self._idle:
                if session.views_of is snapshot:
                    self._idle.remove(session)
                    return session
            if self._idle:
                return self._idle.pop()
        return ClusterSession(self._options.address)

    def _take_all(self) -> list[ClusterSession]:
        """Remove all idle sessions from the pool and return them."""
        with self._idle_lock:
            taken, self._idle = self._idle, []
        return taken

    def _check_count(self, seen: int, expected: int) -> None:
        """Raise FilesGone unless the cluster sees all visits, since not every engine reports missing files."""
        if seen != expected:
            raise FilesGone(
                f"the cluster at {self._options.shown_address} sees {seen} of {expected} visits under {self._folder}; "
                "every worker must see the lake there; if it is elsewhere, set TRAFFIC_ENGINE_LAKE."
            )

    def _as_traffic_error(self, error: Exception, query: Query) -> Exception:
        """Return the exception, which may be SessionLost, to raise for an error from the client."""
        if query.is_given_up:
            return ClusterUnavailable(f"the cluster at {self._options.shown_address} does not respond.")
        if query.is_interrupted and query.cancelled.is_set():
            return QueryFailed("the query was cancelled.")
        if query.is_interrupted:
            return ClusterTimeout(
                f"the query ran longer than {query.seconds:g} seconds on the cluster; it was stopped. "
                "Raise TRAFFIC_ENGINE_TIMEOUT."
            )
        meant = as_traffic_error(error)
        if isinstance(meant, FilesGone):
            return FilesGone(
                f"the cluster at {self._options.shown_address} cannot read a file under {self._folder}: {meant}"
            )
        return meant


def _arguments(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the values of the named parameters of compiled queries. A filter that is not set is NULL."""
    scope = snapshot.scope
    days = {"start_date": str(scope.start_date), "end_date": str(scope.end_date)}
    filters = {name: getattr(scope, name) for name in (*FILTERS, *LISTING)}
    counted = {"behaviour": snapshot.behaviour, "aside": snapshot.aside}
    return {"organization": scope.organization, **days, **filters, **counted}
