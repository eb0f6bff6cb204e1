"""A full disk: writes are refused with a clear error, reads go on, and all of it goes on when there is space again."""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.testing.sim.producer import IdempotentProducer
from ottla.testing.sim.reader import ReadFault, read_all
from ottla.testing.sim.wire import Unreachable

#: Everything that is written beside records comes soon: checkpoints, rolled segments, indexes.
BUSY = {
    "log.flush.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.segment.delete.delay.ms": "0",
}
SMALL_SEGMENTS = {"index.interval.bytes": "0", "segment.index.bytes": "64"}


@pytest.mark.parametrize("configs", [{}, SMALL_SEGMENTS], ids=["one segment", "many segments"])
def test_a_full_disk_refuses_appends_and_nothing_else(configs: dict[str, str]) -> None:
    # Few bytes more each time: the disk is full in the middle of a batch, an index, a checkpoint, a snapshot.
    for left in range(0, 1600, 160):
        with OneBroker(left, BUSY) as one:
            one.run(_fill_and_free(one, left, configs))


async def _fill_and_free(one: OneBroker, left: int, configs: dict[str, str]) -> None:
    await one.broker.started()
    assert await one.create(configs=configs) == ErrorCode.NONE
    await one.must_produce(batches=3, padding=50)
    one.leave_free(left)
    for _ in range(12):
        error = await one.produce(padding=100)
        assert error in {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}, error.name
        await asyncio.sleep(0.1)
    assert error == ErrorCode.KAFKA_STORAGE_ERROR
    await asyncio.sleep(2.0)
    await one.check()
    one.give_space()
    await one.must_produce(batches=10, padding=100)
    await one.check()
    assert not one.said("is offline"), one.said("is offline")
    await one.restart()
    await one.must_produce(batches=3)
    await one.check()


def test_a_topic_that_does_not_fit_is_refused_and_can_be_created_later() -> None:
    for left in range(0, 700, 70):
        with OneBroker(left, BUSY) as one:
            one.run(_create_when_full(one, left))


async def _create_when_full(one: OneBroker, left: int) -> None:
    await one.broker.started()
    assert await one.create("first") == ErrorCode.NONE
    one.leave_free(left)
    error = await one.create("t", 3)
    await asyncio.sleep(3.0)
    if error == ErrorCode.NONE:
        assert await one.metadata("t") == [ErrorCode.NONE] * 3
    else:
        # What was refused is not there, whatever there was room for.
        assert error == ErrorCode.KAFKA_STORAGE_ERROR, error.name
        assert await one.metadata("t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    one.give_space()
    await one.must_produce(TopicPartition("first", 0))
    if error == ErrorCode.NONE:
        assert await one.create("t", 3) == ErrorCode.TOPIC_ALREADY_EXISTS
    else:
        assert await one.create("t", 3) == ErrorCode.NONE
    for partition in range(3):
        await one.must_produce(TopicPartition("t", partition))
    await one.restart()
    for partition in range(3):
        await one.must_produce(TopicPartition("t", partition))
    assert not one.said("the log directory is offline")


def test_a_topic_of_which_one_log_does_not_fit_is_taken_back() -> None:
    with OneBroker(7, BUSY) as one:
        one.run(_create_in_part(one))


async def _create_in_part(one: OneBroker) -> None:
    await one.broker.started()
    one.disk.fail("*", "*/t-1*", errno.ENOSPC)
    assert await one.create("t", 3) == ErrorCode.KAFKA_STORAGE_ERROR
    assert await one.metadata("t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await asyncio.sleep(5.0)
    assert await one.metadata("t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    one.disk.stop_failing()
    assert await one.create("t", 3) == ErrorCode.NONE
    for partition in range(3):
        await one.must_produce(TopicPartition("t", partition))
    await one.restart()
    for partition in range(3):
        await one.must_produce(TopicPartition("t", partition))


def test_partitions_that_do_not_fit_come_when_there_is_room() -> None:
    """They cannot be taken back, as a topic can: without a restart they are led soon after there is space."""
    late = 0
    for left in range(0, 900, 70):
        with OneBroker(left, BUSY) as one:
            one.run(_grow_when_full(one, left))
            late += bool(one.said("partition is offline"))
    assert late


async def _grow_when_full(one: OneBroker, left: int) -> None:
    await one.broker.started()
    assert await one.create("t") == ErrorCode.NONE
    one.leave_free(left)
    error = await one.create_partitions("t", 4)
    await asyncio.sleep(5.0)
    one.give_space()
    await asyncio.sleep(5.0)
    if error != ErrorCode.NONE:
        assert error == ErrorCode.KAFKA_STORAGE_ERROR, error.name
        assert await one.create_partitions("t", 4) in {ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS}
    for partition in range(4):
        await one.must_produce(TopicPartition("t", partition))
    await one.restart()
    for partition in range(4):
        await one.must_produce(TopicPartition("t", partition))
    assert not one.said("the log directory is offline")


def test_space_that_comes_and_goes_loses_nothing() -> None:
    for seed in range(20):
        with OneBroker(seed, BUSY) as one:
            one.run(_come_and_go(one))


async def _come_and_go(one: OneBroker) -> None:
    random = one.simulation.random
    await one.broker.started()
    assert await one.create(partitions=2, configs=random.choice([{}, SMALL_SEGMENTS])) == ErrorCode.NONE
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    clock = one.broker.ports.clock
    producers = [
        IdempotentProducer(
            one.new_client(f"p{number}"), clock, one.history, Random(random.random()), partitions, 40, padding=100
        )
        for number in range(2)
    ]
    load = [asyncio.create_task(producer.run()) for producer in producers]
    while not all(task.done() for task in load):
        one.leave_free(random.choice((0, 50, 300, 1000)))
        await asyncio.sleep(random.uniform(0.05, 1.0))
        for tp in partitions:
            await read_all(one.client, tp)
        one.give_space()
        await asyncio.sleep(random.uniform(0.01, 0.1))
    for task in load:
        task.result()
    assert any(ErrorCode.KAFKA_STORAGE_ERROR in producer.errors for producer in producers)
    assert not one.said("is offline"), one.said("is offline")
    await one.check(partitions)
    await one.restart()
    await one.check(partitions)


def test_a_broker_starts_on_a_disk_that_is_full() -> None:
    for left in (0, 40, 200, 1000):
        with OneBroker(left, BUSY) as one:
            one.run(_start_when_full(one, left))


async def _start_when_full(one: OneBroker, left: int) -> None:
    await one.broker.started()
    assert await one.create() == ErrorCode.NONE
    await one.must_produce(batches=5, padding=50)
    one.broker.lose_power()
    one.client.close()
    one.leave_free(left)
    await one.broker.start()
    assert one.broker.refusal is None, one.broker.refusal
    try:
        await one.check()
    except (ReadFault, Unreachable) as fault:
        raise AssertionError(f"it serves and cannot be read: {fault}") from fault
    one.broker.kill()
    one.client.close()
    one.give_space()
    await one.broker.started()
    await one.check()
    await one.must_produce(TP)
