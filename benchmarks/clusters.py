"""Answers of Apache Spark with one and with two workers, beside this machine with rollups and without.

`uv run --group cluster python -m benchmarks --only cluster`; needs Java 17.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from benchmarks.figures import OURS, Figure, beside
from benchmarks.peers import World
from benchmarks.worlds import WHOLE, Setting
from queries import ENTRIES, ClusterOptions, Engine, Entry, Snapshot, Warehouse, open_cluster
from queries.snapshot import one_source

RUNS: Final = 2
_LARGEST_WITH_DASHBOARD: Final = 1_000_000
"""Beyond that Spark takes many minutes for a dashboard on two cores; three answers are asked for, once."""
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
            servers[f"Spark, workers: {workers}"] = spark(folder, workers, _OPTIONS, java_options="")
        for world in setting.worlds:
            yield from _answers(world, {name: server.address for name, server in servers.items()})
    finally:
        for server in servers.values():
            server.stop()


def _answers(world: World, addresses: dict[str, str]) -> Iterator[Figure]:
    with closing(Warehouse(world.lake, seconds=_PATIENCE)) as warehouse:
        clusters = {
            name: open_cluster(world.lake, Warehouse(world.lake), ClusterOptions(address, 0, _PATIENCE))
            for name, address in addresses.items()
        }
        whole = warehouse.snapshot(WHOLE)
        uncounted = replace(
            whole,
            uncovered_files=whole.files,
            rollups=whole.rollups[:1],
            closed_days=(),
            sources=one_source("all_visits"),
        )
        ways: dict[str, tuple[Engine, Snapshot]] = {
            OURS: (warehouse, whole),
            WITHOUT_ROLLUPS: (warehouse, uncounted),
            **{name: (cluster, cluster.snapshot(WHOLE)) for name, cluster in clusters.items()},
        }
        is_large = world.visits > _LARGEST_WITH_DASHBOARD
        for name in ANSWERS[is_large:]:
            samples = _in_turn(ENTRIES[name], ways, 0 if is_large else RUNS)
            yield from beside(f"cluster: {name}", "s", samples, world.visits)
        for cluster in clusters.values():
            cluster.close()


def _in_turn(entry: Entry, ways: dict[str, tuple[Engine, Snapshot]], runs: int) -> dict[str, list[float]]:
    """The seconds of so many answers of each, after one that only counts if there is no other. All must be equal."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(runs + 1):
        answers = []
        for name, (engine, snapshot) in ways.items():
            started = time.perf_counter()
            answers.append(engine.answer(entry, snapshot))
            if run or not runs:
                samples[name].append(time.perf_counter() - started)
        if any(answer != answers[0] for answer in answers):
            raise SystemExit(f"the answers of {entry.name} differ.")
    return samples
