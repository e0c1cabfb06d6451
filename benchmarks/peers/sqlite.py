"""SQLite, as used by small self-hosted tools."""

import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.peers import Rows, World, condition, filled, statements
from queries import Scope


class SQLite:
    """A database with one world's visits."""

    def __init__(self, folder: Path, world: World) -> None:
        self._texts = statements("sqlite.sql")
        self.path = folder / f"sqlite-{world.name}-{world.digest}.db"
        if not self.path.exists():
            self._load(world, self.path.with_suffix(".part"))
            self.path.with_suffix(".part").rename(self.path)
        self._database = sqlite3.connect(self.path)
        self._database.execute("PRAGMA cache_size = -1000000")  # 1 GB, so that nothing waits for the disk

    def ask(self, member: str, scope: Scope) -> Rows:
        """Return the member's rows."""
        return self._database.execute(filled(self._texts[member], {"scope": condition(scope)})).fetchall()

    def rows(self, _: str, answer: object) -> Rows:
        """Return the rows as they are."""
        assert isinstance(answer, list)
        return answer

    def _load(self, world: World, path: Path) -> None:
        path.unlink(missing_ok=True)
        database = sqlite3.connect(path)
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(self._texts["visits"])
        columns = [name for _, name, *_ in database.execute("PRAGMA table_info(visits)")]
        holes = ", ".join("?" * len(columns))
        engine, seen = (
            duckdb.connect(),
            statements("raw.sql")["visits"].replace("FROM files", "FROM read_parquet($file)"),
        )
        manifest = world.lake.manifest
        for file in (file for name in manifest.organizations.names() for file in manifest.files.live(name)):
            table: pa.Table = engine.sql(seen, params={"file": f"{world.lake.root}/{file.path}"}).to_arrow_table()
            rows = zip(*(_values(table.column(name)) for name in columns[2:]), strict=True)
            head = (file.organization, file.day.isoformat())
            database.executemany(f"INSERT INTO visits VALUES ({holes})", (head + row for row in rows))
        database.executescript(self._texts["indexes"])
        database.execute("ANALYZE")
        database.commit()
        database.close()


def _values(column: pa.ChunkedArray) -> list[object]:
    """Return a column's values for SQLite, with times in seconds."""
    if pa.types.is_timestamp(column.type):
        column = pc.divide(column.cast(pa.int64()), 1_000_000)
    values: list[object] = column.to_pylist()
    return values
