"""Measures publishing to a bucket on this machine: a whole lake, one more day, and visits as they arrive.

`uv run --group cluster --group publish python -m benchmarks --visits 20000000 --only publish`
"""

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.bars import PLAIN_PUTS, UNPUBLISHED
from benchmarks.figures import OURS, Figure, beside, figure, percentile_99, seconds
from benchmarks.importing import LINES
from benchmarks.live import BATCH, reported_bodies
from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.lakes import land_organization, settle_copy
from benchmarks.peers import World
from benchmarks.servers import TRAFFIC, key_of, program, server
from benchmarks.worlds import Setting
from data import Lake
from data.buckets.target import open_target
from data.publish.publisher import LakePublisher
from service.demo.sample import Sample

RUNS: Final = 3
PUTS_AT_ONCE: Final = 8
BATCHES_PER_SECOND: Final = 10
POSTED_SECONDS: Final = 60.0
"""How long batches are posted: long enough for three publications, one every 20 seconds."""


def publishing(setting: Setting) -> Iterator[Figure]:
    """Measure publishing at every size, compared with plain puts of the same files; then measure posting to servers
    with and without publishing.
    """
    there = import_module("tests.publish.conftest")
    folder = setting.scratch / "bucket"
    folder.mkdir()
    bucket: Any = there.Bucket(folder)
    try:
        os.environ.update(there.variables(bucket))
        for world in setting.worlds:
            yield from _published(world, setting.scratch / f"published-{world.visits}", bucket)
        yield from _posted(setting, bucket)
    finally:
        bucket.stop()


def _published(world: World, root: Path, bucket: Any) -> Iterator[Figure]:  # noqa: ANN401  # from tests, imported late
    shutil.copytree(world.lake.root, root)
    lake = Lake(root)
    settle_copy(lake)
    samples: dict[str, list[float]] = {OURS: [], PLAIN_PUTS: []}
    for _ in range(RUNS):
        publisher = LakePublisher(lake, f"s3://{bucket.new()}/lake")
        samples[OURS].append(seconds(partial(publisher.publish, ORGANIZATION)))
        samples[PLAIN_PUTS].append(_plain_puts(lake, f"s3://{bucket.new()}/plain"))
    yield from beside("publish, the first time", "s", samples, world.visits)
    more = []
    for number in range(RUNS):
        sample = Sample(world.visits // DAYS, LAST_DAY + timedelta(days=number + 1), 1)
        land_organization(lake, ORGANIZATION, sample)
        more.append(seconds(partial(publisher.publish, ORGANIZATION)))
    yield figure("publish, one day more", "s", more, world.visits)
    lake.manifest.close()
    shutil.rmtree(root)


def _plain_puts(lake: Lake, name: str) -> float:
    """Return the seconds that merely putting the same files into the bucket takes."""
    target = open_target(name)
    files = [lake.root / file.path for file in lake.manifest.files.live(ORGANIZATION)]

    def put_all() -> None:
        with ThreadPoolExecutor(PUTS_AT_ONCE) as threads:
            list(threads.map(lambda path: target.put(path.name, path), files))

    return seconds(put_all)


def _posted(setting: Setting, bucket: Any) -> Iterator[Figure]:  # noqa: ANN401  # from tests, imported late
    """Measure the 99th percentile of the time to acknowledge a batch, alternating between servers with and without
    publishing.
    """
    batches = round(BATCHES_PER_SECOND * POSTED_SECONDS)
    bodies = next(reported_bodies(setting.log(LINES), BATCH, batches, setting.scratch))
    samples: dict[str, list[float]] = {OURS: [], UNPUBLISHED: []}
    refused = 0
    for run in range(RUNS):
        for who, taken in samples.items():
            root = setting.scratch / f"posted-{run}-{len(who)}"
            Lake(root, create=True).manifest.close()
            (setting.scratch / "key").write_text(key_of(root, ORGANIZATION), "ascii")
            settings = {"TRAFFIC_PUBLISH": f"s3://{bucket.new()}/lake"} if who == OURS else {}
            with server(root, TRAFFIC, **settings) as (port, _):
                words = (port, bodies, setting.scratch / "key", BATCHES_PER_SECOND, POSTED_SECONDS)
                with program("benchmarks.posting", *words) as poster:
                    assert poster.stdout
                    posted = json.loads(poster.stdout.readline())
            taken.append(percentile_99(posted["milliseconds"]))
            refused += len(posted["refused"])
    for one in beside("live batches, acknowledged after, p99, published", "ms", samples):
        yield replace(one, visits=BATCH * batches)
    yield figure("live batches, refused, published", "batches", [refused])
