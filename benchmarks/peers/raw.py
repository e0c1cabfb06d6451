"""Raw DuckDB: the same Parquet files, without any of our code."""

import duckdb

from benchmarks.peers import Rows, World, condition, filled, statements
from queries import Scope


class Raw:
    """An analyst's connection, with a view of the files."""

    def __init__(self, world: World, scope: Scope) -> None:
        self._texts = statements("raw.sql")
        self._engine = duckdb.connect()
        files = world.lake.visit_files(scope.organization, scope.start_date, scope.end_date)
        self._engine.read_parquet(files, hive_partitioning=True).create_view("files")
        self._engine.sql(self._texts["visits"]).create_view("visits")

    def ask(self, member: str, scope: Scope) -> Rows:
        """Return the member's rows."""
        return self._engine.execute(filled(self._texts[member], {"scope": condition(scope)})).fetchall()

    def rows(self, _: str, answer: object) -> Rows:
        """Return the rows as they are."""
        assert isinstance(answer, list)
        return answer
