"""The contract of coordination, held by our client with a served tree: in a simulated world, and in a process."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from tests.coordination.contract import SCENARIOS, Scenario
from tests.coordination.served.simulated import SimulatedTree
from tests.coordination.zookeeper.sessions import RemoteProvider
from tests.searches import seeds
from tools.ottla_server import TreeProcess

from ottla.coordination.interface import Coordination
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all
from ottla.ports.real import real_ports

_bases = itertools.count()


class SimulatedProvider(RemoteProvider):
    def __init__(self, tree: SimulatedTree) -> None:
        super().__init__(tree.world.machine("client"), tree.connect)
        self.tree = tree

    async def expire(self, session: Coordination) -> None:
        self.tree.server._serving.life.end(session.session.id)


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_in_a_simulated_world(scenario: Scenario, seed: int) -> None:
    # That one says in which order calls begin: a shuffled loop begins them in another.
    world = World(seed, shuffle=scenario.__name__ != "calls_of_a_session_take_effect_in_order")
    world.fabric.latency(0.1, 5)
    world.fabric.chop = True
    tree = SimulatedTree(world)

    async def run() -> None:
        await tree.start()
        provider = SimulatedProvider(tree)
        await (await provider.session()).create("/contract")
        await scenario(provider, "/contract")
        await provider.close()
        tree.server.store._tree.check_invariants()
        await tree.server.stop()

    try:
        world.loop.run_until_complete(run())
    finally:
        cancel_all(world.loop)
        world.loop.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_with_a_real_process(scenario: Scenario, shared_process: TreeProcess) -> None:
    async def run() -> None:
        provider = RemoteProvider(real_ports(), shared_process.bootstrap, 60_000)
        base = f"/contract{next(_bases)}"
        await (await provider.session()).create(base)
        try:
            await scenario(provider, base)
        finally:
            await provider.close()

    asyncio.run(run())
