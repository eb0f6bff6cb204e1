"""A producer in a process of its own: ``python -m bench.librdkafka_client PORT TOPIC RECORDS``.

Prints how many seconds pass from the first record to the last acknowledgement.
"""

from __future__ import annotations

import os
import sys
import time

import confluent_kafka

#: Records handed over between two looks at the delivery reports.
BURST = 10_000


def main(port: str, topic: str, records: int) -> None:
    failures: list[object] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "linger.ms": 5,
            "acks": "all",
            "batch.num.messages": 10_000,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
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
    if left or failures:
        raise SystemExit(f"{left} records unacknowledged, {len(failures)} refused: {failures[:1]}")
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
