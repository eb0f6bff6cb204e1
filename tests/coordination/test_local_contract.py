"""The contract of coordination, held by the local provider on a real disk and on one in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.coordination.contract import SCENARIOS, Scenario

from ottla.coordination import Coordination
from ottla.coordination.local import LocalSession
from ottla.coordination.store import TreeStore
from ottla.ports import Ports
from ottla.ports.memory import memory_ports
from ottla.ports.memory.loop import cancel_all
from ottla.ports.real.clock import RealClock
from ottla.ports.real.disk import RealDisk
from ottla.ports.real.entropy import RealEntropy
from ottla.ports.real.network import RealNetwork
from ottla.ports.real.workers import RealWorkers


class LocalProvider:
    def __init__(self, ports: Ports, directory: str) -> None:
        self.store = TreeStore(ports.disk, ports.workers, ports.clock, ports.entropy, directory)

    async def session(self) -> Coordination:
        return LocalSession(self.store, await self.store.sessions.open(6000))

    async def expire(self, session: Coordination) -> None:
        assert isinstance(session, LocalSession)
        await session.expire()


@pytest.fixture(params=["real", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[asyncio.AbstractEventLoop, Ports, str]]:
    if request.param == "memory":
        memory = memory_ports(7)
        yield memory.loop, memory, "/coordination"
        cancel_all(memory.loop)
        memory.loop.close()
        return
    loop = asyncio.new_event_loop()
    workers = RealWorkers()
    ports = Ports(clock=RealClock(), disk=RealDisk(), network=RealNetwork(), entropy=RealEntropy(), workers=workers)
    yield loop, ports, str(tmp_path / "coordination")
    workers.close()
    loop.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_contract(scenario: Scenario, world: tuple[asyncio.AbstractEventLoop, Ports, str]) -> None:
    loop, ports, directory = world

    async def run() -> None:
        provider = LocalProvider(ports, directory)
        await provider.store.open()
        await (await provider.session()).create("/contract")
        await scenario(provider, "/contract")
        await provider.store.close()

    loop.run_until_complete(run())
