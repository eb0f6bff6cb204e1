"""A consumer that enters a new group: ``python -m bench.first_record PORT TOPIC CLIENT TIMES``, a process of its own.

For each of TIMES groups, one after the other, it prints the seconds from making the consumer to its first record, on a
line of its own. CLIENT is ``librdkafka`` or ``ottla``.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

RECORD_SECONDS_MAX = 60.0


def with_librdkafka(port: int, topic: str, group: str) -> float:
    import confluent_kafka

    began = time.monotonic()
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        while time.monotonic() - began < RECORD_SECONDS_MAX:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                return time.monotonic() - began
    finally:
        consumer.close()
    raise SystemExit("no record came")


async def with_ottla(port: int, topic: str, group: str) -> float:
    from ottla.client import Consumer

    began = time.monotonic()
    consumer = Consumer(
        bootstrap_servers=f"127.0.0.1:{port}", group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer:
        consumer.subscribe([topic])
        while time.monotonic() - began < RECORD_SECONDS_MAX:
            if await consumer.poll(timeout_ms=1000):
                return time.monotonic() - began
    raise SystemExit("no record came")


def main(port: int, topic: str, client: str, times: int) -> None:
    for number in range(times):
        group = f"{client}-{os.getpid()}-{number}"
        if client == "librdkafka":
            seconds = with_librdkafka(port, topic, group)
        else:
            seconds = asyncio.run(with_ottla(port, topic, group))
        print(seconds, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
