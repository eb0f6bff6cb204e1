"""The contract of coordination, held by our client in a simulated network, under several orders of events."""

from __future__ import annotations

import pytest
from tests.coordination.contract import SCENARIOS, Scenario
from tests.coordination.zookeeper.sessions import RemoteProvider
from tests.coordination.zookeeper.small_server import SmallEnsemble
from tests.searches import seeds

from ottla.coordination.interface import Coordination
from ottla.coordination.zookeeper.client import RemoteTree
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all


class SimulatedProvider(RemoteProvider):
    def __init__(self, world: World, chroot: str = "") -> None:
        self.ensemble = SmallEnsemble(world)
        super().__init__(world.machine("client"), self.ensemble.connect + chroot)

    async def expire(self, session: Coordination) -> None:
        assert isinstance(session, RemoteTree)
        self.ensemble.expire(session.session.id)


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_contract(scenario: Scenario, seed: int) -> None:
    # That one says in which order calls begin: a shuffled loop begins them in another.
    world = World(seed, shuffle=scenario.__name__ != "calls_of_a_session_take_effect_in_order")
    world.fabric.latency(0.1, 5)
    world.fabric.chop = True

    async def run() -> None:
        provider = SimulatedProvider(world, chroot="/a/chroot" if seed % 2 else "")
        await (await provider.session()).create("/contract")
        await scenario(provider, "/contract")
        await provider.close()
        provider.ensemble.tree.check_invariants()

    try:
        world.loop.run_until_complete(run())
    finally:
        cancel_all(world.loop)
        world.loop.close()
