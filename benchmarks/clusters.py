"""Answers of Apache Spark with one and with two workers, beside this machine with rollups and without.

`uv run --group cluster python -m benchmarks --only cluster`; needs Java 17.
"""

from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from typing import Any, Final

from benchmarks.figures import OURS, Figure, beside, in_turn, seconds
from benchmarks.peers import World
from benchmarks.worlds import WHOLE, Setting
from queries import ENTRIES, ClusterOptions, Warehouse, open_cluster
from queries.variables import one_source

RUNS: Final = 2
ANSWERS: Final = ("dashboard", "top-links", "bot-traffic", "domain-breakdown")
WITHOUT_ROLLUPS: Final = "DuckDB, visits read"
_OPTIONS: Final = {"spark.sql.shuffle.partitions": "4"}
_PATIENCE: Final = 3_600.0


def clusters(setting: Setting) -> Iterator[Figure]:
    """The dashboard and three answers that read much, at every size; all of them must be equal."""
    spark = import_module("tests.cluster.processes").Spark
    servers: dict[str, Any] = {}
    try:
        for workers in (1, 2):
            folder = setting.scratch / f"spark{workers}"
            folder.mkdir()
            servers[f"Spark, workers: {workers}"] = spark(folder, workers, _OPTIONS)
        for world in setting.worlds:
            yield from _answers(world, {name: server.address for name, server in servers.items()})
    finally:
        for server in servers.values():
            server.stop()


def _answers(world: World, addresses: dict[str, str]) -> Iterator[Figure]:
    with closing(Warehouse(world.lake, seconds=_PATIENCE)) as warehouse:
        engines = {
            name: open_cluster(world.lake, Warehouse(world.lake), ClusterOptions(address, 0, _PATIENCE))
            for name, address in addresses.items()
        }
        snapshots = {OURS: warehouse.variables(WHOLE), WITHOUT_ROLLUPS: _without_rollups(warehouse.variables(WHOLE))}
        snapshots |= {name: engine.variables(WHOLE) for name, engine in engines.items()}
        for entry in (ENTRIES[name] for name in ANSWERS):
            found = {name: engines.get(name, warehouse).answer(entry, snapshots[name]) for name in snapshots}
            if any(answer != found[OURS] for answer in found.values()):
                raise SystemExit(f"the answers of {entry.name} differ.")
            ways = {
                name: lambda name=name, entry=entry: seconds(
                    lambda: engines.get(name, warehouse).answer(entry, snapshots[name])
                )
                for name in snapshots
            }
            yield from beside(f"cluster: {entry.name}", "s", in_turn(ways, RUNS), world.visits)
        for engine in engines.values():
            engine.close()


def _without_rollups(variables: dict[str, Any]) -> dict[str, Any]:
    """The snapshot that reads all visits."""
    return variables | {
        "uncovered_files": variables["files"],
        "rollups": variables["rollups"][:1],
        "closed_days": [],
        "sources": one_source("all_visits"),
    }
