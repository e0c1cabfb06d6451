"""A cluster that reads published visits, without a shared folder, always answers like one machine."""

from contextlib import closing
from datetime import UTC, date, datetime
from functools import partial

import httpx2
import pytest

from data.buckets.target import open_target
from data.publish.publisher import LakePublisher
from data.tasks import merge_plan
from data.tasks.compaction import Compactor
from data.tasks.reclassification import Reclassifier
from queries import (
    ENTRIES,
    ClusterOptions,
    ClusterUnavailable,
    FilesGone,
    RollupBuilder,
    Scope,
    Warehouse,
    cluster_sources,
)
from queries.engine import open_cluster
from tests.cluster.processes import wait_until
from tests.cluster.test_http import all_bodies
from tests.support.published import NOW, at, erase, merge
from tests.support.visits import land, links

DAYS = {"start_date": "2026-03-01", "end_date": "2026-03-20"}
ASKED = [ENTRIES[name] for name in ("traffic-overview", "top-links")]
FILES = 3
"""The number of files at which those of an open day are merged."""


@pytest.fixture(autouse=True)
def _few_files(monkeypatch):
    monkeypatch.setattr(merge_plan, "MAX_OPEN_FILES", FILES - 1)


@pytest.fixture
def engine(lake, name, sail):
    options = ClusterOptions(sail.address, from_visits=0, seconds=600, folder=name, is_published=True)
    with closing(open_cluster(lake, Warehouse(lake), options)) as engine:
        yield engine


@pytest.fixture
def publish(lake, name):
    return partial(LakePublisher(lake, name).publish, "acme")


def asked(engine, organization="acme"):
    snapshot = engine.snapshot(Scope(organization, date(2026, 3, 1), date(2026, 3, 20)))
    return [engine.answer(entry, snapshot) for entry in ASKED]


def land_open_day(lake, name):
    for number in range(FILES):
        land(lake, "acme", [at(NOW.day, path=f"/{name}{number}", short_code=f"{name}{number}", visitor=number)])


STEPS = {
    "landed": lambda lake: land_open_day(lake, "a"),
    "merged": merge,
    "judged": lambda lake: Compactor(lake, lambda: datetime(2026, 3, 12, tzinfo=UTC)).run(),
    "landed after all": lambda lake: land_open_day(lake, "b"),
    "linked": lambda lake: links(lake, "acme", [{"short_code": "a1", "target_url": "https://x.example/"}]),
    "reclassified": lambda lake: Reclassifier(lake).run(["acme"]),
    "erased": lambda lake: erase(lake, domain="gone.example"),
}


def test_sail_answers_like_one_machine_after_every_change(lake, publish, engine):
    land(lake, "acme", [at(2, short_code="x", domain="gone.example"), at(2, short_code="y")])
    land(lake, "other", [at(2, short_code="theirs")])
    with closing(Warehouse(lake)) as warehouse:
        for name, step in {"first": lambda _: None, **STEPS}.items():
            step(lake)
            for _ in range(2):
                assert (name, asked(engine)) == (name, asked(warehouse))
                publish()
        assert asked(engine, "other") == asked(warehouse, "other")  # which is not published


def test_endpoints_answer_the_same_while_the_server_publishes(serving, key_of, lake, name, sail):
    land_open_day(lake, "a")
    headers = {"Authorization": f"Bearer {key_of(lake)}"}

    def bodies(**settings):
        with (
            serving(lake, is_installed=True, trusted_proxies="127.0.0.1/32", **settings) as server,
            httpx2.Client(base_url=server.address, headers=headers, trust_env=False, timeout=600) as client,
        ):
            if settings:
                wait_until(lambda: any(copy.version >= 0 for copy in lake.manifest.copies.find()), 60)
                land(lake, "acme", [at(3, short_code="late")])
            return all_bodies(client, DAYS)

    found = bodies(engine=sail.address, engine_from=0, engine_timeout=600, publish=name)
    assert found == bodies()


def test_rollups_of_a_published_lake_answer_like_one_machine(lake, publish, engine):
    for day in (2, 3):
        land(lake, "acme", [at(day, visitor=visitor, short_code=f"s{visitor}") for visitor in range(9)])
    publish()
    with closing(Warehouse(lake)) as warehouse:
        expected = asked(warehouse)
        assert RollupBuilder(lake, lambda: NOW, counter=engine).run() == 1
        assert asked(warehouse) == expected
    assert engine.outcomes["answered"] > 10


def test_too_many_unpublished_visits_give_no_partial_answer(lake, publish, engine, monkeypatch):
    monkeypatch.setattr(cluster_sources, "MAX_SENT_ROWS", FILES)
    land_open_day(lake, "a")
    publish()
    land_open_day(lake, "b")
    land_open_day(lake, "c")
    with pytest.raises(ClusterUnavailable, match=f"{2 * FILES} visits of acme are not published"):
        asked(engine)
    publish()
    assert asked(engine)[0]["total_visits"] == 3 * FILES


def test_visits_erased_after_the_snapshot_give_an_error(lake, publish, engine):
    land(lake, "acme", [at(2, short_code="x", domain="gone.example"), at(2, short_code="y")])
    publish()
    snapshot = engine.snapshot(Scope("acme", date(2026, 3, 1), date(2026, 3, 20)))
    engine.answer(ASKED[0], snapshot)
    erase(lake, domain="gone.example")
    for _ in range(2):
        with pytest.raises(FilesGone):
            engine.answer(ASKED[0], snapshot)
        publish()
    assert asked(engine)[0]["total_visits"] == 1


def test_a_merged_file_deleted_after_the_snapshot_gives_an_error(lake, publish, engine):
    land(lake, "acme", [at(2, domain="gone.example")])
    merge(lake)
    land_open_day(lake, "a")
    publish()
    merge(lake)  # merges the open day, whose visits are not judged
    snapshot = engine.snapshot(Scope("acme", date(2026, 3, 10), date(2026, 3, 20)))
    assert len(snapshot.landed) == 1
    assert engine.answer(ASKED[0], snapshot)["total_visits"] == FILES
    erase(lake, domain="gone.example")
    with pytest.raises(FilesGone, match="were changed"):
        engine.answer(ASKED[0], snapshot)
    publish()
    with pytest.raises(FilesGone):
        engine.answer(ASKED[0], snapshot)


def test_a_listed_but_missing_object_gives_an_error(lake, name, publish, engine):
    land(lake, "acme", [at(2)])
    publish()
    target = open_target(name)
    target.delete(target.list("acme/visits/day=2026-03-02/"))
    with pytest.raises(FilesGone, match=name):
        asked(engine)
