"""A served tree whose process is killed and whose machine loses its power, while our client's sessions go on.

What was acknowledged is there; what was refused is not; what nobody knows of may be either. No session ends.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.coordination.served.simulated import SimulatedTree
from tests.coordination.zookeeper.sessions import RemoteProvider
from tests.searches import seeds

from ottla.coordination.errors import BadVersion, ConnectionLoss, MultiFailed
from ottla.coordination.interface import Check, Coordination, Create, SessionEvent
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all


class Writer:
    """One session's writes, and what became of each."""

    def __init__(self, session: Coordination, name: str, choice: random.Random) -> None:
        self.session = session
        self.name = name
        self.random = choice
        self.acknowledged: set[str] = set()
        self.unknown: set[str] = set()
        self.refused: set[str] = set()
        self.increments = 0
        self.increments_unknown = 0
        self.events: list[SessionEvent] = []
        session.listen(self.events.append)

    async def work(self, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        number = 0
        while loop.time() < until_s:
            number += 1
            kind = self.random.randrange(4)
            if kind == 0:
                await self._increment()
            elif kind == 1:
                await self._multi(f"/k/{self.name}-{number}")
            else:
                await self._create(f"/k/{self.name}-{number}")
            if self.random.random() < 0.3:
                await asyncio.sleep(self.random.random() * 0.05)

    async def _create(self, path: str) -> None:
        try:
            await self.session.create(path, ephemeral=self.random.random() < 0.3)
        except ConnectionLoss:
            self.unknown.add(path)
        else:
            self.acknowledged.add(path)

    async def _multi(self, path: str) -> None:
        fails = self.random.random() < 0.3
        ops = [Create(f"{path}-a"), Create(f"{path}-b"), Check("/nowhere" if fails else "/k")]
        both = {f"{path}-a", f"{path}-b"}
        try:
            await self.session.multi(ops)
        except ConnectionLoss:
            (self.refused if fails else self.unknown).update(both)
        except MultiFailed:
            assert fails
            self.refused |= both
        else:
            self.acknowledged |= both

    async def _increment(self) -> None:
        try:
            data, stat = await self.session.get("/counter")
            await self.session.set("/counter", b"%d" % (int(data) + 1), stat.version)
        except BadVersion:
            return
        except ConnectionLoss:
            self.increments_unknown += 1
        else:
            self.increments += 1


async def crashing(tree: SimulatedTree, choice: random.Random, until_s: float, how: tuple[str, ...]) -> int:
    times = 0
    while asyncio.get_running_loop().time() < until_s:
        await asyncio.sleep(choice.random() * 1.5)
        tree.ports.workers.latency_ms = (0, choice.choice((0, 2, 20)))
        await getattr(tree, choice.choice(how))()
        times += 1
    return times


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_nothing_acknowledged_is_lost_and_no_session_ends(seed: int) -> None:
    world = World(seed)
    world.fabric.latency(0.1, 4)
    world.fabric.chop = True
    choice = random.Random(seed)
    tree = SimulatedTree(world)

    async def run() -> None:
        await tree.start()
        provider = RemoteProvider(world.machine("client"), tree.connect)
        first = await provider.session()
        await first.create("/k")
        await first.create("/counter", b"0")
        writers = [Writer(await provider.session(), f"w{number}", choice) for number in range(4)]
        ends_s = asyncio.get_running_loop().time() + 10
        times, *_ = await asyncio.gather(
            crashing(tree, choice, ends_s, ("kill", "crash", "crash", "restart")),
            *(writer.work(ends_s) for writer in writers),
        )
        assert times > 5
        await first.sync("/")
        there = {f"/k/{name}" for name in (await first.children("/k"))[0]}
        for writer in writers:
            assert SessionEvent.EXPIRED not in writer.events
            assert writer.acknowledged <= there
            assert not writer.refused & there
            assert len(writer.acknowledged) > 20
        data, stat = await first.get("/counter")
        certain = sum(writer.increments for writer in writers)
        assert certain <= int(data) <= certain + sum(writer.increments_unknown for writer in writers)
        assert stat.version == int(data)
        known = set().union(*(writer.acknowledged | writer.unknown for writer in writers))
        assert there <= known
        tree.server.store._tree.check_invariants()
        await provider.close()
        # A session whose connection was just lost could not be closed, and has its time-out.
        await asyncio.sleep(8)
        assert len(tree.server.store._tree.sessions) == 0

    try:
        world.loop.run_until_complete(run())
    finally:
        cancel_all(world.loop)
        world.loop.close()
