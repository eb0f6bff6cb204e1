"""Answers come in the order of requests, and a notification before anything that shows the change."""

from __future__ import annotations

import asyncio

import pytest
from tests.coordination.served.simulated import SimulatedClient, SimulatedTree
from tests.searches import seeds

from ottla.coordination.interface import Stat
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import (
    OPEN_TO_ALL,
    CheckRequest,
    ChildrenAnswer,
    CreateRequest,
    DataAnswer,
    MultiOp,
    MultiRequest,
    NodeEvent,
    NodeRequest,
    PathRequest,
    SetDataRequest,
    SetWatchesRequest,
)
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all

PATH = "/watched"


def check_watcher(client: SimulatedClient, watching: set[int]) -> int:
    """That no answer shows a change whose notification had not come; returns how many notifications came."""
    armed: int | None = None  # the transaction that the node was at when the watch was left
    fired = 0
    for frame in client.frames:
        if isinstance(frame, NodeEvent):
            assert armed is not None, "a notification that nobody waited for"
            armed = None
            fired += 1
            continue
        header, fields = frame
        if header.xid == -2:
            continue
        if isinstance(fields, DataAnswer):
            if armed is not None:
                assert fields.stat.mzxid == armed, "a change was shown before its notification"
            if header.xid in watching:
                armed = fields.stat.mzxid
    return fired


@pytest.mark.parametrize("seed", seeds(6, 20))
def test_a_notification_comes_before_what_shows_the_change(seed: int) -> None:
    world = World(seed)
    world.fabric.latency(0, 3)
    world.fabric.chop = True
    tree = SimulatedTree(world)

    async def run() -> None:
        await tree.start()
        tree.ports.workers.latency_ms = (0, 5)
        writer = await SimulatedClient.greeted(tree)
        await writer.call(OpCode.CREATE, CreateRequest(PATH, b""))
        watchers = [await SimulatedClient.greeted(tree, machine=f"watcher{each}") for each in range(4)]

        async def write() -> None:
            for number in range(60):
                writer.send(OpCode.SET_DATA, SetDataRequest(PATH, b"%d" % number, -1))
                if number % 7 == 0:
                    await asyncio.sleep(0.003)

        async def watch(client: SimulatedClient) -> set[int]:
            watching = set()
            for number in range(120):
                # Each third read leaves a watch; the others would show what it waits for.
                xid = client.send(OpCode.GET_DATA, NodeRequest(PATH, watch=number % 3 == 0))
                if number % 3 == 0:
                    watching.add(xid)
                if number % 5 == 0:
                    client.send(OpCode.PING, xid=-2)
                if number % 11 == 0:
                    await asyncio.sleep(0.002)
            return watching

        _, *left = await asyncio.gather(write(), *map(watch, watchers))
        for client in (writer, *watchers):
            await client.call(OpCode.SYNC, PathRequest("/"))
            xids = [each[0].xid for each in client.frames if not isinstance(each, NodeEvent) and each[0].xid > 0]
            assert xids == list(range(1, len(xids) + 1))
            zxids = [each[0].zxid for each in client.frames if not isinstance(each, NodeEvent) and each[0].xid > 0]
            assert zxids == sorted(zxids)
        fired = sum(check_watcher(client, watching) for client, watching in zip(watchers, left, strict=True))
        assert fired > 10

    try:
        world.loop.run_until_complete(run())
    finally:
        cancel_all(world.loop)
        world.loop.close()


def test_the_answer_to_a_write_knows_of_no_later_one(simulated: SimulatedTree) -> None:
    """Or a client that lost its connection behind it would say that it had seen what it was never notified of."""

    async def run() -> None:
        await simulated.start()
        client, other = await SimulatedClient.greeted(simulated), await SimulatedClient.greeted(simulated)
        await client.call(OpCode.CREATE, CreateRequest(PATH, b""))
        simulated.ports.workers.latency_ms = (10, 10)
        # These come together, and are one write of the disk.
        for number in range(10):
            client.send(OpCode.SET_DATA, SetDataRequest(PATH, b"%d" % number, -1))
            other.send(OpCode.SET_DATA, SetDataRequest(PATH, b"%d" % number, -1))
        await client.call(OpCode.SYNC, PathRequest("/"))
        await other.call(OpCode.SYNC, PathRequest("/"))
        written = [each for each in (*client.frames, *other.frames) if isinstance(each[1], Stat)]
        assert len(written) == 20
        assert all(header.zxid == stat.mzxid for header, stat in written)

    simulated.run(run())


def test_pipelined_requests_are_all_answered_in_their_order(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        simulated.ports.workers.latency_ms = (1, 1)
        client = await SimulatedClient.greeted(simulated)
        asked = []
        for number in range(5_000):
            if number % 3:
                asked.append(client.send(OpCode.EXISTS, NodeRequest("/", watch=False)))
            else:
                asked.append(client.send(OpCode.CREATE, CreateRequest("/s-", b"", OPEN_TO_ALL, 2)))
            if number % 500 == 0:
                client.send(OpCode.PING, xid=-2)
        await client.until(lambda: len(client.frames) == 5_010, 60)
        assert [each[0].xid for each in client.frames if each[0].xid != -2] == asked
        assert all(each[0].error == 0 for each in client.frames)

    simulated.run(run())


def test_answers_that_are_made_in_steps_keep_their_place(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        await client.call(OpCode.CREATE, CreateRequest("/p", b""))
        ops = [MultiOp(OpCode.CREATE, CreateRequest(f"/p/child-{number:06d}", b"")) for number in range(3_000)]
        many = client.send(OpCode.MULTI, MultiRequest(ops))
        names = client.send(OpCode.GET_CHILDREN, NodeRequest("/p", watch=True))
        named = client.send(OpCode.GET_CHILDREN2, NodeRequest("/p", watch=True))
        more = client.send(OpCode.CREATE, CreateRequest("/p/last", b""))
        after = client.send(OpCode.EXISTS, NodeRequest("/p", watch=False))
        await client.until(lambda: client.answer(after) is not None)
        order = ["event" if isinstance(each, NodeEvent) else each[0].xid for each in client.frames[1:]]
        assert order == [many, names, named, "event", more, after]
        found = client.answer(names)[1]
        assert isinstance(found, ChildrenAnswer)
        assert sorted(found.names) == [f"child-{number:06d}" for number in range(3_000)]
        assert sorted(client.answer(named)[1].names) == sorted(found.names)
        assert client.answer(named)[1].stat.num_children == 3_000
        results = client.answer(many)[1].results
        assert [each.result.path for each in results] == [f"/p/child-{number:06d}" for number in range(3_000)]

    simulated.run(run())


def test_others_are_served_in_the_midst_of_long_requests(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client, other = await SimulatedClient.greeted(simulated, 60_000), await SimulatedClient.greeted(simulated)
        pinged = asyncio.get_running_loop().create_task(pings(other))
        for ops in (
            [MultiOp(OpCode.CREATE, CreateRequest(f"/{number:05d}", b"", OPEN_TO_ALL, 1)) for number in range(9_000)],
            [MultiOp(OpCode.CHECK, CheckRequest(f"/{number:05d}", 0)) for number in range(9_000)],
            [MultiOp(OpCode.CHECK, CheckRequest(f"/{number:05d}", number // 8_000)) for number in range(9_000)],
        ):
            turns, before = simulated.world.loop.turns, len(other.frames)
            await client.call(OpCode.MULTI, MultiRequest(ops))
            # The clock of this world stands still: it is the number of steps that ends a turn.
            assert simulated.world.loop.turns - turns > 20
            assert len(other.frames) - before > 10
        turns, before = simulated.world.loop.turns, len(other.frames)
        await client.call(OpCode.GET_CHILDREN, NodeRequest("/", watch=False))
        assert len(other.frames) > before
        turns, before = simulated.world.loop.turns, len(other.frames)
        await client.call(OpCode.CLOSE_SESSION)
        assert len(other.frames) - before > 3
        assert len((await other.call(OpCode.GET_CHILDREN, NodeRequest("/", watch=False))).names) == 0
        pinged.cancel()

    simulated.run(run())


async def pings(client: SimulatedClient) -> None:
    while True:
        count = len(client.frames) + 1
        client.send(OpCode.PING, xid=-2)
        await client.until(lambda: len(client.frames) >= count)  # noqa: B023


def test_a_ping_in_the_midst_of_notifications_knows_of_no_more_than_was_notified(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        writer, watcher = await SimulatedClient.greeted(simulated, 60_000), await SimulatedClient.greeted(simulated)
        paths = [f"/{number:05d}" for number in range(9_000)]
        await watcher.call(OpCode.SET_WATCHES, SetWatchesRequest(0, [], paths, []))
        pinged = asyncio.get_running_loop().create_task(pings(watcher))
        results = await writer.call(
            OpCode.MULTI, MultiRequest([MultiOp(OpCode.CREATE2, CreateRequest(path, b"")) for path in paths])
        )
        written = results.results[0].result.stat.czxid
        await watcher.until(lambda: len(watcher.events) == 9_000 and watcher.frames[-1][0] == (-2, written, 0))
        pinged.cancel()
        notified = 0
        between = 0
        for frame in watcher.frames:
            if isinstance(frame, NodeEvent):
                notified += 1
            elif frame[0].xid == -2:
                assert frame[0].zxid < written or notified == 9_000
                between += 0 < notified < 9_000
        assert between > 3

    simulated.run(run())
