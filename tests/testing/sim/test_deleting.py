"""Topics that are deleted and created again while their records are on the way to the disk."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.testing.sim.reader import read_all
from ottla.testing.sim.wire import Unreachable

STAYS = TopicPartition("stays", 0)


def test_a_flush_of_a_deleted_log_says_nothing_about_the_next_one_of_its_name() -> None:
    for seed in range(25):
        with OneBroker(seed, {"log.segment.delete.delay.ms": "0"}) as one:
            one.run(_again_and_again(one))


async def _again_and_again(one: OneBroker) -> None:
    await one.broker.started()
    one.broker.ports.workers.latency_ms = (0.0, 40.0)
    assert await one.create("stays") == ErrorCode.NONE
    senders: list[asyncio.Task[None]] = []
    for _ in range(8):
        assert await one.create("t") == ErrorCode.NONE
        senders += [asyncio.create_task(_send(one, f"sender-{len(senders)}")) for _ in range(2)]
        await asyncio.sleep(one.simulation.random.uniform(0.0, 0.06))
        await one.must_produce(STAYS)
        await _delete(one, "t")
    await asyncio.gather(*senders)
    assert await one.create("t") == ErrorCode.NONE
    await one.must_produce(TP, batches=3)
    assert not one.said("is offline"), one.said("is offline")
    assert len(await read_all(one.client, TP)) == 3
    await one.check([STAYS])
    await one.restart()
    assert len(await read_all(one.client, TP)) == 3
    await one.check([STAYS])


async def _send(one: OneBroker, name: str) -> None:
    sender = one.new_client(name)
    with suppress(Unreachable):
        for _ in range(5):
            error = await one.produce(TP, client=sender)
            expected = {
                ErrorCode.NONE,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            assert error in expected, error.name


async def _delete(one: OneBroker, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
    answer = await one.client.ask(request, 6)
    assert answer.responses[0].error_code == ErrorCode.NONE


def test_a_topic_that_was_deleted_is_forgotten_by_the_checkpoints_before_its_files_go() -> None:
    """Or a topic of its name, registered and not made when the broker dies, would seem to have lost its log."""
    with OneBroker(3, {"replica.high.watermark.checkpoint.interval.ms": "100"}) as one:
        one.run(_forgotten(one))


async def _forgotten(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create("t") == ErrorCode.NONE
    await one.must_produce(TP, batches=3)
    path = "/data/a/replication-offset-checkpoint"
    for _ in range(100):
        if one.disk.exists(path) and b"t 0 3" in one.disk.read_file(path):
            break
        await asyncio.sleep(0.1)
    assert b"t 0 3" in one.disk.read_file(path)
    await _delete(one, "t")
    for _ in range(10_000):
        if not any(name.endswith("-delete") for name in one.disk.names("/data/a")):
            break
        await asyncio.sleep(0.0001)
    assert b"t 0" not in one.disk.read_file(path)
