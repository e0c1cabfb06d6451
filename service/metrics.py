"""What is counted of the running service, in Prometheus' text format."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of request times, in seconds."""


class ObservedMetric(NamedTuple):
    """A number that is asked for when somebody looks; a total only ever rises."""

    name: str
    meaning: str
    value: Callable[[], float]
    is_counter: bool = False


class Metrics:
    """Counts requests; counting is a matter of nanoseconds, and all the rest waits until somebody looks."""

    def __init__(self, metrics: Iterable[ObservedMetric]) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._metrics = list(metrics)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request to a route, "" for none, that was answered."""
        self._requests[route, method, status] += 1
        self._seconds[route] += seconds
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1

    def add(self, metric: ObservedMetric) -> None:
        """Ask for one number more when somebody looks."""
        self._metrics.append(metric)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """What prometheus_client asks a collector for."""
        requests = CounterMetricFamily("traffic_requests", "Requests answered.", labels=["route", "method", "status"])
        for (route, method, status), count in self._requests.items():
            requests.add_metric([route, method, str(status)], count)
        yield requests
        yield self._request_seconds()
        for metric in self._metrics:
            family = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            yield family(metric.name, metric.meaning, metric.value())

    def _request_seconds(self) -> Metric:
        times = HistogramMetricFamily("traffic_request_seconds", "Time until a request was answered.", labels=["route"])
        for route, counts in self._buckets.items():
            times.add_metric([route], _cumulative(counts), self._seconds[route])
        return times


def _cumulative(counts: list[int]) -> list[tuple[str, float]]:
    total, found = 0, []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
        total += count
        found.append((bound, float(total)))
    return found
