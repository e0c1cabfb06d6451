"""Measures dashboards filtered by one word over HTTP, as the first dashboard of a server and as the next.
Precomputed counts serve only some members of a filtered dashboard.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final
from urllib.parse import urlencode

from benchmarks.bars import MERGE_TREE
from benchmarks.cold import PATIENCE
from benchmarks.figures import OURS, RUNS, Figure, beside, milliseconds
from benchmarks.peers import MEMBERS, Peer, World, check
from benchmarks.peers.clickhouse import ClickHouse
from benchmarks.servers import get, key_of, server
from benchmarks.worlds import WHOLE, Setting
from queries import OwnSql, Scope, Warehouse

_WORDS: Final = {
    "country": "SELECT country, count(*) FROM visits_in_scope WHERE country IS NOT NULL GROUP BY ALL",
    "ai_source": "SELECT ai_source, count(*) FROM visits_in_scope WHERE ai_source IS NOT NULL GROUP BY ALL",
    "device_type": "SELECT device_type, count(*) FROM visits_in_scope GROUP BY ALL",
    "referrer": "SELECT referrer, count(*) FROM visits_in_scope WHERE referrer IS NOT NULL GROUP BY ALL",
    "path": "SELECT path, count(*) FROM visits_in_scope WHERE path <> '' GROUP BY ALL",
}
"""For each filter, the query that returns its words with their numbers of visits."""
_RANKS: Final = (1, 10)
_FEW: Final = 1_000_000


def filtered(setting: Setting) -> Iterator[Figure]:
    """Measure the dashboard filtered by the most frequent word of each kind, and by the tenth if there is one, at every
    size.

    Each is measured as the first click after a server starts, and as the next click, after a dashboard of the same days
    with another filter.
    """
    with closing(ClickHouse(setting.kept / "clickhouse")) as clickhouse:
        for world in setting.worlds:
            key, table = key_of(world.lake.root, WHOLE.organization), clickhouse.table(world)
            scopes = dict(_scopes(world))
            with closing(Warehouse(world.lake, seconds=PATIENCE)) as warehouse:
                for scope in scopes.values():
                    check(table, MERGE_TREE, warehouse, scope)
            for (before, earlier), (case, scope) in pairwise([*scopes.items(), *islice(scopes.items(), 1)]):
                firsts, nexts = ({OURS: list[float](), MERGE_TREE: list[float]()} for _ in range(2))
                for run in range(RUNS + 1):
                    with server(world.lake.root) as (port, _):
                        clicks = [(earlier, firsts), (scope, nexts)]
                        for asked, samples in clicks:
                            took = {OURS: _ours(port, key, asked), MERGE_TREE: _theirs(table, asked)}
                            for who in took if run else ():  # the first run warms up
                                samples[who].append(took[who])
                yield from beside(f"cold dashboard of {before}, first", "ms", firsts, world.visits)
                yield from beside(f"cold dashboard of {case}, next", "ms", nexts, world.visits)


def _ours(port: int, key: str, scope: Scope) -> float:
    days = {"start_date": scope.start_date.isoformat(), "end_date": scope.end_date.isoformat()}
    path = f"/analytics/dashboard?{urlencode({**days, **scope.filters})}"
    return milliseconds(lambda: get(port, path, key))


def _theirs(table: Peer, scope: Scope) -> float:
    return milliseconds(lambda: [table.ask(member, scope) for member in MEMBERS])


def _scopes(world: World) -> Iterator[tuple[str, Scope]]:
    """Yield the scopes with their names: "few" or "many" visits, the filter, and the rank of its word."""
    with closing(OwnSql(world.lake, WHOLE.organization, seconds=PATIENCE)) as own_sql:
        for field, sql in _WORDS.items():
            words = own_sql.sql(f"{sql} ORDER BY 2 DESC, 1 LIMIT {max(_RANKS)}", WHOLE).rows
            for rank in _RANKS:
                if len(words) >= rank:
                    word, visits = words[rank - 1]
                    amount = "few" if visits <= _FEW else "many"
                    yield f"{amount} by {field}, rank {rank}", replace(WHOLE, **{field: word})
