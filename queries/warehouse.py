"""Runs templates over the lake: the only file that holds a DuckDB engine for answers. It knows no HTTP."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any, Final

import duckdb

from data import Lake, TrafficError
from queries.catalog import ANSWERS, Entry, template, templates
from queries.prelude import prelude
from queries.scope import Scope
from queries.traffic_values import TrafficValue, load_values

QUERY_SECONDS: Final = 10.0

Variables = dict[str, Any]
"""The session variables that the prelude reads: scope, files, links and traffic_values."""

Answer = list[dict[str, Any]] | dict[str, Any]
"""An array of objects, or one object whose members may be answers again."""


class QueryTimeout(TrafficError):
    """A query ran longer than it may."""


class QueryFailed(TrafficError):
    """A query that the engine refused or could not finish."""


class FilesGone(QueryFailed):
    """A file was deleted while it was read; with the files of a moment later the same query works."""


class Warehouse:
    """Answers of one lake. Safe to use from several threads: every query has a cursor of its own."""

    def __init__(
        self,
        lake: Lake,
        values: list[TrafficValue] | None = None,
        memory: str | None = None,
        seconds: float = QUERY_SECONDS,
    ) -> None:
        """Set up the engine, lock it down to the lake, and check the shape of every template.

        `memory` is what queries may use in all, such as "300MB"; None leaves it to the engine.
        """
        self._lake = lake
        self._seconds = seconds
        self._values = [value._asdict() for value in (load_values() if values is None else values)]
        self._engine = duckdb.connect(
            config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        self._engine.execute("SET TimeZone = 'UTC'")
        self._set(self._engine, self._nothing())
        for statement in prelude():
            self._engine.execute(statement)
        self._lock_down(memory)
        self._check_shapes()

    def variables(self, scope: Scope) -> Variables:
        """A snapshot of what the manifest holds for a scope now; answers from one snapshot agree with each other."""
        return {
            "scope": asdict(scope),
            "files": self._lake.visit_files(scope.organization, scope.start_date, scope.end_date),
            "links": self._lake.link_files(scope.organization),
            "traffic_values": self._values,
        }

    def epoch(self, organization: str) -> int:
        """How often visits that an organization's earlier answers rest on were changed."""
        return self._lake.manifest.epoch(organization)

    def answer(self, entry: Entry, variables: Variables) -> Answer:
        """The answer of one entry of the catalogue. Raises QueryTimeout, QueryFailed or FilesGone."""
        if entry.shape == "parts":
            return {member: self.answer(part, variables) for member, part in entry.members}
        names = [field.name for field in entry.fields]
        with self._cursor() as cursor:
            rows = [
                dict(zip(names, row, strict=True)) for row in self._fetched(cursor, template(entry.name), variables)[1]
            ]
        return rows[0] if entry.shape == "row" else rows

    def rows(self, sql: str, variables: Variables) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The column names and rows of somebody's own SELECT over the relations of the prelude.

        Raises QueryTimeout, or QueryFailed for what is no single SELECT or what the engine refuses.
        """
        with self._cursor() as cursor:
            statements = cursor.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise QueryFailed("it must hold one SELECT and nothing else.")
            return self._fetched(cursor, sql, variables)

    def _fetched(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, variables: Variables
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        self._set(cursor, variables)
        result = cursor.execute(sql)
        return [column[0] for column in result.description or ()], result.fetchall()

    def probe(self) -> None:
        """Run a real query over the seed file; raises what any query may raise."""
        self.rows("SELECT count(*) FROM visits_in_scope", self._nothing())

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A private cursor that is interrupted when its time is over: shared, it would mix up two callers' scopes."""
        cursor = self._engine.cursor()
        watchdog = threading.Timer(self._seconds, cursor.interrupt)
        watchdog.start()
        try:
            yield cursor
        except duckdb.InterruptException as error:
            raise QueryTimeout(f"the query ran longer than {self._seconds:g} seconds and was stopped.") from error
        except duckdb.IOException as error:
            raise FilesGone(" ".join(str(error).split())) from error
        except duckdb.Error as error:
            raise QueryFailed(" ".join(str(error).split())) from error
        finally:
            watchdog.cancel()
            cursor.close()

    def _nothing(self) -> Variables:
        return {"files": [self._lake.seed_visits], "links": [self._lake.seed_links], "traffic_values": self._values}

    @staticmethod
    def _set(cursor: duckdb.DuckDBPyConnection, variables: Variables) -> None:
        for name, value in variables.items():
            cursor.execute(_SET[name], {"value": value})

    def _lock_down(self, memory: str | None) -> None:
        """Let queries read the lake and nothing else, and let nobody change that."""
        folder = str(self._lake.root) + "/"
        if memory:
            self._engine.execute("SET memory_limit = $memory", {"memory": memory})
        self._engine.execute("SET temp_directory = $folder", {"folder": f"{folder}.staging/engine"})
        self._engine.execute("SET allowed_directories = $folders", {"folders": [folder]})
        self._engine.execute("SET enable_external_access = FALSE")
        self._engine.execute("SET lock_configuration = TRUE")

    def _check_shapes(self) -> None:
        """Every template must give exactly the columns that its entry declares."""
        with closing(self._engine.cursor()) as cursor:  # start-up takes the time it takes
            self._set(cursor, self._nothing())
            for entry in (leaf for answer in ANSWERS.values() for leaf in templates(answer)):
                described = cursor.execute(f"DESCRIBE {template(entry.name)}").fetchall()
                found = [(name, kind) for name, kind, *_ in described]
                declared = [(field.name, field.kind.sql) for field in entry.fields]
                if found != declared:
                    raise AssertionError(f"template {entry.name} gives {found}, the catalogue declares {declared}")


_SET: Final = {
    "scope": "SET VARIABLE scope = CAST($value AS scope)",
    "files": "SET VARIABLE files = CAST($value AS VARCHAR[])",
    "links": "SET VARIABLE links = CAST($value AS VARCHAR[])",
    "traffic_values": "SET VARIABLE traffic_values = "
    "CAST($value AS STRUCT(traffic_type VARCHAR, ten_thousandths BIGINT, currency VARCHAR)[])",
}
