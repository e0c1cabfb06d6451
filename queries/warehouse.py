"""Computes the reports in the catalog with their templates. This module has no HTTP code."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Union

from data import Lake
from data.manifest.organizations import OrganizationState
from queries.catalog import Entry, template
from queries.locked_engine import QUERY_TIMEOUT_SECONDS, LockedEngine
from queries.scope import Scope
from queries.shared_visits import share_visits
from queries.snapshot import Snapshot, empty_snapshot, parsed, take_snapshot
from queries.traffic_values import TrafficValue

if TYPE_CHECKING:
    import pyarrow as pa

Result = list[dict[str, Any]] | dict[str, Any]
"""The answer for an entry: a list of rows, a single row, or the results of its parts by name."""

Tables = Union["pa.Table", dict[str, "Tables"]]
"""The Arrow table of an answer, or the tables of its parts by name."""


class Warehouse:
    """Computes the reports in the catalog from one lake, for any organization. Safe to use from several threads.

    It runs only this package's SQL; OwnSql runs users' SQL.
    """

    def __init__(
        self,
        lake: Lake,
        values: list[TrafficValue] | None = None,
        memory: str | None = None,
        seconds: float = QUERY_TIMEOUT_SECONDS,
        *,
        in_background: bool = False,
    ) -> None:
        """Start an engine.

        `memory`, such as "300MB", limits all queries together; None: DuckDB's default. `seconds` limits each query.
        With `in_background`, the engine uses a single core and caches no file footers in memory.
        """
        self._lake = lake
        self._engine = LockedEngine(lake, None, values, memory, seconds, in_background=in_background)
        self._no_visits = empty_snapshot(lake)

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return a snapshot of the lake for a scope. Answers from the same snapshot are consistent with each other."""
        return replace(take_snapshot(self._lake, scope), traffic_values=self._engine.traffic_values)

    def with_shared_visits(
        self, snapshot: Snapshot, entries: Sequence[Entry], cancelled: threading.Event | None = None
    ) -> Snapshot:
        """Read the visits that these answers can share, and return the snapshot that keeps them in memory.

        Raises the exceptions of `answer`.
        """
        return share_visits(self._engine, snapshot, entries, cancelled)

    @contextmanager
    def sharing(
        self, snapshot: Snapshot, entries: Sequence[Entry], cancelled: threading.Event | None = None
    ) -> Iterator[Snapshot]:
        """Yield the snapshot with the visits that these answers share, kept in memory; release them afterwards."""
        shared = self.with_shared_visits(snapshot, entries, cancelled)
        try:
            yield shared
        finally:
            if shared is not snapshot:
                self.forget(shared)

    def forget(self, snapshot: Snapshot) -> None:
        """Release the visits that a snapshot's answers share. Call this after the last answer."""
        self._engine.forget(snapshot)

    def state(self, organization: str) -> OrganizationState:
        """Return an organization's time zone and epoch. If the epoch has grown, earlier answers are outdated."""
        return self._lake.manifest.organizations.state(organization)

    def answer(self, entry: Entry, snapshot: Snapshot, cancelled: threading.Event | None = None) -> Result:
        """Return the answer for one catalog entry. Raises QueryTimeout, QueryFailed, FilesGone or EngineLost.

        To cancel the query from another thread, pass an event as `cancelled` and call `stop` with that event.
        """
        if entry.shape == "parts":
            with self.sharing(snapshot, [entry], cancelled) as shared:
                return {member: self.answer(part, shared, cancelled) for member, part in entry.members}
        names = [field.name for field in entry.fields]
        with self._engine.cursor(snapshot, cancelled, is_kept=True) as cursor:
            result = cursor.execute(parsed(cursor, template(entry.name)))
            _check_columns(entry, [(name, str(kind)) for name, kind, *_ in result.description or ()])
            rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        return rows[0] if entry.shape == "row" else rows

    def tables(self, entry: Entry, snapshot: Snapshot) -> Tables:
        """Return the answer for one catalog entry as an Arrow table, or as a dict of tables. Raises the exceptions of
        `answer`.
        """
        if entry.shape == "parts":
            with self.sharing(snapshot, [entry]) as shared:
                return {member: self.tables(part, shared) for member, part in entry.members}
        with self._engine.cursor(snapshot, is_kept=True) as cursor:
            relation = cursor.sql(template(entry.name))
            _check_columns(
                entry, [(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]
            )
            return relation.to_arrow_table()

    def describe(self, sql: str) -> dict[str, str]:
        """Return the columns of one of this package's queries in order, with their types. The query is not run."""
        return self._engine.describe(sql)

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the queries of the `answer` call that was given this event."""
        self._engine.stop(cancelled)

    def probe(self) -> None:
        """Run a query on the empty seed file, as a health check. Raises the exceptions of a query."""
        with self._engine.cursor(self._no_visits, is_kept=True) as cursor:
            cursor.execute("SELECT count(*) FROM visits_in_scope").fetchall()

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _check_columns(entry: Entry, columns: list[tuple[str, str]]) -> None:
    """Raise AssertionError unless a template returns the columns (pairs of name and type) that its entry declares."""
    declared = [(field.name, field.kind.sql) for field in entry.fields]
    if columns != declared:
        raise AssertionError(f"template {entry.name} returns {columns}, but the catalog declares {declared}")
