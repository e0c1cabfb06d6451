"""A real cluster answers like one machine, even if executors die, and its queries can be interrupted."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
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
    ClusterSnapshot,
    ClusterUnavailable,
    FilesGone,
    QueryFailed,
    QueryTimeout,
    RollupBuilder,
    Scope,
    Warehouse,
    detect,
    measure_all,
    open_cluster,
)
from queries.cluster_sources import MAX_SENT_ROWS
from service.ops.doctor import examine
from tests.cluster.processes import FOR_SMALL_DATA, Spark, wait_until
from tests.support.sql import LEAVES, answer
from tests.support.visits import land, land_table, visit

DAYS = date(2026, 10, 25), date(2026, 11, 20)
ACME = Scope("acme", *DAYS)
ENDLESS = "SELECT count(*) AS total_visits FROM range(10000000000) CROSS JOIN range(10000000000)"
"""SQL that ends only when it is interrupted."""


@pytest.fixture(scope="session")
def warehouse(sample):
    warehouse = Warehouse(sample)
    yield warehouse
    warehouse.close()


@pytest.fixture
def cluster_at(sample):
    """Open an engine that uses the cluster at an address, by default for all queries."""
    opened = []

    def cluster_at(address, lake=sample, **options):
        options = {"from_visits": 0, "seconds": 600} | options
        opened.append(open_cluster(lake, Warehouse(lake), ClusterOptions(address, **options)))
        return opened[-1]

    yield cluster_at
    for engine in opened:
        engine.close()


def test_the_number_of_visits_decides_which_engine_answers(lake, cluster_at):
    land(lake, "acme", [visit(visited_at=datetime(2026, 11, 1, hour)) for hour in range(12)])
    nobody = "sc://127.0.0.1:1"

    def by_cluster(from_visits, organization="acme", **filters):
        scope = Scope(organization, *DAYS, **filters)
        snapshot = cluster_at(nobody, lake, from_visits=from_visits).snapshot(scope)
        return isinstance(snapshot, ClusterSnapshot)

    assert [by_cluster(12), by_cluster(13), by_cluster(1, "other")] == [True, False, False]
    RollupBuilder(lake, lambda: datetime(2026, 11, 21, tzinfo=UTC)).run()
    assert [by_cluster(1), by_cluster(1, traffic_type="ai"), by_cluster(12, short_code="x")] == [False, False, True]
    engine = cluster_at(nobody, lake, from_visits=13)
    assert answer(engine, "traffic-overview", ACME)["total_visits"] == 12


def test_sail_returns_the_same_tables_as_the_warehouse(warehouse, cluster_at, sail):
    """The schemas are equal, too. test_answers.py and test_made_up_visits.py test filters and other organizations."""
    engine = cluster_at(sail.address)
    snapshot, local = engine.snapshot(ACME), warehouse.snapshot(ACME)
    assert isinstance(snapshot, ClusterSnapshot)
    for name, entry in LEAVES.items():
        assert engine.tables(entry, snapshot).equals(warehouse.tables(entry, local)), name


def test_detectors_find_the_same_jobs_on_a_cluster(warehouse, cluster_at, sail):
    engine = cluster_at(sail.address)
    for detector in DETECTORS.values():
        found, expected = (detect(one, detector, "acme", date(2026, 11, 21)) for one in (engine, warehouse))
        assert found == expected
    link = answer(warehouse, "top-links", ACME)[0]
    subject = {"domain": link["domain"], "path": f"/{link['short_code']}"}
    counts = [measure_all(one, DETECTORS["broken_link"], "acme", [subject], *DAYS)[0] for one in (engine, warehouse)]
    assert counts[0] == counts[1] != []


def test_another_organization_sees_no_visits_on_a_cluster(cluster, cluster_at):
    engine = cluster_at(cluster.address)
    snapshot = engine.snapshot(ACME)
    other = replace(snapshot, scope=replace(snapshot.scope, organization="other"))
    assert engine.answer(ENTRIES["devices"], other) == []
    assert answer(engine, "devices", Scope("other", *DAYS)) == []


def test_a_killed_executor_changes_no_answer(warehouse, cluster_at, spark):
    engine = cluster_at(spark.address)
    snapshot = engine.snapshot(ACME)
    entry, expected = ENTRIES["bot-traffic"], answer(warehouse, "bot-traffic", ACME)
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


grpc = pytest.importorskip("grpc", reason="needs the group cluster")


class GarblingProxy(grpc.GenericRpcHandler):
    """A gRPC server on loopback: it passes calls on to a cluster, but answers the first queries with garbage."""

    def __init__(self, address, garbled):
        self.left = garbled
        self._channel = grpc.insecure_channel(address.removeprefix("sc://"))
        self._server = grpc.server(ThreadPoolExecutor(4), handlers=[self])
        self.address = f"sc://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self):
        self._server.stop(None).wait()
        self._channel.close()

    def service(self, call):
        method = call.method
        if not method.endswith("/ExecutePlan"):
            ask = self._channel.unary_unary(method)
            return grpc.unary_unary_rpc_method_handler(lambda request, _: ask(request))
        answers = self._channel.unary_stream(method)
        if not self.left:
            return grpc.unary_stream_rpc_method_handler(lambda request, _: answers(request))
        self.left -= 1
        return grpc.unary_stream_rpc_method_handler(lambda _request, _: iter([b"\xff not a message"]))


def test_a_garbled_answer_is_requested_again(warehouse, cluster_at, sail):
    with closing(GarblingProxy(sail.address, 1)) as proxy:
        found = answer(cluster_at(proxy.address), "devices", ACME)
    assert (found, proxy.left) == (answer(warehouse, "devices", ACME), 0)


def test_a_cluster_that_garbles_answers_is_unavailable(cluster_at, sail):
    with closing(GarblingProxy(sail.address, 2)) as proxy, pytest.raises(ClusterUnavailable, match="was lost"):
        answer(cluster_at(proxy.address), "devices", ACME)
    assert proxy.left == 0


def test_a_query_past_its_time_limit_is_interrupted(cluster, cluster_at, monkeypatch, tell):
    seconds, entry = 8 if isinstance(cluster, Spark) else 3, ENTRIES["traffic-overview"]
    patient, engine = cluster_at(cluster.address), cluster_at(cluster.address, seconds=seconds)
    expected = patient.answer(entry, patient.snapshot(ACME))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_compiled", lambda _: ENDLESS)
        began = time.monotonic()
        with pytest.raises(QueryTimeout, match=f"longer than {seconds} seconds"):
            engine.answer(entry, engine.snapshot(ACME))
        tell(seconds_until_interrupted=round(time.monotonic() - began, 2))
    assert patient.answer(entry, patient.snapshot(ACME)) == expected


@pytest.fixture
def cancel_endless(cluster_at, monkeypatch, tell):
    """Run an endless query on a cluster, cancel it, and return the exception."""

    def cancel_endless(cluster):
        engine, entry, cancelled = cluster_at(cluster.address), ENTRIES["traffic-overview"], threading.Event()
        snapshot = engine.snapshot(ACME)
        expected, sent = engine.answer(entry, snapshot), threading.Event()
        is_spark = isinstance(cluster, Spark)
        tasks = cluster.tasks() if is_spark else 0
        with monkeypatch.context() as patch, ThreadPoolExecutor(1) as thread:
            patch.setattr(engine, "_compiled", lambda _: sent.set() or ENDLESS)
            asked = thread.submit(engine.answer, entry, snapshot, cancelled)
            sent.wait()
            if is_spark:  # stages that Spark submits during an interruption would run forever
                wait_until(lambda: cluster.tasks() > tasks)
            began = time.monotonic()
            engine.stop(cancelled)
            raised = asked.exception()
        tell(seconds_until_interrupted=round(time.monotonic() - began, 2))
        assert engine.answer(entry, snapshot) == expected
        return raised

    return cancel_endless


def test_an_abandoned_query_is_interrupted(cluster, cancel_endless):
    raised = cancel_endless(cluster)
    assert (type(raised), str(raised)) == (QueryFailed, "the query was cancelled.")


def test_a_query_that_ends_while_being_interrupted_is_cancelled(cancel_endless, sail, monkeypatch):
    from queries.connect import SparkSession  # noqa: PLC0415  # it need not be installed

    interrupt, has_ended = SparkSession.interruptTag, threading.Event()

    def confirmed_late(session, tag):
        while not has_ended.wait(0.05):
            interrupt(session, tag)

    monkeypatch.setattr(SparkSession, "interruptTag", confirmed_late)
    try:
        raised = cancel_endless(sail)
    finally:
        has_ended.set()
    assert (type(raised), str(raised)) == (QueryFailed, "the query was cancelled.")


def test_a_file_deleted_during_a_query_is_reported(cluster, lake, cluster_at):
    land(lake, "acme", [visit(visited_at=datetime(2026, 11, 1)), visit(visited_at=datetime(2026, 11, 2))])
    engine = cluster_at(cluster.address, lake)
    snapshot = engine.snapshot(ACME)
    (lake.root / snapshot.landed[0].path).unlink()
    with pytest.raises(FilesGone, match=str(lake.root)):
        engine.answer(ENTRIES["devices"], snapshot)


def test_a_folder_hidden_from_the_workers_causes_a_logged_error(cluster, cluster_at, caplog):
    engine = cluster_at(cluster.address, folder="/nowhere/lake")
    with pytest.raises(FilesGone, match="/nowhere/lake") as raised:
        engine.answer(ENTRIES["devices"], engine.snapshot(ACME))
    assert f"the cluster did not answer devices: {raised.value}" in caplog.messages
    assert {name: count for name, count in engine.outcomes.items() if count} == {"files_gone": 1}


def test_a_worker_without_the_lake_gives_no_partial_answer(cluster_at, warehouse, sample, tmp_path):
    ignoring = {f"spark.sql.files.ignore{what}Files": "true" for what in ("Missing", "Corrupt")}
    spark = Spark(tmp_path, options=FOR_SMALL_DATA | ignoring)
    try:
        seen_as = "/proc/self/cwd/lake"  # a folder per process: here, the driver and one executor have the lake
        (tmp_path / "lake").symlink_to(sample.root)
        answer(cluster_at(spark.address), "devices", ACME)
        wait_until(lambda: len(spark.executors()) == 2)
        (Path("/proc") / str(spark.executors()[0]) / "cwd" / "lake").symlink_to(sample.root)
        engine, refused = cluster_at(spark.address, folder=seen_as), 0
        for name in ("browsers", "devices", "bot-traffic", "traffic-overview", "top-links"):
            try:
                assert answer(engine, name, ACME) == answer(warehouse, name, ACME)
            except FilesGone:
                refused += 1
        assert refused
        found = checked(sample, TRAFFIC_ENGINE=spark.address, TRAFFIC_ENGINE_LAKE=seen_as)
        assert found.level == "broken"
        assert f"cannot read a file under {seen_as}" in found.text
    finally:
        spark.stop()


def test_published_and_sent_visits_are_read_like_the_lake(cluster, lake, cluster_at, tmp_path):
    for day in (1, 2):
        land(lake, "acme", [visit(visited_at=datetime(2026, 11, day, hour), visitor=hour) for hour in range(24)])
    LakePublisher(lake, str(tmp_path / "copy")).publish("acme")
    one = pa.Table.from_pylist([visit(visited_at=datetime(2026, 11, 3), utc_offset=60)], schema=VISITS_OF_DAYS)
    many = one.take(pa.array([0] * MAX_SENT_ROWS))
    numbers = pa.array(range(-1, MAX_SENT_ROWS - 1), pa.int64())
    land_table(lake, "acme", many.set_column(many.schema.get_field_index("visitor"), "visitor", numbers))
    engine = cluster_at(cluster.address, lake, folder=str(tmp_path / "copy"), is_published=True)
    with closing(Warehouse(lake)) as here:
        for name in ("traffic-overview", "browsers"):
            asked, local = engine.snapshot(ACME), here.snapshot(ACME)
            assert engine.tables(LEAVES[name], asked).equals(here.tables(LEAVES[name], local))


def test_doctor_checks_every_executor_and_times_an_answer(sample, cluster):
    found = checked(sample, TRAFFIC_ENGINE=cluster.address)
    assert found.level == "ok"
    assert found.text.startswith("its executors read the visits of acme on 2026-11-20; an answer took ")


def test_doctor_names_an_unreachable_cluster_without_its_token(sample):
    found = checked(sample, TRAFFIC_ENGINE="sc://127.0.0.1:1/;token=secret")
    told = "no cluster responds at 127.0.0.1:1; check the cluster and TRAFFIC_ENGINE."
    assert (found.level, found.text) == ("broken", told)


def checked(lake, **variables):
    """Return the check of `traffic doctor` for the cluster."""
    checks = examine({"TRAFFIC_LAKE": str(lake.root), **variables}, datetime.now(UTC))
    return next(check for check in checks if check.subject == "cluster")
