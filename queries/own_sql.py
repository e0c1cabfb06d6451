"""Runs SELECTs that a person or a program wrote, over the data of one organization.

Whatever runs SQL that is not ours (a command, a notebook, a tool of an assistant) runs it here and nowhere else.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from data import Lake, check_organization
from queries.locked_engine import QUERY_TIMEOUT_SECONDS, LockedEngine, QueryFailed
from queries.scope import Scope
from queries.traffic_values import TrafficValue

if TYPE_CHECKING:
    import pyarrow as pa


class Rows(NamedTuple):
    """What a query returned."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    is_truncated: bool  # there were more rows than asked for


class OwnSql:
    """Answers SELECTs over the relations of the prelude, for one organization. Safe to use from several threads.

    Its engine is its own and can open only the folders of that organization, so that even a query that names the
    files of another organization cannot read them.
    """

    def __init__(
        self,
        lake: Lake,
        organization: str,
        values: list[TrafficValue] | None = None,
        memory: str | None = None,
        seconds: float = QUERY_TIMEOUT_SECONDS,
    ) -> None:
        """Start an engine; `memory` (such as "300MB") and `seconds` limit it. Raises BadInput for an invalid name."""
        check_organization(organization)
        self._organization = organization
        self._engine = LockedEngine(lake, organization, values, memory, seconds)

    def sql(self, text: str, scope: Scope, max_rows: int | None = None) -> Rows:
        """The rows of one SELECT; the relations contain the visits of the scope. At most `max_rows` are read.

        Raises QueryTimeout; QueryFailed if it is not a single SELECT, would write, reads other files, or fails
        otherwise; ValueError for the scope of another organization.
        """
        with self._checked(text, scope) as cursor:
            result = cursor.execute(text)
            columns = [column[0] for column in result.description or ()]
            rows = result.fetchall() if max_rows is None else result.fetchmany(max_rows + 1)
        return Rows(columns, rows[:max_rows], max_rows is not None and len(rows) > max_rows)

    def table(self, text: str, scope: Scope) -> "pa.Table":
        """All rows of one SELECT as an Arrow table. Raises what `sql` raises."""
        with self._checked(text, scope) as cursor:
            return cursor.sql(text).to_arrow_table()

    @contextmanager
    def _checked(self, text: str, scope: Scope) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor for a text that is checked to be one SELECT that only reads."""
        if scope.organization != self._organization:
            raise ValueError(f"this engine reads the files of {self._organization}, not of {scope.organization}.")
        with self._engine.cursor(self._engine.variables(scope)) as cursor:
            _check_read_only(cursor, text)
            yield cursor

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


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
    try:
        cursor.execute("DESCRIBE FROM query($sql)", {"sql": sql}).fetchall()
    except duckdb.Error:
        if _WRITING_NODE not in tree:
            cursor.execute(f"EXPLAIN {sql}")  # runs nothing: the same error, but it quotes a line of `sql`
        raise


_WRITING_NODE: Final = "_QUERY_NODE"  # of COPY, INSERT, UPDATE and DELETE in a WITH clause
_FUNCTION_CALL: Final = re.compile(r'"function_name":"([^"]*)"')
_FORBIDDEN_FUNCTIONS: Final = frozenset(
    ("enable_logging", "disable_logging", "enable_profiling", "disable_profiling", "truncate_duckdb_logs", "write_log",
     "query", "query_table", "json_execute_serialized_sql")  # the last three run SQL from a string
)  # fmt: skip
