"""Runs ClickHouse in this process, through chdb: as a plain table, and with its own materialized views."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.bars import APPROXIMATE, REFRESHED, VIEWS
from benchmarks.peers import Rows, World, condition, filled, statements
from queries import Scope

_COUNTING: Final = {
    VIEWS: {
        "visitors of": "uniqExactState(visitor)", "visitors": "uniqExactMerge(visitors)",
        "pages of": "uniqExactIfState(path, path != '')", "pages": "uniqExactIfMerge(pages)",
    },
    APPROXIMATE: {
        "visitors of": "uniqState(visitor)", "visitors": "uniqMerge(visitors)",
        "pages of": "uniqIfState(path, path != '')", "pages": "uniqIfMerge(pages)",
    },
    REFRESHED: {
        "visitors of": "CAST(uniqExact(visitor), 'SimpleAggregateFunction(sum, UInt64)')", "visitors": "sum(visitors)",
        "pages of": "uniqExactIfState(path, path != '')", "pages": "uniqExactIfMerge(pages)",
    },
}  # fmt: skip
"""Expressions for the visitors and pages of a day, by peer. A view that grows as visits land must store the
visitors' hashes, exactly or approximately; a view refreshed after each day needs to store only the number of visitors,
since the next day has other visitors.
"""


class ClickHouse:
    """ClickHouse with a database for each world, all in one folder."""

    def __init__(self, folder: Path) -> None:
        try:
            from chdb.session import Session  # noqa: PLC0415  # half a gigabyte, which few cases need
        except ImportError:
            raise SystemExit("chdb is missing: use uv run --group bench, or name other cases with --only.") from None
        self._session = Session(str(folder))

    def table(self, world: World) -> "Table":
        """Return the plain table, filled with the world's visits."""
        database = f"visits_{world.name}_{world.digest}".replace("-", "_")
        texts = statements("clickhouse.sql")
        loads = [filled(texts["load"], {"files": files}) for files in _files(world)]
        self._build(database, [texts["visits"], *loads, "OPTIMIZE TABLE visits FINAL"])
        return Table(self._told, database, texts)

    def views(self, world: World, way: str) -> "Table":
        """Return materialized views of the world's visits, filled; `way` is a key of _COUNTING."""
        base = self.table(world).database
        texts = {name: filled(text, _COUNTING[way]) for name, text in statements("clickhouse-views.sql").items()}
        steps = []
        for name in [name for name in texts if name.startswith("table ")]:
            create, table = texts.pop(name).replace("FROM visits", f"FROM {base}.visits"), name.removeprefix("table ")
            select = create.partition(" AS\n")[2]
            steps += [create, f"OPTIMIZE TABLE {table} FINAL"]
            steps += [] if way == REFRESHED else [f"CREATE MATERIALIZED VIEW {table}_grows TO {table} AS {select}"]
        database = f"{base}_{list(_COUNTING).index(way)}"
        self._build(database, steps)
        return Table(self._told, database, texts)

    def close(self) -> None:
        """Close the session, which ends the engine."""
        self._session.close()

    def _told(self, sql: str) -> bytes:
        """Return the result of a statement as tab-separated text."""
        return bytes(self._session.query(sql, "TabSeparated").bytes())

    def _build(self, database: str, steps: list[str]) -> None:
        """Create a database with these statements, unless it is already complete."""
        if self._told(f"EXISTS {database}.whole").strip() == b"1":
            return
        for step in (f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}", f"USE {database}", *steps):
            self._session.query(step)
        self._session.query("CREATE TABLE whole (nothing UInt8) ENGINE = TinyLog")


class Table:
    """A peer: a database with one world's visits, or with views of them."""

    def __init__(self, told: Callable[[str], bytes], database: str, texts: dict[str, str]) -> None:
        self.database = database
        self._told = told
        self._texts = {name: re.sub(r"FROM (?=\w)", f"FROM {database}.", text) for name, text in texts.items()}

    def ask(self, member: str, scope: Scope) -> bytes:
        """Return a member's answer as tab-separated text."""
        return self._told(filled(self._texts[member], {"scope": condition(scope)}))

    def rows(self, _: str, answer: object) -> Rows:
        """Return the fields of each line of an answer."""
        assert isinstance(answer, bytes)
        return [tuple(line.split("\t")) for line in answer.decode().splitlines()]


def _files(world: World) -> list[str]:
    """Return the live files of each organization, in ClickHouse's notation for several files."""
    manifest = world.lake.manifest
    each = ([file.path for file in manifest.files.live(name)] for name in manifest.organizations.names())
    return [f"{world.lake.root}/{{{','.join(paths)}}}" for paths in each]
