"""Rollups counted by a cluster equal rollups counted by one machine, row by row."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data.ingest.importer import Importer, Options
from queries import ClusterOptions, QueryFailed, RollupBuilder, Warehouse, open_cluster
from queries.snapshot import MAX_VALUES_PER_DAY
from service.demo.sample import Sample
from tests.support.lakes import opened
from tests.support.manifests import database_of
from tests.support.visits import land, visit

PROGRAM = Path(sys.executable).parent / "traffic"
LATER = datetime(2026, 12, 24, tzinfo=UTC)
CROWDED = date(2026, 11, 8)


@pytest.fixture(scope="module")
def landed(tmp_path_factory):
    """A lake with ten days in two months, one day with more domains than a relation keeps."""
    folder = tmp_path_factory.mktemp("landed")
    made = Sample(300, date(2026, 11, 9), 10)
    made.write(folder / "access.log")
    noon = datetime(CROWDED.year, CROWDED.month, CROWDED.day, 12, tzinfo=UTC)
    with opened(folder / "lake", create=True) as lake:
        Importer(lake).run(folder / "access.log", Options("acme"))
        domains = (f"d{number}.example" for number in range(MAX_VALUES_PER_DAY + 5))
        land(lake, "acme", [visit(visited_at=noon, domain=domain) for domain in domains])
    return folder / "lake"


def more_days(lake):
    """Land visits on a day without a rollup, in a month that has one."""
    land(lake, "acme", [visit(visited_at=datetime(2026, 11, 10, hour, tzinfo=UTC)) for hour in range(5)])


def rows_of(lake):
    """Return, for each live monthly rollup, every row as text and the days without rows for single domains."""
    asked = "SELECT path, days_without_domains FROM rollups WHERE deletable_at IS NULL ORDER BY month"
    rollups = database_of(lake.manifest).rows(asked)
    return [(sorted(map(str, pq.ParquetFile(lake.root / path).read().to_pylist())), days) for path, days in rollups]


@pytest.fixture(scope="module")
def counted_here(landed, tmp_path_factory):
    """The rows counted by one machine, before and after another day's visits land."""
    folder = tmp_path_factory.mktemp("here") / "lake"
    shutil.copytree(landed, folder)
    with opened(folder) as lake:
        assert RollupBuilder(lake, lambda: LATER).run() == 2
        before = rows_of(lake)
        more_days(lake)
        assert RollupBuilder(lake, lambda: LATER).run() == 1
        return before, rows_of(lake)


@pytest.fixture
def counting(landed, tmp_path):
    """A copy of the lake, and a builder that counts with the cluster at an address."""

    @contextmanager
    def counting(address, from_visits=0):
        shutil.copytree(landed, tmp_path / "lake")
        with opened(tmp_path / "lake") as lake:
            cluster = open_cluster(lake, Warehouse(lake), ClusterOptions(address, from_visits))
            yield lake, RollupBuilder(lake, lambda: LATER, counter=cluster)
            cluster.close()

    return counting


def test_rollups_counted_by_sail_equal_those_counted_locally(counting, counted_here, sail, tell):
    with counting(sail.address) as (lake, builder):
        assert builder.run() == 2
        assert rows_of(lake) == counted_here[0]
        more_days(lake)
        assert builder.run() == 1  # stored rows are added here, whichever engine has counted the others
        assert rows_of(lake) == counted_here[1]
        tell(rows=sum(len(rows) for rows, _ in counted_here[1]))


def test_a_rollup_counted_by_spark_equals_one_counted_locally(counting, counted_here, spark, tell):
    """Every relation is counted, but only in the month with the crowded day: Spark takes a second to plan each."""
    with counting(spark.address) as (lake, builder):
        months = builder._months_to_build()
        builder._months_to_build = lambda: [month for month in months if month.first == CROWDED.replace(day=1)]
        assert builder.run() == 1
        ((rows, days_without_domains),) = rows_of(lake)
        assert (rows, days_without_domains) == counted_here[0][1]
        assert str(CROWDED) in days_without_domains
        tell(rows=len(rows))


def test_only_months_with_many_visits_use_the_cluster(landed, counting, sail):
    with opened(landed) as lake:
        visits = dict.fromkeys((10, 11), 0)
        for file in lake.manifest.files.live("acme"):
            visits[file.day.month] += file.visits
    assert visits[10] < visits[11]
    with counting(sail.address, visits[11]) as (_, builder):
        asked, counted = [], builder._counter.rollup_rows

        def rollup_rows(relation, snapshot, cancelled):
            asked.append(snapshot.visits)
            return counted(relation, snapshot, cancelled)

        builder._counter.rollup_rows = rollup_rows
        assert builder.run() == 2
    assert set(asked) == {visits[11]}


def test_a_month_that_the_cluster_did_not_finish_is_not_stored(counting, sail):
    with counting(sail.address) as (lake, builder):
        builder.interrupt()
        with pytest.raises(QueryFailed, match="cancelled"):
            builder.run()
        assert rows_of(lake) == []
        assert not list(lake.staging.glob("*.parquet"))


def test_compact_counts_days_with_the_configured_cluster(landed, sail, tmp_path):
    counted = []
    for number, address in enumerate(["", sail.address, "sc://127.0.0.1:1"]):
        folder = shutil.copytree(landed, tmp_path / str(number))
        engine = {"TRAFFIC_ENGINE": address, "TRAFFIC_ENGINE_FROM": "0"} if address else {}
        command = [PROGRAM, "compact", "--lake", folder]
        done = subprocess.run(command, env=os.environ | engine, capture_output=True, text=True, check=False)
        with opened(folder) as lake:
            counted.append(rows_of(lake))
    assert len(counted[0]) == 2
    assert counted[0] == counted[1]
    assert (done.returncode, "no cluster responds at 127.0.0.1:1" in done.stderr) == (1, True)
