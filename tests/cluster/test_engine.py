"""Answers of a real cluster: as on one machine, while executors die, and interrupted."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from data.publish.publisher import LakePublisher
from data.visits import VISITS_OF_DAYS
from queries import (
    DETECTORS,
    ENTRIES,
    ClusterOptions,
    ClusterUnavailable,
    FilesGone,
    QueryFailed,
    QueryTimeout,
    RollupBuilder,
    Scope,
    Warehouse,
    detect,
    is_for_cluster,
    measure_all,
    open_cluster,
    template_entries,
)
from queries.cluster_sources import MAX_SENT_ROWS
from service.doctor import examine
from tests.cluster.processes import FOR_SMALL_DATA, Spark, wait_until
from tests.support.visits import land, land_table, visit

DAYS = date(2026, 10, 25), date(2026, 11, 20)
ACME = Scope("acme", *DAYS)
LEAVES = {leaf.name: leaf for entry in ENTRIES.values() for leaf in template_entries(entry)}
ENDLESS = "SELECT count(*) AS total_visits FROM range(10000000000) CROSS JOIN range(10000000000)"
"""Ends only when it is interrupted."""


@pytest.fixture(scope="session")
def warehouse(sample):
    warehouse = Warehouse(sample)
    yield warehouse
    warehouse.close()


@pytest.fixture
def cluster_at(sample):
    """Opens an engine that asks the cluster at an address whatever the size."""
    opened = []

    def cluster_at(address, lake=sample, **options):
        options = {"from_visits": 0, "seconds": 600} | options
        opened.append(open_cluster(lake, Warehouse(lake), ClusterOptions(address, **options)))
        return opened[-1]

    yield cluster_at
    for engine in opened:
        engine.close()


def test_the_manifest_decides_who_answers(lake, cluster_at):
    land(lake, "acme", [visit(visited_at=datetime(2026, 11, 1, hour)) for hour in range(12)])
    nobody = "sc://127.0.0.1:1"
    scope, link = ACME, Scope("acme", *DAYS, short_code="x")

    def by_cluster(scope, from_visits):
        return is_for_cluster(cluster_at(nobody, lake, from_visits=from_visits).variables(scope))

    assert by_cluster(scope, 12)
    assert not by_cluster(scope, 13)
    assert not by_cluster(Scope("other", *DAYS), 1)
    RollupBuilder(lake, lambda: datetime(2026, 11, 21, tzinfo=UTC)).run()
    assert not by_cluster(scope, 1)  # rollups answer
    assert not by_cluster(Scope("acme", *DAYS, traffic_type="ai"), 1)
    assert by_cluster(link, 12)
    engine = cluster_at(nobody, lake, from_visits=13)
    assert engine.answer(ENTRIES["traffic-overview"], engine.variables(scope))["total_visits"] == 12


def test_every_table_of_sail_is_that_of_one_machine(warehouse, cluster_at, sail):
    """Schemas, too. Under filters, and for other organizations, test_answers.py and test_made_up_visits.py ask it."""
    engine = cluster_at(sail.address)
    snapshot, local = engine.variables(ACME), warehouse.variables(ACME)
    assert is_for_cluster(snapshot)
    for name, entry in LEAVES.items():
        assert engine.tables(entry, snapshot).equals(warehouse.tables(entry, local)), name


def test_detectors_and_measures_of_a_cluster_are_those_of_one_machine(warehouse, cluster_at, sail):
    engine = cluster_at(sail.address)
    for detector in DETECTORS.values():
        findings = [detect(one, detector, "acme", date(2026, 11, 21)) for one in (engine, warehouse)]
        assert findings[0] == findings[1]
    link = warehouse.answer(ENTRIES["top-links"], warehouse.variables(ACME))[0]
    subject = {"domain": link["domain"], "path": f"/{link['short_code']}"}
    counts = [measure_all(one, DETECTORS["broken_link"], "acme", [subject], *DAYS)[0] for one in (engine, warehouse)]
    assert counts[0] == counts[1] != []


def test_another_organization_sees_nothing(cluster_at, sail, spark):
    for address in (sail.address, spark.address):
        engine = cluster_at(address)
        snapshot = engine.variables(ACME)
        scope = {**snapshot["scope"], "organization": "other"}
        assert engine.answer(ENTRIES["devices"], {**snapshot, "scope": scope}) == []
        assert engine.answer(ENTRIES["devices"], engine.variables(Scope("other", *DAYS))) == []


def test_an_executor_that_is_killed_changes_no_answer(warehouse, cluster_at, spark):
    engine = cluster_at(spark.address)
    snapshot = engine.variables(ACME)
    entry, expected = ENTRIES["bot-traffic"], warehouse.answer(ENTRIES["bot-traffic"], warehouse.variables(ACME))
    assert engine.answer(entry, snapshot) == expected
    started, victim = spark.tasks(), spark.executors()[0]
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(engine.answer, entry, snapshot)
        wait_until(lambda: spark.tasks() > started)
        assert not asked.done()
        os.kill(victim, signal.SIGKILL)
        assert asked.result() == expected
    wait_until(lambda: len(spark.executors()) == 2 and victim not in spark.executors())
    assert engine.answer(entry, snapshot) == expected


@pytest.mark.parametrize(("kind", "seconds"), [("spark", 8), ("sail", 3)])
def test_a_query_that_takes_too_long_is_interrupted(request, cluster_at, kind, seconds, monkeypatch, tell):
    address, entry = request.getfixturevalue(kind).address, ENTRIES["traffic-overview"]
    patient, engine = cluster_at(address), cluster_at(address, seconds=seconds)
    expected = patient.answer(entry, patient.variables(ACME))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_compiled", lambda _: ENDLESS)
        began = time.monotonic()
        with pytest.raises(QueryTimeout, match=f"longer than {seconds} seconds"):
            engine.answer(entry, engine.variables(ACME))
        tell(seconds_until_interrupted=round(time.monotonic() - began, 2))
    assert patient.answer(entry, patient.variables(ACME)) == expected


@pytest.fixture
def cancel_endless(cluster_at, monkeypatch, tell):
    """Asks a cluster an endless query, cancels it while it runs, and returns what was raised."""

    def cancel_endless(kind, cluster):
        engine, entry, cancelled = cluster_at(cluster.address), ENTRIES["traffic-overview"], threading.Event()
        snapshot = engine.variables(ACME)
        expected, sent = engine.answer(entry, snapshot), threading.Event()
        tasks = cluster.tasks() if kind == "spark" else 0
        with monkeypatch.context() as patch, ThreadPoolExecutor(1) as thread:
            patch.setattr(engine, "_compiled", lambda _: sent.set() or ENDLESS)
            asked = thread.submit(engine.answer, entry, snapshot, cancelled)
            sent.wait()
            if kind == "spark":  # what Spark submits in the moment of an interruption would run on without an end
                wait_until(lambda: cluster.tasks() > tasks)
            began = time.monotonic()
            engine.stop(cancelled)
            raised = asked.exception()
        tell(seconds_until_interrupted=round(time.monotonic() - began, 2))
        assert engine.answer(entry, snapshot) == expected
        return raised

    return cancel_endless


@pytest.mark.parametrize("kind", ["spark", "sail"])
def test_an_abandoned_query_is_interrupted(request, cancel_endless, kind):
    raised = cancel_endless(kind, request.getfixturevalue(kind))
    assert (type(raised), str(raised)) == (QueryFailed, "the query was cancelled.")


def test_a_query_that_ends_before_its_interruption_is_confirmed_was_cancelled(cancel_endless, sail, monkeypatch):
    from queries.connect import SparkSession  # noqa: PLC0415  # it need not be installed

    interrupt, has_ended = SparkSession.interruptTag, threading.Event()

    def confirmed_late(session, tag):
        while not has_ended.wait(0.05):
            interrupt(session, tag)

    monkeypatch.setattr(SparkSession, "interruptTag", confirmed_late)
    try:
        raised = cancel_endless("sail", sail)
    finally:
        has_ended.set()
    assert (type(raised), str(raised)) == (QueryFailed, "the query was cancelled.")


@pytest.mark.parametrize("kind", ["spark", "sail"])
def test_a_file_deleted_under_a_query_is_named(request, lake, cluster_at, kind):
    land(lake, "acme", [visit(visited_at=datetime(2026, 11, 1)), visit(visited_at=datetime(2026, 11, 2))])
    engine = cluster_at(request.getfixturevalue(kind).address, lake)
    snapshot = engine.variables(ACME)
    (lake.root / snapshot["cluster_files"][0].path).unlink()
    with pytest.raises(FilesGone, match=str(lake.root)):
        engine.answer(ENTRIES["devices"], snapshot)


@pytest.mark.parametrize("kind", ["spark", "sail"])
def test_a_folder_that_the_workers_do_not_see_gives_no_answer_and_logged(request, cluster_at, kind, caplog):
    engine = cluster_at(request.getfixturevalue(kind).address, folder="/nowhere/lake")
    with pytest.raises(FilesGone, match="/nowhere/lake") as raised:
        engine.answer(ENTRIES["devices"], engine.variables(ACME))
    assert f"the cluster did not answer devices: {raised.value}" in caplog.messages
    assert {name: count for name, count in engine.outcomes.items() if count} == {"files_gone": 1}


def test_a_worker_without_the_lake_gives_no_answer_although_the_cluster_ignores_missing_files(
    cluster_at, warehouse, sample, tmp_path
):
    ignoring = {f"spark.sql.files.ignore{what}Files": "true" for what in ("Missing", "Corrupt")}
    spark = Spark(tmp_path, options=FOR_SMALL_DATA | ignoring)
    try:
        seen_as = "/proc/self/cwd/lake"  # another folder for each process: here the driver and one executor have it
        (tmp_path / "lake").symlink_to(sample.root)
        everywhere = cluster_at(spark.address)
        everywhere.answer(ENTRIES["devices"], everywhere.variables(ACME))
        wait_until(lambda: len(spark.executors()) == 2)
        (Path("/proc") / str(spark.executors()[0]) / "cwd" / "lake").symlink_to(sample.root)
        engine, refused = cluster_at(spark.address, folder=seen_as), 0
        for name in ("browsers", "devices", "bot-traffic", "traffic-overview", "top-links"):
            try:
                answer = engine.answer(LEAVES[name], engine.variables(ACME))
            except FilesGone:
                refused += 1
            else:
                assert answer == warehouse.answer(LEAVES[name], warehouse.variables(ACME))
        assert refused
        found = checked(sample, TRAFFIC_ENGINE=spark.address, TRAFFIC_ENGINE_LAKE=seen_as)
        assert found.level == "broken"
        assert f"cannot read a file under {seen_as}" in found.text
    finally:
        spark.stop()


@pytest.mark.parametrize("kind", ["spark", "sail"])
def test_what_is_published_and_a_hundred_thousand_visits_that_are_sent_are_read_as_the_lake(
    request, lake, cluster_at, kind, tmp_path
):
    for day in (1, 2):
        land(lake, "acme", [visit(visited_at=datetime(2026, 11, day, hour), visitor=hour) for hour in range(24)])
    LakePublisher(lake, str(tmp_path / "copy")).publish("acme")
    one = pa.Table.from_pylist([visit(visited_at=datetime(2026, 11, 3), utc_offset=60)], schema=VISITS_OF_DAYS)
    many = one.take(pa.array([0] * MAX_SENT_ROWS))
    numbers = pa.array(range(-1, MAX_SENT_ROWS - 1), pa.int64())
    land_table(lake, "acme", many.set_column(many.schema.get_field_index("visitor"), "visitor", numbers))
    engine = cluster_at(request.getfixturevalue(kind).address, lake, folder=str(tmp_path / "copy"), is_published=True)
    with closing(Warehouse(lake)) as here:
        for name in ("traffic-overview", "browsers"):
            asked, local = engine.variables(ACME), here.variables(ACME)
            assert engine.tables(LEAVES[name], asked).equals(here.tables(LEAVES[name], local))


def test_doctor_lets_every_executor_read_and_times_an_answer(sample, spark, sail):
    for cluster in (spark, sail):
        found = checked(sample, TRAFFIC_ENGINE=cluster.address)
        assert found.level == "ok"
        assert found.text.startswith("its executors read the visits of acme of 2026-11-20; an answer took ")
    found = checked(sample, TRAFFIC_ENGINE="sc://127.0.0.1:1")
    assert (found.level, found.text) == ("broken", "no cluster answers at 127.0.0.1:1; check it and TRAFFIC_ENGINE.")


def checked(lake, **variables):
    """What `traffic doctor` says of the cluster."""
    checks = examine({"TRAFFIC_LAKE": str(lake.root), **variables}, datetime.now(UTC))
    return next(check for check in checks if check.subject == "cluster")


def test_an_unreachable_cluster_is_named_without_its_token(cluster_at):
    engine = cluster_at("sc://127.0.0.1:1/;token=secret")
    with pytest.raises(ClusterUnavailable, match=r"127\.0\.0\.1:1") as refused:
        engine.answer(ENTRIES["devices"], engine.variables(ACME))
    assert "secret" not in str(refused.value)
