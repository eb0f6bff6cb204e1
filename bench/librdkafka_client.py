"""A producer in a process of its own: ``python -m bench.librdkafka_client PORT TOPIC RECORDS``.

Prints how many seconds pass from the first record to the last acknowledgement, and how many microseconds a request
takes to its answer, as librdkafka sees it: the median and the 99th percentile. Reports of single records would cost
more than what is measured, so these come from its statistics, each over a tenth of a second; their medians are printed.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

import confluent_kafka

#: How long each of librdkafka's own statistics looks at.
WINDOW_MS = 100
#: Records handed over between two looks at the delivery reports.
BURST = 10_000


class RoundTrips:
    """Of requests to brokers, by librdkafka's statistics, once for each window in which there were some."""

    def __init__(self) -> None:
        self.p50: list[float] = []
        self.p99: list[float] = []

    def take(self, told: str) -> None:
        for broker in json.loads(told)["brokers"].values():
            if broker["nodeid"] >= 0 and broker["rtt"]["cnt"]:
                self.p50.append(broker["rtt"]["p50"])
                self.p99.append(broker["rtt"]["p99"])

    def medians(self) -> tuple[float, float]:
        return statistics.median(self.p50), statistics.median(self.p99)


def main(port: str, topic: str, records: int) -> None:
    failures: list[object] = []
    trips = RoundTrips()
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "linger.ms": 5,
            "acks": "all",
            "batch.num.messages": 10_000,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "statistics.interval.ms": WINDOW_MS,
            "stats_cb": trips.take,
            "on_delivery": lambda error, _message: failures.append(error) if error else None,
        }
    )
    value = os.urandom(100)
    # The first answers of a broker's metadata are no part of what is measured.
    producer.produce(topic, value, partition=0)
    producer.flush(30)
    produce = producer.produce
    began = time.monotonic()
    for _ in range(records // BURST):
        for _ in range(BURST):
            try:
                produce(topic, value, partition=0)
            except BufferError:
                producer.poll(0.01)
                produce(topic, value, partition=0)
        producer.poll(0)
    left = producer.flush(60)
    seconds = time.monotonic() - began
    for _ in range(10):
        if trips.p50:
            break
        producer.poll(WINDOW_MS / 1000)  # all was over before the first window was
    if left or failures:
        raise SystemExit(f"{left} records unacknowledged, {len(failures)} refused: {failures[:1]}")
    print(seconds, *trips.medians())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
