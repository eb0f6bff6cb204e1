"""Settings that change while the broker runs, and what is written at intervals: each does what it is for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.generated.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.testing.sim.producer import IdempotentProducer
from ottla.testing.sim.reader import end_offset

TOPIC, BROKER = 2, 4
EARLIEST = -2
SET, DELETE = 0, 1
TWO = {"log.dirs": "/data/a,/data/b", "broker.id": "1"}

Scenario = Callable[[OneBroker], Coroutine[Any, Any, None]]


def run(scenario: Scenario, properties: Mapping[str, str] | None = None) -> None:
    with OneBroker(1, {"broker.id": "1", **(properties or {})}) as one:

        async def started() -> None:
            await one.broker.started()
            await scenario(one)

        one.run(started())


async def alter(one: OneBroker, name: str, value: str | None, broker: str = "") -> tuple[ErrorCode, str]:
    """Sets a property of all brokers, or of one; None deletes it."""
    config = AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])
    answer = await one.client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    said = answer.responses[0]
    return ErrorCode(said.error_code), said.error_message or ""


async def must_alter(one: OneBroker, name: str, value: str | None, broker: str = "") -> None:
    assert await alter(one, name, value, broker) == (ErrorCode.NONE, "")


async def value_of(one: OneBroker, name: str) -> str | None:
    asked = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[name])
    answer = await one.client.ask(DescribeConfigsRequest(resources=[asked]), 4)
    value: str | None = answer.results[0].configs[0].value
    return value


async def placed(one: OneBroker) -> dict[str, tuple[bool, int]]:
    """Of each log directory: whether it is cordoned, and how many partitions it has."""
    answer = await one.client.ask(DescribeLogDirsRequest(topics=None), 5)
    return {
        each.log_dir: (each.is_cordoned, sum(len(topic.partitions) for topic in each.topics)) for each in answer.results
    }


def test_a_topics_compaction_lag_has_to_go_with_the_brokers() -> None:
    async def scenario(one: OneBroker) -> None:
        await must_alter(one, "log.cleaner.max.compaction.lag.ms", "50")
        assert await one.create("early", 1, {"min.compaction.lag.ms": "100"}) == ErrorCode.INVALID_CONFIG
        await must_alter(one, "log.cleaner.max.compaction.lag.ms", None)
        assert await one.create("late", 1, {"min.compaction.lag.ms": "100"}) == ErrorCode.NONE

    run(scenario)


@pytest.mark.parametrize("spelling", ["/data/a", "/data/a/"])
def test_a_directory_can_be_cordoned_and_freed_while_the_broker_runs(spelling: str) -> None:
    async def scenario(one: OneBroker) -> None:
        await must_alter(one, "cordoned.log.dirs", spelling, broker="1")
        assert await one.create("t", 4) == ErrorCode.NONE
        assert await placed(one) == {"/data/a": (True, 0), "/data/b": (False, 4)}
        await one.stop_and_start()
        assert await one.create("second", 2) == ErrorCode.NONE
        assert await placed(one) == {"/data/a": (True, 0), "/data/b": (False, 6)}
        await must_alter(one, "cordoned.log.dirs", None, broker="1")
        assert await one.create("third", 4) == ErrorCode.NONE
        assert await placed(one) == {"/data/a": (False, 4), "/data/b": (False, 6)}

    run(scenario, {**TWO, "log.dirs": f"{spelling},/data/b"})


@pytest.mark.parametrize(
    ("broker", "name", "value", "why"),
    [
        ("1", "cordoned.log.dirs", "/elsewhere", "in log.dirs or log.dir. Missing entries : /elsewhere"),
        ("", "max.connections.per.ip", "0", "zero only if max.connections.per.ip.overrides property is set."),
        ("", "max.connections.per.ip.overrides", "a:1,b", "'b' is not HOST:NUMBER"),
        ("", "log.cleaner.dedupe.buffer.size", "1000", "must be at least 1MB per cleaner thread."),
    ],
)
def test_what_does_not_go_with_the_rest_is_refused_and_changes_nothing(
    broker: str, name: str, value: str, why: str
) -> None:
    async def scenario(one: OneBroker) -> None:
        await must_alter(one, "message.max.bytes", "2000000")
        before = await value_of(one, name)
        error, message = await alter(one, name, value, broker)
        assert error == ErrorCode.INVALID_REQUEST
        assert name in message
        assert message.endswith(why)
        assert await value_of(one, name) == before
        # What was changed before still holds, and what comes after is taken.
        assert await one.create() == ErrorCode.NONE
        await one.must_produce(padding=1_500_000)
        await must_alter(one, "message.max.bytes", "1000")
        assert await one.produce(padding=1500) == ErrorCode.MESSAGE_TOO_LARGE
        assert not one.said("dynamic settings are not used")

    run(scenario)


def test_a_change_for_all_brokers_reaches_logs_that_are_open_unless_their_topic_says_otherwise() -> None:
    async def scenario(one: OneBroker) -> None:
        own = TopicPartition("own", 0)
        assert await one.create() == ErrorCode.NONE
        assert await one.create("own", configs={"max.message.bytes": "3000"}) == ErrorCode.NONE
        await must_alter(one, "message.max.bytes", "1000")
        assert await one.produce(padding=2000) == ErrorCode.MESSAGE_TOO_LARGE
        await one.must_produce(own, padding=2000)
        await must_alter(one, "message.max.bytes", None)
        await one.must_produce(padding=2000)

    run(scenario)


def test_producers_are_forgotten_by_the_time_that_holds_now() -> None:
    async def scenario(one: OneBroker) -> None:
        async def known() -> int:
            asked = TopicRequest(name="t", partition_indexes=[0])
            answer = await one.client.ask(DescribeProducersRequest(topics=[asked]), 0)
            return len(answer.topics[0].partitions[0].active_producers)

        assert await one.create() == ErrorCode.NONE
        clock, random = one.broker.ports.clock, one.simulation.random
        await IdempotentProducer(one.new_client("p"), clock, one.history, random, [TP], 3).run()
        await asyncio.sleep(300)
        assert await known() == 1
        await must_alter(one, "producer.id.expiration.ms", "60000")
        await asyncio.sleep(20)
        assert await known() == 0

    run(scenario, {"producer.id.expiration.check.interval.ms": "10000"})


def test_deleted_records_stay_deleted_through_a_kill() -> None:
    interval_s = 60  # log.flush.start.offset.checkpoint.interval.ms

    async def scenario(one: OneBroker) -> None:
        assert await one.create() == ErrorCode.NONE
        await one.must_produce(batches=10)
        # Everything else that is checkpointed has been, and does not change any more.
        await asyncio.sleep(3 * interval_s)
        partition = DeleteRecordsPartition(partition_index=0, offset=7)
        topics = [DeleteRecordsTopic(name="t", partitions=[partition])]
        await one.client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)
        await asyncio.sleep(interval_s + 5)
        await one.restart()
        assert await end_offset(one.client, TP, EARLIEST) == 7

    run(scenario)


def test_the_index_interval_changes_with_the_next_segment() -> None:
    async def scenario(one: OneBroker) -> None:
        assert await one.create(configs={"segment.ms": "1000"}) == ErrorCode.NONE
        await one.must_produce(batches=5)
        resource = AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=TP.topic,
            configs=[AlterableConfig(name="index.interval.bytes", config_operation=SET, value="0")],
        )
        answer = await one.client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == ErrorCode.NONE
        # The segment that is in use goes on as it began.
        await one.must_produce(batches=5)
        for _ in range(2):
            await asyncio.sleep(2)
            await one.must_produce(batches=5)
        await one.stop_and_start()
        folder = "/data/a/t-0"
        indexes = {
            name: one.disk.size(f"{folder}/{name}") for name in one.disk.names(folder) if name.endswith(".index")
        }
        assert indexes == {f"{10:020}.index": 4 * 8, f"{15:020}.index": 4 * 8, f"{0:020}.index": 0}
        await one.check()

    run(scenario)


def test_an_index_that_was_begun_with_a_smaller_interval_is_never_overfull() -> None:
    async def scenario(one: OneBroker) -> None:
        configs = {"index.interval.bytes": "0", "segment.index.bytes": "120"}
        assert await one.create(configs=configs) == ErrorCode.NONE
        await one.must_produce(batches=2)
        resource = AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=TP.topic,
            configs=[AlterableConfig(name="index.interval.bytes", config_operation=SET, value="4096")],
        )
        answer = await one.client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == ErrorCode.NONE
        await one.must_produce(batches=60)
        await one.stop_and_start()
        folder = "/data/a/t-0"
        sizes = [one.disk.size(f"{folder}/{name}") for name in one.disk.names(folder) if name.endswith("index")]
        assert 0 < max(sizes) <= 120
        await one.check()

    run(scenario)


def test_producers_are_known_for_as_long_as_is_asked_for() -> None:
    """More than a day as well: retention, which looks at every log, has nothing to do with them."""

    async def scenario(one: OneBroker) -> None:
        assert await one.create() == ErrorCode.NONE
        clock, random = one.broker.ports.clock, one.simulation.random
        await IdempotentProducer(one.new_client("p"), clock, one.history, random, [TP], 3).run()
        await asyncio.sleep(25 * 3600)
        request = DescribeProducersRequest(topics=[TopicRequest(name=TP.topic, partition_indexes=[0])])
        assert len((await one.client.ask(request, 0)).topics[0].partitions[0].active_producers) == 1

    run(
        scenario,
        {
            "producer.id.expiration.ms": str(72 * 3600 * 1000),
            "log.retention.check.interval.ms": "3600000",
            "producer.id.expiration.check.interval.ms": "3600000",
            "replica.high.watermark.checkpoint.interval.ms": "3600000",
            "log.flush.offset.checkpoint.interval.ms": "3600000",
            "log.flush.start.offset.checkpoint.interval.ms": "3600000",
            "connections.max.idle.ms": "-1",
        },
    )
