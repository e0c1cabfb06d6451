"""The operator's monitor port: cheap health checks, and metrics for Prometheus."""

import asyncio
import threading
from typing import NamedTuple

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.core.metrics import Metrics, ObservedMetric
from service.ops.monitoring import HEALTH_CACHE_SECONDS, HealthCheck
from tests.support.clock import Clock
from tests.support.visits import land, visit


class Monitored(NamedTuple):
    """The responses of a server with a monitor port, and its metrics afterwards."""

    health: list[httpx2.Response]
    metrics: httpx2.Response
    report_there: httpx2.Response  # from the monitor port
    metrics_here: httpx2.Response  # from the main port

    def value(self, name, **labels):
        families = text_string_to_metric_families(self.metrics.text)
        (found,) = [
            sample.value
            for family in families
            for sample in family.samples
            if (sample.name, sample.labels) == (name, labels)
        ]
        return found


@pytest.fixture(scope="module")
def monitored(shared_lake, serving, key_of):
    """A server that has answered three reports, and received two valid visits and an invalid one."""
    land(shared_lake, "acme", [visit()])
    key = {"Authorization": f"Bearer {key_of(shared_lake)}"}
    with (
        serving(shared_lake, monitor_port=0) as server,
        httpx2.Client(trust_env=False, verify=False, timeout=60) as client,
    ):
        for _ in range(3):
            assert client.get(f"{server.address}/analytics/devices", headers=key).status_code == 200
        sent = client.post(f"{server.address}/visits", headers=key, json=[{"url": "/a"}, {"url": "/b"}, {}])
        assert sent.json()["accepted"] == 2
        return Monitored(
            [client.get(f"{server.monitor}/healthz") for _ in range(100)],
            client.get(f"{server.monitor}/metrics"),
            client.get(f"{server.monitor}/analytics/devices", headers=key),
            client.get(f"{server.address}/metrics", headers=key),
        )


def test_health_needs_no_token_and_has_no_limit(monitored):
    assert {(answer.status_code, answer.text) for answer in monitored.health} == {(200, '{"status":"ok"}')}


def test_metrics_are_in_the_prometheus_text_format(monitored):
    assert monitored.metrics.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_reports_are_not_on_the_monitor_port(monitored):
    assert monitored.report_there.status_code == 404


def test_metrics_are_not_on_the_main_port(monitored):
    assert monitored.metrics_here.status_code == 404


@pytest.mark.parametrize(("name", "labels", "value"), [
    ("traffic_requests_total", {"method": "GET", "route": "/analytics/devices", "status": "200"}, 3),
    ("traffic_visits_received_total", {}, 2),
    ("traffic_visits_pending", {}, 2),
    ("traffic_answers_held", {}, 1),
    ("traffic_sources", {}, 1),
])  # fmt: skip
def test_a_metric_counts_its_events(monitored, name, labels, value):
    assert monitored.value(name, **labels) == value


def test_metrics_include_the_memory_of_the_process(monitored):
    assert monitored.value("process_resident_memory_bytes") > 1 << 20


async def test_health_is_cached_for_at_most_a_second():
    clock, probes, failure = Clock(), [], RuntimeError()
    is_broken = False

    async def probe():
        probes.append(clock.now)
        await asyncio.sleep(0.01)
        if is_broken:
            raise failure

    health = HealthCheck(probe, clock)
    asked = await asyncio.gather(*(health.failure() for _ in range(50)))  # while it is being checked
    assert [*asked, await health.failure()] == [None] * 51
    is_broken = True
    clock.now += HEALTH_CACHE_SECONDS - 0.01
    assert await health.failure() is None
    clock.now += 0.02
    assert [await health.failure() for _ in range(2)] == [failure] * 2
    is_broken = False
    clock.now += HEALTH_CACHE_SECONDS
    assert await health.failure() is None
    assert len(probes) == 3


async def test_only_blocking_metrics_are_read_in_a_thread():
    """The event loop serves all clients, so it must not wait for a database."""
    threads = {}

    def found(name):
        threads[name] = threading.current_thread()
        return 1.0

    observed = [
        ObservedMetric("traffic_quick", "Told at once.", lambda: found("quick")),
        ObservedMetric("traffic_slow", "Read from a database.", lambda: found("slow"), blocks=True),
    ]
    text = (await Metrics(observed).text()).decode()
    assert "traffic_quick 1.0" in text
    assert "traffic_slow 1.0" in text
    assert threads["quick"] is threading.current_thread() is not threads["slow"]


async def test_a_failing_metric_is_left_out_and_logged_once(caplog):
    def broken():
        raise OSError("the disk is gone")

    observed = [
        ObservedMetric("traffic_broken", "Broken.", broken),
        ObservedMetric("traffic_whole", "Whole.", lambda: 1),
    ]
    metrics = Metrics(observed)
    for _ in range(2):
        text = (await metrics.text()).decode()
        assert "traffic_whole 1.0" in text
        assert "traffic_broken" not in text
    assert [record.getMessage() for record in caplog.records] == [
        "The metric traffic_broken cannot be read, and is left out."
    ]
