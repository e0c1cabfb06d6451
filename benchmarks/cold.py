"""Cold answers: cache missed, process and file cache warm; beside peers that hold the same visits."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from benchmarks.bars import APPROXIMATE, MERGE_TREE, RAW, REFRESHED, SQLITE, UMAMI, VIEWS
from benchmarks.figures import OURS, Figure, beside, in_turn, milliseconds
from benchmarks.peers import MEMBERS, Peer, World, check
from benchmarks.peers.clickhouse import ClickHouse
from benchmarks.peers.raw import Raw
from benchmarks.peers.sqlite import SQLite
from benchmarks.peers.umami import MEMBERS as UMAMI_MEMBERS
from benchmarks.peers.umami import Umami, postgresql, programs
from benchmarks.worlds import WHOLE, Setting, average_link
from queries import ENDPOINTS, ENTRIES, Entry, Scope, Warehouse, template_entries

PATIENCE: Final = 600.0
_MOST_FOR_SQLITE: Final = 1_000_000
"""Its time grows with the visits, to minutes for one dashboard."""

Way = Callable[[], float]


def cold(setting: Setting) -> Iterator[Figure]:
    """The dashboard, whole and of one link, and each answer alone, at every size."""
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
    """The dashboard at every size beside the one at the smallest, without other peers."""
    smallest, *others = setting.worlds
    for world in others:
        with closing(Warehouse(world.lake, seconds=PATIENCE)) as warehouse:
            yield from _grown(smallest, world, warehouse)


def disk(setting: Setting) -> Iterator[Figure]:
    """Bytes on disk for each visit."""
    with closing(ClickHouse(setting.kept / "clickhouse")) as clickhouse:
        for world in setting.worlds:
            sizes = {OURS: _bytes_of(world), MERGE_TREE: clickhouse.bytes_of(clickhouse.table(world))}
            sizes[VIEWS] = sizes[MERGE_TREE] + clickhouse.bytes_of(clickhouse.views(world, VIEWS))
            if world.visits <= _MOST_FOR_SQLITE:
                sizes[SQLITE] = SQLite(setting.kept, world).path.stat().st_size
            samples = {who: [size / world.visits] for who, size in sizes.items()}
            yield from beside("on disk", "bytes/visit", samples, world.visits)


def umami(setting: Setting) -> Iterator[Figure]:
    """What Umami answers too, all of it and each answer alone, and bytes on disk, at every size."""
    if not programs():
        print("The case umami is left out, as PostgreSQL is not installed: apt-get install postgresql", file=sys.stderr)
        return
    with postgresql(setting.kept / "postgresql") as socket:
        for world in setting.worlds:
            peer = Umami(socket, world)
            with closing(Warehouse(world.lake, seconds=PATIENCE)) as warehouse:
                peer.check(warehouse, WHOLE)
                for case, names in {"all": [*UMAMI_MEMBERS], **{name: [name] for name in UMAMI_MEMBERS}}.items():
                    samples = in_turn(_as_umami(warehouse, peer, names))
                    yield from beside(f"cold, answers of Umami: {case}", "ms", samples, world.visits)
            sizes = {OURS: [_bytes_of(world) / world.visits], UMAMI: [peer.bytes_on_disk() / world.visits]}
            yield from beside("on disk", "bytes/visit", sizes, world.visits)


def _as_umami(warehouse: Warehouse, peer: Umami, names: list[str]) -> dict[str, Way]:
    """Ways to the answers of these names; Umami's come over a new connection, which is not timed."""
    entry = Entry("umami", "parts", members=tuple((name, UMAMI_MEMBERS[name]) for name in names))

    def theirs() -> float:
        with peer.connection() as connection:
            return milliseconds(lambda: [peer.ask(connection, name, WHOLE) for name in names])

    return {OURS: lambda: milliseconds(lambda: warehouse.answer(entry, warehouse.snapshot(WHOLE))), UMAMI: theirs}


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
    """An answer by itself, beside the peer if it is of the dashboard."""
    leaves = [leaf.name for leaf in template_entries(entry)]
    ways: dict[str, Way] = {OURS: lambda: milliseconds(lambda: warehouse.answer(entry, warehouse.snapshot(WHOLE)))}
    if set(leaves) <= set(MEMBERS):
        ways[MERGE_TREE] = lambda: milliseconds(lambda: [table.ask(leaf, WHOLE) for leaf in leaves])
    return ways


def _grown(smallest: World, world: World, warehouse: Warehouse) -> list[Figure]:
    """The dashboard beside the one over the smallest world."""
    with closing(Warehouse(smallest.lake, seconds=PATIENCE)) as other:
        name = f"itself at {smallest.visits:,} visits"
        samples = in_turn({OURS: _ours(warehouse, WHOLE), name: _ours(other, WHOLE)})
    return beside("cold dashboard", "ms", samples, world.visits)[1:]


def _plain(setting: Setting, world: World) -> dict[str, Peer]:
    """The peers that prepare nothing."""
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


def _bytes_of(world: World) -> int:
    """What the lake takes, all of it."""
    return sum(path.stat().st_size for path in world.lake.root.rglob("*") if path.is_file())
