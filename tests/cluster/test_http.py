"""With a real cluster, the API returns the same bytes; if the cluster is lost, everything else still works."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from queries import ENDPOINTS
from tests.cluster.processes import wait_until

REAL_LOG = Path(__file__).parent.parent.parent.parent / "shared/data/apache_access.log.gz"
SAMPLE_DAYS = {"start_date": "2026-10-25", "end_date": "2026-11-20"}
REAL_DAYS = {"start_date": "2015-05-17", "end_date": "2015-05-20"}
SMALL = {"start_date": "2026-11-20", "end_date": "2026-11-20"}


@pytest.fixture(scope="session")
def real(tmp_path_factory, sample):
    """A lake with the real log, and that log's days; without the log, which is outside the repository, the sample and
    its days.
    """
    if not REAL_LOG.exists():
        yield sample, SAMPLE_DAYS
        return
    lake = Lake(tmp_path_factory.mktemp("real") / "lake", create=True)
    Importer(lake).run(REAL_LOG, Options("acme", domain="semicomplete.com"))
    yield lake, REAL_DAYS
    lake.manifest.close()


@pytest.fixture
def asking(serving, key_of):
    """Serve a lake with `traffic serve`, and yield a client with an organization's key."""

    @contextmanager
    def asking(lake, organization="acme", **changes):
        headers = {"Authorization": f"Bearer {key_of(lake, organization)}"}
        with (
            serving(lake, is_installed=True, trusted_proxies="127.0.0.1/32", **changes) as server,
            httpx2.Client(base_url=server.address, headers=headers, trust_env=False, timeout=600) as client,
        ):
            yield client

    return asking


def all_bodies(client, days):
    """Return the answers of all endpoints; the dashboard, which caches its members, comes first."""

    def body(name):
        return client.get(f"/analytics/{name}", params=days).raise_for_status().content

    first = {"dashboard": body("dashboard")}
    others = [name for name in ENDPOINTS if name not in first]
    with ThreadPoolExecutor(4) as threads:
        return first | dict(zip(others, threads.map(body, others), strict=True))


def test_every_endpoint_on_sail_returns_the_same_bytes(asking, sample, sail):
    with asking(sample) as client:
        expected = all_bodies(client, SAMPLE_DAYS)
    with asking(sample, engine=sail.address, engine_from=0, engine_timeout=600) as client:
        assert all_bodies(client, SAMPLE_DAYS) == expected


def test_endpoints_answer_the_same_while_an_executor_is_killed(asking, spark, real):
    """The executor is killed during the request for the dashboard, which contains half of all answers; the others are
    requested afterwards."""
    lake, days = real
    with asking(lake) as client:
        expected = all_bodies(client, days)
    with asking(lake, engine=spark.address, engine_from=0, engine_timeout=600) as client:
        started = spark.tasks()
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(all_bodies, client, days)
            wait_until(lambda: spark.tasks() > started + 4)
            assert not asked.done()
            os.kill(spark.executors()[0], signal.SIGKILL)
            assert asked.result() == expected


def test_only_large_answers_wait_for_a_lost_cluster(asking, sample, spark):
    def asked(client, name, days=SAMPLE_DAYS):
        return client.get(f"/analytics/{name}", params=days)

    with asking(sample) as client:
        expected = asked(client, "devices").content
    with asking(sample, engine=spark.address, engine_from=300, engine_timeout=120) as client:
        assert asked(client, "devices").content == expected
        spark.connect.stop()
        refused = asked(client, "browsers")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert set(refused.json()) == {"error", "message"}
        assert asked(client, "devices", SMALL).status_code == 200
        assert asked(client, "devices").content == expected  # cached
        assert client.get("/healthz").status_code == 200
        spark.start_connect()
        assert asked(client, "browsers").status_code == 200


def test_other_requests_are_answered_while_the_cluster_hangs(asking, sample, spark, tell):
    with asking(sample, engine=spark.address, engine_from=300, engine_timeout=60) as client:
        cached = client.get("/analytics/devices", params=SAMPLE_DAYS)
        assert cached.status_code == 200
    with asking(sample, engine=spark.address, engine_from=300, engine_timeout=3) as client:
        spark.connect.signal(signal.SIGSTOP)
        try:
            names = [name for name in ENDPOINTS if name not in {"dashboard", "weekly-trend"}][:12]
            with ThreadPoolExecutor(12) as threads:
                asked = [threads.submit(client.get, f"/analytics/{name}", params=SAMPLE_DAYS) for name in names]
                assert client.get("/analytics/geographic", params=SMALL).status_code == 200
                tell(large_answers_waited_while_a_small_one_came=sum(not one.done() for one in asked))
        finally:
            spark.connect.signal(signal.SIGCONT)
        assert {one.result().status_code for one in asked} == {503}


def test_a_disconnect_interrupts_the_query_on_the_cluster(asking, sample, spark):
    with asking(sample, engine=spark.address, engine_from=0, engine_timeout=600) as client:
        client.get("/analytics/traffic-overview", params=SMALL).raise_for_status()  # it is connected
        interrupted = spark.interrupted()
        with spark.stopped_executors():
            with pytest.raises(httpx2.ReadTimeout):
                client.get("/analytics/bot-traffic", params=SAMPLE_DAYS, timeout=0.7)
            wait_until(lambda: spark.interrupted() > interrupted)
        assert client.get("/analytics/traffic-overview", params=SAMPLE_DAYS).status_code == 200
