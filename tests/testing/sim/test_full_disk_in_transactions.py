"""A disk without room in the middle of a transaction: none is half there in the end, and none hangs for ever."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from tests.testing.sim.one_broker import OneBroker

from ottla.model import TRANSACTION_TOPIC, ErrorCode, TopicPartition
from ottla.testing.sim.reader import ReadFault, fetch_committed, read_all_committed
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.transaction_history import TransactionHistory
from ottla.testing.sim.transactional import TransactionalClient, TransactionLost
from ottla.testing.sim.wire import Unreachable

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
GENERATIONS = pytest.mark.parametrize("newer", [False, True], ids=["one epoch", "an epoch a transaction"])
OUTCOMES = pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
TIMEOUT_MS = 60_000
#: Virtual ones: a marker is tried again ten times in each.
LONG_S = 5.0


class Scene(OneBroker):
    def __init__(self, *, newer: bool) -> None:
        super().__init__(1, PROPERTIES)
        network = self.simulation.world.machine("clients").network
        self.routes = ClusterClient(network, "writer", [self.broker.address], Random(1))
        self.seen = TransactionHistory(self.simulation.trace)
        clock = self.simulation.world.machine("clients").clock
        self.writer = TransactionalClient(
            self.routes, clock, self.seen, Random(2), newer=newer, timeout_ms=TIMEOUT_MS, commit_seen=lambda _: None
        )

    async def begin(self) -> None:
        await self.broker.started()
        assert await self.create(partitions=2) == ErrorCode.NONE
        await self.writer.init()
        self.writer.begin("first")

    def fill(self, tp: TopicPartition) -> None:
        """Its log alone has no room."""
        self.disk.fail("append", f"*/{tp.topic}-{tp.partition}/*.log", errno.ENOSPC)

    def free(self) -> None:
        self.disk.stop_failing()

    async def shown(self, tp: TopicPartition) -> list[bytes]:
        """Of a client that may have to find out first that the broker has another life."""
        while True:
            try:
                return [value for _, value in (await fetch_committed(self.routes, tp, 0)).rows]
            except (ReadFault, Unreachable):
                await asyncio.sleep(0.1)

    async def in_the_end(self) -> dict[TopicPartition, list[bytes]]:
        """What is committed once nothing is open, compared with what the writer knows."""
        found = {}
        async with asyncio.timeout(LONG_S):
            for tp in (HERE, THERE):
                while await self.is_open(tp):  # noqa: ASYNC110 - nobody tells it
                    await asyncio.sleep(0.05)
                found[tp] = await read_all_committed(self.routes, tp)
        self.seen.check(found)
        return {tp: [value for _, value in rows] for tp, rows in found.items()}

    async def is_open(self, tp: TopicPartition) -> bool:
        """Whether there is anything that readers have to wait for."""
        offset = 0
        while (found := await fetch_committed(self.routes, tp, offset)).next_offset > offset:
            offset = found.next_offset
        return offset < found.high_watermark


def play(scenario: Callable[[Scene], Coroutine[Any, Any, None]], *, newer: bool) -> None:
    with Scene(newer=newer) as scene:
        scene.run(scenario(scene))


@GENERATIONS
@OUTCOMES
def test_no_room_for_the_marker_of_one_partition(newer: bool, commits: bool) -> None:
    """It is decided: the other partition shows it, or leaves it out, and this one as soon as there is room."""

    async def scenario(scene: Scene) -> None:
        await scene.begin()
        await scene.writer.write(HERE, [b"a"])
        await scene.writer.write(THERE, [b"b"])
        scene.fill(THERE)
        await scene.writer.end(commits=commits)
        await asyncio.sleep(LONG_S)
        assert await scene.shown(HERE) == ([b"a"] if commits else [])
        assert await scene.shown(THERE) == []
        assert not scene.said("is offline")
        scene.free()
        assert await scene.in_the_end() == ({HERE: [b"a"], THERE: [b"b"]} if commits else {HERE: [], THERE: []})
        scene.writer.begin("second")
        await scene.writer.write(THERE, [b"c"])
        await scene.writer.end(commits=True)
        assert (await scene.in_the_end())[THERE][-1] == b"c"

    play(scenario, newer=newer)


@GENERATIONS
def test_the_broker_dies_while_a_marker_finds_no_room(newer: bool) -> None:
    """Whoever leads the coordinator's partition next finds the decision there."""

    async def scenario(scene: Scene) -> None:
        await scene.begin()
        await scene.writer.write(HERE, [b"a"])
        await scene.writer.write(THERE, [b"b"])
        scene.fill(THERE)
        await scene.writer.end(commits=True)
        await asyncio.sleep(1.0)
        await scene.restart(power=False)
        await asyncio.sleep(LONG_S)
        assert await scene.shown(THERE) == []
        scene.free()
        assert await scene.in_the_end() == {HERE: [b"a"], THERE: [b"b"]}

    play(scenario, newer=newer)


@GENERATIONS
def test_no_room_for_a_record_of_one_partition(newer: bool) -> None:
    """Its producer gives up, and what it has written elsewhere goes with that."""

    async def scenario(scene: Scene) -> None:
        await scene.begin()
        await scene.writer.write(HERE, [b"a"])
        scene.fill(THERE)
        with pytest.raises(TransactionLost):
            await scene.writer.write(THERE, [b"b"])
        scene.writer.die()
        assert await scene.shown(HERE) == []
        scene.free()
        await scene.writer.init()
        assert await scene.in_the_end() == {HERE: [], THERE: []}

    play(scenario, newer=newer)


@GENERATIONS
@OUTCOMES
def test_no_room_for_the_decision(newer: bool, commits: bool) -> None:
    """It is asked for again and again, and holds once it is written."""

    async def scenario(scene: Scene) -> None:
        await scene.begin()
        await scene.writer.write(HERE, [b"a"])
        scene.fill(TopicPartition(TRANSACTION_TOPIC, 0))
        ending = asyncio.ensure_future(scene.writer.end(commits=commits))
        await asyncio.sleep(LONG_S)
        assert not ending.done()
        assert await scene.shown(HERE) == []
        scene.free()
        await ending
        assert (await scene.in_the_end())[HERE] == ([b"a"] if commits else [])

    play(scenario, newer=newer)
