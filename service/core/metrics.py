"""The metrics of the running service, in Prometheus' text format."""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

_LOG: Final = logging.getLogger(__name__)
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets in the histogram of request times, in seconds."""


class ObservedMetric(NamedTuple):
    """A metric with a callback that reads its value at each scrape: a gauge, or a counter, which never decreases.

    With `label`, the callback returns a value for each value of the label. A blocking callback is called in a thread.
    """

    name: str
    meaning: str
    value: Callable[[], float | Mapping[str, float]]
    is_counter: bool = False
    blocks: bool = False
    label: str = ""


class Metrics:
    """The metrics of a server: requests are counted as they end, and all other values are read at each scrape."""

    def __init__(self, metrics: Iterable[ObservedMetric]) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._metrics = list(metrics)
        self._values: list[tuple[ObservedMetric, float | Mapping[str, float]]] = []
        self._failing: set[str] = set()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request. `route` is "" if no route matched."""
        self._requests[route, method, status] += 1
        self._seconds[route] += seconds
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1

    def add(self, metric: ObservedMetric) -> None:
        """Add a metric to be read at each scrape."""
        self._metrics.append(metric)

    async def text(self) -> bytes:
        """Return all metrics in Prometheus' text format. A failing callback is logged once, and its metric omitted."""
        values = []
        for metric in self._metrics:
            try:
                values.append((metric, await asyncio.to_thread(metric.value) if metric.blocks else metric.value()))
            except Exception:  # noqa: BLE001  # from any source; the other metrics are still reported
                if metric.name not in self._failing:
                    _LOG.exception("The metric %s cannot be read, and is left out.", metric.name)
                self._failing.add(metric.name)
            else:
                self._failing.discard(metric.name)
        self._values = values
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics for prometheus_client, which calls this at each scrape."""
        requests = CounterMetricFamily("traffic_requests", "Requests answered.", labels=["route", "method", "status"])
        for (route, method, status), count in self._requests.items():
            requests.add_metric([route, method, str(status)], count)
        yield requests
        times = HistogramMetricFamily("traffic_request_seconds", "Response time of requests.", labels=["route"])
        for route, counts in self._buckets.items():
            cumulative = map(float, accumulate(counts))
            bounds = (*map(str, BUCKETS), "+Inf")
            times.add_metric([route], [*zip(bounds, cumulative, strict=True)], self._seconds[route])
        yield times
        for metric, value in self._values:
            kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=[metric.label] if metric.label else [])
            for label, number in value.items() if isinstance(value, Mapping) else [("", value)]:
                family.add_metric([label] if metric.label else [], number)
            yield family
