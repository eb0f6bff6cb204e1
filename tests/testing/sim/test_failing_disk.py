"""A disk that answers EIO: its directory goes offline, the others go on, and a failed sync is never tried again."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.testing.sim.reader import ReadFault, end_offset, fetch, read_all
from ottla.testing.sim.wire import Unreachable

TWO = {
    "log.dirs": "/data/a,/data/b",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}
SMALL_SEGMENTS = {"index.interval.bytes": "0", "segment.index.bytes": "64"}
#: What fails once in the folder of one partition, or in its log directory.
FAULTS = [
    ("append", "*.log"),
    ("sync", "*.log"),
    ("write", "*index"),
    ("sync", "*index"),
    ("create", "*.log"),
    ("append", "*.snapshot"),
    ("sync", "*.snapshot"),
    ("append", "*leader-epoch-checkpoint.tmp"),
    ("sync", "*leader-epoch-checkpoint.tmp"),
    ("rename", "*leader-epoch-checkpoint.tmp"),
    ("sync_directory", "*"),
    ("append", "*recovery-point-offset-checkpoint.tmp"),
    ("sync", "*recovery-point-offset-checkpoint.tmp"),
    ("rename", "*replication-offset-checkpoint.tmp"),
]


@pytest.mark.parametrize(("operation", "pattern"), FAULTS, ids=[f"{a} {b}" for a, b in FAULTS])
def test_one_fault_takes_one_directory_offline(operation: str, pattern: str) -> None:
    for after in (0,) if "epoch" in pattern else (0, 1, 3):  # a leader epoch begins once only
        with OneBroker(after, TWO) as one:
            one.run(_fail_one(one, operation, pattern, after))


async def _fail_one(one: OneBroker, operation: str, pattern: str, after: int) -> None:
    await one.broker.started()
    one.broker.ports.workers.latency_ms = (0.0, 20.0)
    assert await one.create(partitions=2, configs=SMALL_SEGMENTS) == ErrorCode.NONE
    hit, spared = _by_directory(one)
    partitions = [hit, spared]
    one.disk.fail(operation, f"/data/b/{pattern}", errno.EIO, after=after, times=1)
    failed = await _until_offline(one, hit, spared)
    assert failed, "nothing ever met the fault"
    # Once offline it stays so, although nothing fails any more: nobody knows what the device has kept.
    for _ in range(3):
        assert await one.produce(hit) == ErrorCode.KAFKA_STORAGE_ERROR
        await one.must_produce(spared)
        await asyncio.sleep(0.5)
    with pytest.raises(ReadFault) as refused:
        await read_all(one.client, hit)
    assert refused.value.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert one.said("ERROR", "/data/b", "offline")
    assert not one.said("directory=/data/a")
    await one.check([spared])
    await one.restart()
    for tp in partitions:
        await one.must_produce(tp)
    await one.check(partitions)


def _by_directory(one: OneBroker) -> tuple[TopicPartition, TopicPartition]:
    """The partition in the second directory, and the one in the first."""
    zero, first = TopicPartition("t", 0), TopicPartition("t", 1)
    return (zero, first) if one.disk.exists("/data/b/t-0") else (first, zero)


async def _until_offline(one: OneBroker, hit: TopicPartition, spared: TopicPartition) -> bool:
    """Works on both partitions until one cannot be written; what is refused is refused in Kafka's word for it."""
    reader = one.new_client("reader")
    for _ in range(40):
        error = await one.produce(hit, padding=100)
        await one.must_produce(spared, padding=100)
        if error != ErrorCode.NONE:
            assert error == ErrorCode.KAFKA_STORAGE_ERROR, error.name
            return True
        try:
            await read_all(reader, hit)
        except ReadFault as fault:
            return fault.error == ErrorCode.KAFKA_STORAGE_ERROR
        await asyncio.sleep(0.05)
    return False


def test_a_failed_sync_acknowledges_none_of_what_waits_for_it() -> None:
    for seed in range(10):
        with OneBroker(seed, TWO) as one:
            one.run(_fail_sync_under_load(one))


async def _fail_sync_under_load(one: OneBroker) -> None:
    await one.broker.started()
    one.broker.ports.workers.latency_ms = (1.0, 30.0)
    assert await one.create(partitions=2) == ErrorCode.NONE
    hit, spared = _by_directory(one)
    one.disk.fail("sync", "/data/b/*.log", errno.EIO, after=one.simulation.random.randint(0, 5), times=1)
    answers = []
    for _ in range(30):
        wire = await one.client.connected()
        del wire
        answers.append(asyncio.create_task(one.produce(hit)))
        await asyncio.sleep(0.004)
    errors = [await answer for answer in answers]
    first = errors.index(ErrorCode.KAFKA_STORAGE_ERROR)
    assert set(errors[first:]) == {ErrorCode.KAFKA_STORAGE_ERROR}, errors
    await one.must_produce(spared)
    await one.restart()
    await one.check([hit, spared])


def test_a_read_that_fails_is_told_to_its_reader_alone() -> None:
    with OneBroker(1, TWO) as one:
        one.run(_fail_reads(one))


async def _fail_reads(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create(partitions=2) == ErrorCode.NONE
    hit, spared = _by_directory(one)
    for tp in (hit, spared):
        # Small slices are copied into the answer, large ones are sent from the file.
        await one.must_produce(tp, batches=3, padding=20_000)
    other = one.new_client("other")
    end = await end_offset(one.client, hit)
    for offset, bytes_max in ((0, 1000), (end - 1, 1000), (0, 1 << 20)):
        one.disk.fail("read", "/data/b/*.log", errno.EIO)
        answers = await asyncio.gather(
            fetch(one.client, hit, offset, bytes_max=bytes_max), fetch(other, spared, 0), return_exceptions=True
        )
        refused, read = answers
        # Where a part of the answer has gone already there is only the end of the connection to tell it.
        assert isinstance(refused, Unreachable if bytes_max > 20_000 else ReadFault), refused
        assert isinstance(read, tuple), read
        one.disk.stop_failing()
        assert (await fetch(one.client, hit, offset))[0]
    await one.check([hit, spared])


def test_a_journal_without_room_refuses_changes_and_records_go_on() -> None:
    with OneBroker(1) as one:
        one.run(_refuse_changes(one))


async def _refuse_changes(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create() == ErrorCode.NONE
    one.disk.fail("append", "/data/a.coordination/journal*", errno.ENOSPC)
    assert await one.create("other") == ErrorCode.KAFKA_STORAGE_ERROR
    await one.must_produce()
    one.disk.stop_failing()
    assert await one.create("other") == ErrorCode.NONE
    await one.restart()
    await one.must_produce(TopicPartition("other", 0))
    await one.check()


def test_a_journal_whose_sync_fails_ends_the_broker_and_nothing_is_lost() -> None:
    for seed in range(5):
        with OneBroker(seed) as one:
            one.run(_lose_the_tree(one))


async def _lose_the_tree(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create() == ErrorCode.NONE
    await one.must_produce(batches=3)
    one.disk.fail("sync", "/data/a.coordination/journal*", errno.EIO, times=1)
    with suppress(Unreachable):  # it may end before it answers
        assert await one.create("other") != ErrorCode.NONE
    await asyncio.wait_for(one.broker.ended.wait(), 30)
    assert one.broker.gave_up is not None
    assert "\n" not in one.broker.gave_up
    one.client.close()
    await one.broker.started()
    await one.must_produce(TP)
    await one.check()
    assert await one.create("other") in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
    await one.must_produce(TopicPartition("other", 0))


def test_a_directory_that_cannot_be_used_at_start_is_left_out() -> None:
    with OneBroker(1, TWO) as one:
        one.run(_start_with_one(one))


async def _start_with_one(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create(partitions=2) == ErrorCode.NONE
    hit, spared = _by_directory(one)
    for tp in (hit, spared):
        await one.must_produce(tp, batches=3)
    one.broker.lose_power()
    one.client.close()
    one.disk.fail("*", "/data/b*", errno.EIO)
    await one.broker.started()
    assert await one.produce(hit) == ErrorCode.KAFKA_STORAGE_ERROR
    await one.must_produce(spared)
    one.disk.stop_failing()
    await one.restart()
    await one.must_produce(hit)
    await one.check([hit, spared])


@pytest.mark.parametrize("directories", ["/data/a", "/data/a,/data/b"])
def test_a_broker_without_any_directory_left_stops(directories: str) -> None:
    with OneBroker(1, {**TWO, "log.dirs": directories}) as one:
        one.run(_fail_all(one))


async def _fail_all(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create(partitions=4) == ErrorCode.NONE
    partitions = [TopicPartition("t", number) for number in range(4)]
    for tp in partitions:
        await one.must_produce(tp)
    one.disk.fail("append", "*.log", errno.EIO)
    with suppress(Unreachable):
        for tp in partitions:
            assert await one.produce(tp) == ErrorCode.KAFKA_STORAGE_ERROR
    await asyncio.wait_for(one.broker.ended.wait(), 30)
    assert one.broker.gave_up is not None
    assert one.broker.gave_up.startswith("no log directory works any more: /data/a: "), one.broker.gave_up
    assert "Input/output error" in one.broker.gave_up
    one.disk.stop_failing()
    one.client.close()
    await one.broker.started()
    await one.check(partitions)


@pytest.mark.parametrize(("operation", "number"), [("append", errno.EIO), ("append", errno.EROFS), ("sync", errno.EIO)])
def test_a_broker_whose_tree_cannot_be_written_any_more_stops(operation: str, number: int) -> None:
    with OneBroker(1, TWO) as one:
        one.run(_fail_tree(one, operation, number))


async def _fail_tree(one: OneBroker, operation: str, number: int) -> None:
    await one.broker.started()
    assert await one.create() == ErrorCode.NONE
    await one.must_produce()
    one.disk.fail(operation, "/data/a.coordination/journal.*", number)
    with suppress(Unreachable):
        assert await one.create("second") != ErrorCode.NONE
    await asyncio.wait_for(one.broker.ended.wait(), 30)
    assert one.broker.gave_up is not None
    assert "/data/a.coordination" in one.broker.gave_up
    one.disk.stop_failing()
    one.client.close()
    await one.broker.started()
    await one.check()


def test_a_directory_that_fails_when_a_topic_is_created_takes_its_partitions_with_it() -> None:
    with OneBroker(1, TWO) as one:
        one.run(_fail_at_creation(one))


async def _fail_at_creation(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create(partitions=2) == ErrorCode.NONE
    hit, spared = _by_directory(one)
    for tp in (hit, spared):
        await one.must_produce(tp)
    one.disk.fail("make_directory", "/data/b/*", errno.EIO, times=1)
    await one.create("more", 2)
    assert one.said("ERROR", "/data/b", "offline")
    assert await one.produce(hit) == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(ReadFault):
        await read_all(one.client, hit)
    await one.must_produce(spared)
    await one.restart()
    await one.check([hit, spared])
