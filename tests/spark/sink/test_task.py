"""What a task keeps while it waits for acknowledgements."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from ottla.client.producing.producer import Producer
from ottla.spark.sink.task import TaskRows
from ottla.testing.in_process import InProcessBroker


@pytest.mark.ottla_topic(configs={"min.insync.replicas": "2"})
def test_rows_that_are_written_are_not_kept_behind_one_that_is_not(ottla_broker: InProcessBroker, topic: str) -> None:
    """A partition whose leader is away may hold a row for minutes, while all others go on."""
    other = f"{topic}-other"
    ottla_broker.create_topic(other)

    async def kept() -> list[int]:
        found = []
        async with Producer(bootstrap_servers=ottla_broker.bootstrap, batch_size=1000) as producer:
            task = TaskRows(producer, None)
            for number in range(5):
                names = [topic] + [other] * 200
                await task.add(pa.record_batch({"value": [b"x" * 100] * 201, "topic": names}), number * 201)
                await producer.send_and_wait(other, b"behind them")
                found.append(task.waiting())
            await producer.close(timeout_ms=0)
        return found

    # One a table waits, and of the last one all that nobody has looked at since.
    assert max(asyncio.run(kept())) <= 5 + 200 * 130 // 1000
    ottla_broker.delete_topic(other)
