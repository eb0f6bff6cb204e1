"""A broker was killed and starts on a full disk: it serves what it has, and writes again once there is room."""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest
from tests.searches import seeds
from tests.testing.sim.one_broker import OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.testing.sim.producer import IdempotentProducer

BUSY = {
    "log.flush.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.dirs": "/data/a,/data/b",
    "node.id": "1",
}
SMALL = {"index.interval.bytes": "0", "segment.index.bytes": "64"}
#: What may need space; the others give some back, or change nothing.
TAKING = "append|write|allocate|create|make_directory|rename"
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("many", 0), TopicPartition("fresh", 0)]
#: A power cut takes the name of a file that nobody wrote to: the log that has none left waits for room.
WITH_RECORDS = PARTITIONS[:3]


async def filled(one: OneBroker, *, how: str) -> None:
    """Logs of one segment and of many, producers' states, and a topic that nobody has written to."""
    await one.broker.started()
    assert await one.create("t", 2) == ErrorCode.NONE
    assert await one.create("many", configs=SMALL) == ErrorCode.NONE
    for tp in PARTITIONS[:3]:
        await one.must_produce(tp, batches=3, padding=40)
    producer = IdempotentProducer(
        one.new_client("p"), one.broker.ports.clock, one.history, Random(1), PARTITIONS[1:3], 12, padding=60
    )
    await producer.run()
    await asyncio.sleep(1.0)
    await producer_again(one)
    assert await one.create("fresh") == ErrorCode.NONE
    if how == "stopped":
        await one.broker.stop()
    elif how == "power":
        one.broker.lose_power()
    else:
        one.broker.kill()
    one.client.close()


async def producer_again(one: OneBroker) -> None:
    """Above the recovery point."""
    for tp in PARTITIONS[:3]:
        await one.must_produce(tp, batches=6, padding=40)


async def writes_are_refused(one: OneBroker) -> None:
    """All of them, once the writes are used up that there was room for."""
    for _ in range(100):
        answers = [await one.produce(tp, padding=50) for tp in PARTITIONS]
        assert set(answers) <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}, answers
        if ErrorCode.NONE not in answers:
            break
    else:
        raise AssertionError("writes go on without room")
    assert await one.create("late") == ErrorCode.KAFKA_STORAGE_ERROR


async def writes_go_on(one: OneBroker) -> None:
    await asyncio.sleep(5.0)
    for tp in PARTITIONS:
        await one.must_produce(tp, batches=3)
    assert await one.create("late") == ErrorCode.NONE
    await one.must_produce(TopicPartition("late", 0))
    await one.check(PARTITIONS)


async def start_without_room(one: OneBroker, how: str, writes: int) -> None:
    await filled(one, how=how)
    one.disk.fail(TAKING, "*", errno.ENOSPC, after=writes)
    await one.broker.start()
    assert one.broker.refusal is None, f"after {writes} writes: {one.broker.refusal}"
    await one.check(WITH_RECORDS)
    await writes_are_refused(one)
    await asyncio.sleep(3.0)
    await one.check(WITH_RECORDS)
    assert not one.said("is offline"), one.said("is offline")
    one.disk.stop_failing()
    await writes_go_on(one)
    await one.restart()
    await writes_go_on_after_a_restart(one)


async def writes_go_on_after_a_restart(one: OneBroker) -> None:
    for tp in PARTITIONS:
        await one.must_produce(tp)
    await one.check(PARTITIONS)


WAYS = ("killed", "power", "stopped")


@pytest.mark.parametrize("turn", seeds(1, len(WAYS)))
@pytest.mark.parametrize("how", WAYS)
def test_a_start_serves_reads_whichever_write_there_is_no_room_for(how: str, turn: int) -> None:
    """Every write in one of the ways; in all of them with `./test --slow`."""
    for writes in range((WAYS.index(how) + turn) % len(WAYS), 80, len(WAYS)):
        with OneBroker(writes, BUSY) as one:
            one.run(start_without_room(one, how, writes))


@pytest.mark.parametrize("part", seeds(1, 6))
def test_starts_on_a_disk_with_any_room_left_lose_nothing(part: int) -> None:
    for seed in range(10 * part, 10 * (part + 1)):
        with OneBroker(seed, BUSY) as one:
            one.run(any_room(one))


async def any_room(one: OneBroker) -> None:
    """Several lives on a disk that is nearly full, ended anyhow, and one that is cut short while it catches up."""
    random = one.simulation.random
    await filled(one, how=random.choice(["killed", "power", "stopped"]))
    one.leave_free(random.choice((0, 1, 30, 100, 300, 1000, 3000)))
    for _ in range(random.randint(1, 3)):
        await one.broker.start()
        assert one.broker.refusal is None, one.broker.refusal
        await one.check(WITH_RECORDS)
        for tp in WITH_RECORDS:
            assert await one.produce(tp, padding=50) in {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        await asyncio.sleep(random.choice((0.0, 3.0)))
        assert not one.said("is offline"), one.said("is offline")
        if random.random() < 0.3:
            await one.broker.stop()
        elif random.random() < 0.5:
            one.broker.lose_power()
        else:
            one.broker.kill()
        one.client.close()
    await one.broker.start()
    assert one.broker.refusal is None, one.broker.refusal
    one.disk.crash_at(random.randint(1, 40))
    one.give_space()
    await asyncio.sleep(4.0)
    one.disk.crash_at(0)
    if one.disk.is_down or not one.broker.serving.is_set():
        one.client.close()
        await one.broker.started()
    await writes_go_on(one)
    await one.restart()
    await writes_go_on_after_a_restart(one)
