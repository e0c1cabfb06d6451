"""Measures cold answers, beside peers with the same visits. "Cold" means that an answer is not in the answer cache; the
process and the file cache are warm.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from benchmarks.bars import APPROXIMATE, MERGE_TREE, RAW, REFRESHED, SQLITE, VIEWS
from benchmarks.figures import OURS, Figure, beside, in_turn, milliseconds
from benchmarks.peers import MEMBERS, Peer, World, check
from benchmarks.peers.clickhouse import ClickHouse
from benchmarks.peers.raw import Raw
from benchmarks.peers.sqlite import SQLite
from benchmarks.worlds import WHOLE, Setting, average_link
from queries import ENDPOINTS, ENTRIES, Entry, Scope, Warehouse, template_entries

PATIENCE: Final = 600.0
_MOST_FOR_SQLITE: Final = 1_000_000
"""Maximum number of visits for SQLite, which needs minutes for a dashboard of more visits."""

Way = Callable[[], float]


def cold(setting: Setting) -> Iterator[Figure]:
    """Measure the dashboard (of all links, and of one link) and each answer alone; compare sizes with the smallest."""
    smallest = setting.worlds[0]
    with closing(ClickHouse(setting.kept / "clickhouse")) as clickhouse:
        for world in setting.worlds:
            with closing(Warehouse(world.lake, seconds=PATIENCE)) as warehouse:
                yield from _dashboard(setting, world, warehouse, clickhouse)
                yield from _one_link(setting, world, warehouse, clickhouse)
                yield from _one_by_one(world, warehouse, clickhouse.table(world))
                if world is not smallest:
                    yield from _grown(smallest, world, warehouse)


def growth(setting: Setting) -> Iterator[Figure]:
    """Compare the dashboard at every larger size with the dashboard at the smallest size, without other peers."""
    smallest, *others = setting.worlds
    for world in others:
        with closing(Warehouse(world.lake, seconds=PATIENCE)) as warehouse:
            yield from _grown(smallest, world, warehouse)


def _dashboard(setting: Setting, world: World, warehouse: Warehouse, clickhouse: ClickHouse) -> Iterator[Figure]:
    peers: dict[str, Peer] = {MERGE_TREE: clickhouse.table(world)}
    peers |= {way: clickhouse.views(world, way) for way in (VIEWS, APPROXIMATE, REFRESHED)}
    peers |= _plain(setting, world)
    for name, peer in peers.items():
        if name != APPROXIMATE:
            check(peer, name, warehouse, WHOLE)
    yield from beside("cold dashboard", "ms", in_turn(_ways(warehouse, WHOLE, peers)), world.visits)


def _one_link(setting: Setting, world: World, warehouse: Warehouse, clickhouse: ClickHouse) -> Iterator[Figure]:
    scope = average_link(world.lake)
    peers: dict[str, Peer] = {MERGE_TREE: clickhouse.table(world), **_plain(setting, world)}
    for name, peer in peers.items():
        check(peer, name, warehouse, scope)
    yield from beside("cold dashboard of one link", "ms", in_turn(_ways(warehouse, scope, peers)), world.visits)


def _one_by_one(world: World, warehouse: Warehouse, table: Peer) -> Iterator[Figure]:
    for name, entry in ENDPOINTS.items():
        if name != "dashboard":
            samples = in_turn(_alone(entry, warehouse, table))
            yield from beside(f"cold, one answer: {name}", "ms", samples, world.visits)


def _alone(entry: Entry, warehouse: Warehouse, table: Peer) -> dict[str, Way]:
    """Return functions that time one answer alone: ours and, if the answer is part of the dashboard, the peer's."""
    leaves = [leaf.name for leaf in template_entries(entry)]
    ways: dict[str, Way] = {OURS: lambda: milliseconds(lambda: warehouse.answer(entry, warehouse.snapshot(WHOLE)))}
    if set(leaves) <= set(MEMBERS):
        ways[MERGE_TREE] = lambda: milliseconds(lambda: [table.ask(leaf, WHOLE) for leaf in leaves])
    return ways


def _grown(smallest: World, world: World, warehouse: Warehouse) -> list[Figure]:
    """Measure the dashboard, compared with the dashboard of the smallest world."""
    with closing(Warehouse(smallest.lake, seconds=PATIENCE)) as other:
        name = f"itself at {smallest.visits:,} visits"
        samples = in_turn({OURS: _ours(warehouse, WHOLE), name: _ours(other, WHOLE)})
    return beside("cold dashboard", "ms", samples, world.visits)[1:]


def _plain(setting: Setting, world: World) -> dict[str, Peer]:
    """Return the peers without precomputed data."""
    peers: dict[str, Peer] = {RAW: Raw(world, WHOLE)}
    if world.visits <= _MOST_FOR_SQLITE:
        peers[SQLITE] = SQLite(setting.kept, world)
    return peers


def _ways(warehouse: Warehouse, scope: Scope, peers: dict[str, Peer]) -> dict[str, Way]:
    return {OURS: _ours(warehouse, scope)} | {name: _theirs(peer, scope) for name, peer in peers.items()}


def _ours(warehouse: Warehouse, scope: Scope) -> Way:
    return lambda: milliseconds(lambda: warehouse.answer(ENTRIES["dashboard"], warehouse.snapshot(scope)))


def _theirs(peer: Peer, scope: Scope) -> Way:
    return lambda: milliseconds(lambda: [peer.ask(member, scope) for member in MEMBERS])
