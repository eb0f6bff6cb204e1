"""AlterReplicaLogDirs: a replica goes to another log directory while clients write to it and read from it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from ottla.storage.directories.directories import PREFERRED_MAX
from ottla.testing.sim.producer import IdempotentProducer
from ottla.testing.sim.wire import Unreachable

A, B = "/data/a", "/data/b"
SMALL_SEGMENTS = {"segment.index.bytes": "64", "index.interval.bytes": "0"}


def run(scenario: Callable[[OneBroker], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    with OneBroker(seed, {"log.dirs": f"{A},{B}", "log.flush.interval.messages": "1"}) as one:

        async def started() -> None:
            await one.broker.started()
            await scenario(one)

        one.run(started())


async def move(one: OneBroker, to: str, tp: TopicPartition = TP) -> ErrorCode:
    topics = [AlterReplicaLogDirTopic(name=tp.topic, partitions=[tp.partition])]
    answer = await one.client.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=to, topics=topics)]), 2)
    return ErrorCode(answer.results[0].partitions[0].error_code)


async def homes(one: OneBroker, tp: TopicPartition = TP) -> list[tuple[str, bool]]:
    """The directories that have the replica, and whether it is a copy that is still being made."""
    answer = await one.client.ask(DescribeLogDirsRequest(topics=None), 4)
    return [
        (result.log_dir, partition.is_future_key)
        for result in answer.results
        for topic in result.topics
        for partition in topic.partitions
        if (topic.name, partition.partition_index) == tp
    ]


async def until_it_is_in(one: OneBroker, directory: str) -> None:
    for _ in range(600):
        if await homes(one) == [(directory, False)]:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"it is in {await homes(one)}")


async def origin(one: OneBroker) -> tuple[str, str]:
    """Where the replica is, and where it is not."""
    ((here, _),) = await homes(one)
    return here, B if here == A else A


@pytest.mark.parametrize("seed", range(5))
def test_a_replica_moves_under_load(seed: int) -> None:
    async def scenario(one: OneBroker) -> None:
        assert await one.create(configs=SMALL_SEGMENTS) == ErrorCode.NONE
        here, there = await origin(one)
        await one.must_produce(batches=20, padding=100)
        clock = one.broker.ports.clock
        producer = IdempotentProducer(one.new_client("p"), clock, one.history, Random(seed), [TP], 200, padding=100)
        load = asyncio.create_task(producer.run())
        for target in (there, here, there):
            assert await move(one, target) == ErrorCode.NONE
            await until_it_is_in(one, target)
            await one.check()
        await load
        await one.check()
        assert one.disk.exists(f"{there}/t-0")
        assert not one.disk.exists(f"{here}/t-0")
        await one.restart()
        assert await homes(one) == [(there, False)]
        await one.check()
        await one.must_produce()

    run(scenario, seed)


def test_a_power_cut_in_the_middle_of_a_move_loses_nothing() -> None:
    ends = set()
    for operation in range(1, 122, 8):

        async def scenario(one: OneBroker, operation: int = operation) -> None:
            assert await one.create() == ErrorCode.NONE
            _, there = await origin(one)
            for _ in range(10):
                await one.must_produce(padding=400_000)
            one.disk.crash_at(operation)
            with suppress(Unreachable):
                await move(one, there)
                await asyncio.sleep(5)
            one.disk.crash_at(0)
            one.client.close()
            if not one.broker.serving.is_set():
                await one.broker.started()
            await asyncio.sleep(5)
            ((home, is_copy),) = await homes(one)
            assert not is_copy
            ends.add((one.broker.lives, home == there))
            await one.check()
            await one.must_produce()

        run(scenario, operation)
    # Some were cut short and went on after it; the last ones were done before.
    assert {(2, True), (1, True)} <= ends


def test_a_replica_that_is_not_here_yet_is_made_where_it_was_asked_for() -> None:
    async def scenario(one: OneBroker) -> None:
        for number, directory in enumerate((B, B, A)):
            tp = TopicPartition(f"new{number}", 0)
            # It is noted all the same, as by Kafka.
            assert await move(one, directory, tp) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert await one.create(tp.topic) == ErrorCode.NONE
            assert await homes(one, tp) == [(directory, False)]

    run(scenario)


def test_a_topic_with_a_very_long_name_is_refused_as_by_kafka() -> None:
    async def scenario(one: OneBroker) -> None:
        tp = TopicPartition("n" * 249, 0)
        assert await one.create(tp.topic) == ErrorCode.NONE
        ((here, _),) = await homes(one, tp)
        assert await move(one, B if here == A else A, tp) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await homes(one, tp) == [(here, False)]
        await one.must_produce(tp)
        assert not one.said("a request failed")

    run(scenario)


def test_a_replica_that_is_named_twice_goes_where_it_was_named_last() -> None:
    """As by Kafka, and it has one result."""

    async def scenario(one: OneBroker) -> None:
        assert await one.create() == ErrorCode.NONE
        here, there = await origin(one)
        for paths in ([there, here], ["/data/c", here], [here, there]):
            topics = [[AlterReplicaLogDirTopic(name=TP.topic, partitions=[TP.partition])] for _ in paths]
            dirs = [AlterReplicaLogDir(path=path, topics=named) for path, named in zip(paths, topics, strict=True)]
            (topic,) = (await one.client.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2)).results
            assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(0, ErrorCode.NONE)]
            if paths[-1] == here:
                assert await homes(one) == [(here, False)]
        await until_it_is_in(one, there)

    run(scenario)


def test_wishes_for_replicas_that_never_come_are_bounded() -> None:
    async def scenario(one: OneBroker) -> None:
        for first in range(0, 2 * PREFERRED_MAX, 5000):
            topics = [AlterReplicaLogDirTopic(name="never", partitions=list(range(first, first + 5000)))]
            request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=B, topics=topics)])
            await one.client.ask(request, 2)
        assert one.broker.broker is not None
        assert one.broker.broker.services is not None
        directories = one.broker.broker.services.replicas.directories
        assert len(directories._preferred) == PREFERRED_MAX

    run(scenario)


def test_a_target_that_is_no_directory_of_ours_or_that_has_failed_is_refused() -> None:
    async def scenario(one: OneBroker) -> None:
        assert await one.create() == ErrorCode.NONE
        here, there = await origin(one)
        await one.must_produce()
        assert await move(one, "/data/c") == ErrorCode.LOG_DIR_NOT_FOUND
        one.disk.fail("*", f"{there}*", errno.EIO)
        assert await move(one, there) == ErrorCode.KAFKA_STORAGE_ERROR
        one.disk.stop_failing()
        assert await move(one, there) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await homes(one) == [(here, False)]
        await one.must_produce()
        await one.check()

    run(scenario)
