"""Counts of requests and bytes, under the names that dashboards for Kafka use.

The hot handlers add to plain attributes of counters; everything else is worked out when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.metrics import Counter, Labels, Registry
from ottla.replication.replicas import Replicas
from ottla.replication.traffic import Traffic


class RequestMetrics:
    def __init__(self, registry: Registry, replicas: Replicas) -> None:
        topic_metric = "kafka_server_brokertopicmetrics_{}_total".format

        def counter(name: str, text: str) -> Counter:
            return registry.counter(topic_metric(name), text)

        def by_topic(name: str, text: str, number: Callable[[Traffic], float]) -> None:
            """Of all topics together, without a label, and of each one, as Kafka's beans have it."""

            def collect() -> Iterator[tuple[Labels, float]]:
                yield ("",), number(replicas.traffic.total())
                for topic, traffic in replicas.traffic:
                    yield (topic,), number(traffic)

            registry.gauges(topic_metric(name), text, ("topic",), collect, type_="counter")

        by_topic("messagesin", "Records appended.", lambda traffic: traffic.records_in)
        by_topic("bytesin", "Bytes of record batches appended.", lambda traffic: traffic.bytes_in)
        by_topic("bytesout", "Bytes of record batches sent to consumers.", lambda traffic: traffic.bytes_out)
        self.failed_produces = counter("failedproducerequests", "Produce partitions answered with an error.")
        self.failed_fetches = counter("failedfetchrequests", "Fetch partitions answered with an error.")
        self.total_produces = counter("totalproducerequests", "Partitions that Produce requests named.")
        self.total_fetches = counter("totalfetchrequests", "Partitions that Fetch requests asked for.")
        self.cold_reads = registry.counter("ottla_fetch_cold_reads_total", "Fetches that a worker read from the disk.")
        labels = ("request",)
        self._requests = registry.counters("kafka_network_requestmetrics_requests_total", "Requests by API.", labels)
        self._times = registry.counters("kafka_network_requestmetrics_totaltimems", "Time in requests, by API.", labels)
        #: The two counters of each API that was asked for.
        self._by_key: dict[int, tuple[Counter, Counter]] = {}

    def request(self, api_key: int, name: str, elapsed_ms: float) -> None:
        """One answered request of an API that is not served inside rounds."""
        counters = self._by_key.get(api_key)
        if counters is None:
            counters = self._by_key[api_key] = self.of_api(name)
        counters[0].value += 1
        counters[1].value += elapsed_ms

    def of_api(self, name: str) -> tuple[Counter, Counter]:
        """The counters of one API: requests, and the milliseconds they took in all."""
        return self._requests.labels(name), self._times.labels(name)
