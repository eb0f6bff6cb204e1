"""What a task waits for, and what it keeps meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.client.reading import read_all

from ottla.client.producing.producer import Producer
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.spark.sink.task import TaskRows
from ottla.testing.in_process import InProcessBroker


class Unacknowledged:
    """A rule: the answers to these partitions' records ask for patience. Their records are in the log all the same."""

    def __init__(self, *partitions: int) -> None:
        self.partitions = partitions

    def __call__(self, request: Request) -> Action:
        return Pass(self._refused) if request.key == ApiKey.PRODUCE else Pass()

    def _refused(self, answer: Any) -> None:
        for topic in answer.responses:
            for one in topic.partition_responses:
                if one.index in self.partitions:
                    one.error_code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def rows(number: int, first: int, others: int) -> pa.RecordBatch:
    """Some for partition 0, the rest for partition 1."""
    partitions = pa.array([0] * first + [1] * others, pa.int32())
    return pa.record_batch({"value": [b"%0100d" % number] * (first + others), "partition": partitions})


@pytest.mark.ottla_topic(partitions=2)
def test_the_place_of_some_rows_is_known_where_a_broker_has_said_one(ottla_broker: InProcessBroker, topic: str) -> None:
    """Not where a batch was there already, and the broker does not remember where."""

    def rule(request: Request) -> Action:
        return Pass(forgetful) if request.key == ApiKey.PRODUCE else Pass()

    def forgetful(answer: Any) -> None:
        for named in answer.responses:
            for one in named.partition_responses:
                if one.index == 1:
                    one.error_code, one.base_offset = ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1

    async def write() -> tuple[int, int]:
        async with (
            Proxy(ottla_broker.bootstrap, rule) as proxy,
            Producer(bootstrap_servers=proxy.bootstrap) as producer,
        ):
            task = TaskRows(producer, topic)
            await task.add(rows(0, 5, 5), 0)
            await task.end()
            assert task.last is not None
            return task.last.partition, task.last.offset

    assert asyncio.run(write()) == (0, 0)


@pytest.mark.ottla_topic(partitions=2)
def test_rows_are_taken_while_none_are_acknowledged(ottla_broker: InProcessBroker, topic: str) -> None:
    async def write() -> None:
        rule = Unacknowledged(0, 1)
        async with (
            Proxy(ottla_broker.bootstrap, rule) as proxy,
            Producer(bootstrap_servers=proxy.bootstrap, batch_size=1000, retry_backoff_ms=2) as producer,
        ):
            task = TaskRows(producer, topic)
            for number in range(10):
                await task.add(rows(number, 5, 5), number * 10)
            assert task.waiting() == 20
            rule.partitions = ()
            await task.end()

    asyncio.run(write())
    assert len(asyncio.run(read_all(ottla_broker.bootstrap, topic))) == 100


@pytest.mark.ottla_topic(partitions=2)
def test_rows_that_are_written_are_not_kept_behind_one_that_is_not(ottla_broker: InProcessBroker, topic: str) -> None:
    """A partition whose leader is away may hold a row for minutes, while all others go on."""
    tables, others = 8, 200

    async def kept() -> list[int]:
        found = []
        rule = Unacknowledged(0)
        async with (
            Proxy(ottla_broker.bootstrap, rule) as proxy,
            Producer(bootstrap_servers=proxy.bootstrap, batch_size=1000, retry_backoff_ms=2) as producer,
        ):
            task = TaskRows(producer, topic)
            for number in range(tables):
                await task.add(rows(number, 1, others), number * (others + 1))
                await producer.send_and_wait(topic, b"behind them", partition=1)
                found.append(task.waiting())
            rule.partitions = ()
            await task.end()
        return found

    # What waits, and of the last table what nobody has looked at since.
    assert max(asyncio.run(kept())) <= tables + others * 130 // 1000
