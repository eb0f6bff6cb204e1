"""Counts of requests and bytes, and how long requests took, under the names that dashboards for Kafka use.

The hot handlers add to plain attributes of counters; everything else is worked out when somebody looks. Requests that
a round answers took as long as each other, so that a round adds to one bucket.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from ottla.metrics import Buckets, Counter, Labels, Reading, RecentBuckets, Registry, Summary
from ottla.metrics.buckets import quantile
from ottla.ports import Clock
from ottla.replication.replicas import Replicas
from ottla.replication.traffic import Traffic

T = TypeVar("T")

#: Milliseconds, up to twice the request time-out that most clients have.
BOUNDS_MS: Final = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
_BOUNDS_S: Final = tuple(bound / 1_000 for bound in BOUNDS_MS)
#: As the usual rules of the JMX exporter write Kafka's 50thPercentile and so on.
QUANTILES: Final = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}


class RequestTimes:
    """Of one API: how many requests were answered within how long."""

    __slots__ = ("counts", "recent", "total_ms")

    def __init__(self, now_ms: int) -> None:
        #: By the clock's whole milliseconds: the first bucket has what took 0, which is less than 1.
        self.counts: list[int] = [0] * (len(BOUNDS_MS) + 1)
        self.total_ms = 0
        self.recent = RecentBuckets(len(self.counts), now_ms)

    @property
    def requests(self) -> int:
        return sum(self.counts)

    def took(self, ms: int, requests: int) -> None:
        self.counts[bisect_right(BOUNDS_MS, ms)] += requests
        self.total_ms += ms * requests


class RequestMetrics:
    def __init__(self, registry: Registry, replicas: Replicas, clock: Clock) -> None:
        self._clock = clock
        self._register_traffic(registry, replicas)
        self._register_times(registry)
        topic_metric = "kafka_server_brokertopicmetrics_{}_total".format

        def counter(name: str, text: str) -> Counter:
            return registry.counter(topic_metric(name), text)

        self.failed_produces = counter("failedproducerequests", "Produce partitions answered with an error.")
        self.failed_fetches = counter("failedfetchrequests", "Fetch partitions answered with an error.")
        self.total_produces = counter("totalproducerequests", "Partitions that Produce requests named.")
        self.total_fetches = counter("totalfetchrequests", "Partitions that Fetch requests asked for.")
        self.cold_reads = registry.counter("ottla_fetch_cold_reads_total", "Fetches that a worker read from the disk.")
        #: By the names of APIs that were asked for.
        self._times: dict[str, RequestTimes] = {}
        #: The same by their keys, but for those that serve themselves inside rounds.
        self._by_key: dict[int, RequestTimes] = {}

    @staticmethod
    def _register_traffic(registry: Registry, replicas: Replicas) -> None:
        def by_topic(name: str, text: str, number: Callable[[Traffic], float]) -> None:
            """Of all topics together, without a label, and of each one, as Kafka's beans have it."""

            def read() -> Iterator[tuple[Labels, float]]:
                total = number(replicas.traffic.gone)
                for topic, traffic in replicas.traffic:
                    mine = number(traffic)
                    total += mine
                    yield (topic,), mine
                yield ("",), total

            name = f"kafka_server_brokertopicmetrics_{name}_total"
            registry.gauges(name, text, ("topic",), read, type_="counter")

        by_topic("messagesin", "Records appended.", lambda traffic: traffic.records_in)
        by_topic("bytesin", "Bytes of record batches appended.", lambda traffic: traffic.bytes_in)
        by_topic("bytesout", "Bytes of record batches sent to consumers.", lambda traffic: traffic.bytes_out)

    def _register_times(self, registry: Registry) -> None:
        def read(each: Callable[[RequestTimes], T]) -> Reading[T]:
            return lambda: [((name,), each(times)) for name, times in self._times.items()]

        kafka, labels = "kafka_network_requestmetrics_", ("request",)
        registry.gauges(
            f"{kafka}requests_total",
            "Answered requests, by API.",
            labels,
            read(lambda times: times.requests),
            type_="counter",
        )
        registry.summaries(
            f"{kafka}totaltimems",
            "Milliseconds from a request to its answer, by API; quantiles of the last five minutes.",
            labels,
            read(self._summary),
        )
        registry.histograms(
            "ottla_request_duration_seconds",
            "Seconds from a request to its answer, by API.",
            labels,
            read(lambda times: Buckets(_BOUNDS_S, times.counts, times.total_ms / 1_000)),
        )

    def _summary(self, times: RequestTimes) -> Summary:
        recent = times.recent.since(times.counts, self._clock.monotonic_ms())
        quantiles = {name: quantile(BOUNDS_MS, recent, share) for name, share in QUANTILES.items()}
        return Summary(quantiles, times.requests, times.total_ms)

    def request(self, api_key: int, name: str, elapsed_ms: int) -> None:
        """One answered request of an API that is not served inside rounds."""
        times = self._by_key.get(api_key)
        if times is None:
            times = self._by_key[api_key] = self.times_of(name)
        times.took(elapsed_ms, 1)

    def times_of(self, name: str) -> RequestTimes:
        """Of one API, by its name."""
        times = self._times.get(name)
        if times is None:
            times = self._times[name] = RequestTimes(self._clock.monotonic_ms())
        return times
