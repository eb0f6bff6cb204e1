"""The contract of coordination, held by the local provider on a real disk and on one in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.coordination.contract import SCENARIOS, Events, Scenario
from tests.searches import seeds

from ottla.coordination import Coordination
from ottla.coordination.local import LocalSession
from ottla.coordination.store import TreeStore
from ottla.ports import Ports
from ottla.ports.memory import World, memory_ports
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


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_a_watch_is_called_before_what_changed_is_read_in_any_order_of_the_loop(seed: int) -> None:
    ports = World(seed).machine("one")
    provider = LocalProvider(ports, "/coordination")

    async def run() -> None:
        await provider.store.open()
        reading, writing = await provider.session(), await provider.session()
        await reading.create("/a", b"0")
        events = Events()

        async def read() -> bytes:
            data, _ = await reading.get("/a", events)
            assert bool(events) == (data == b"1")
            return data

        assert await read() == b"0"
        changing = asyncio.ensure_future(writing.set("/a", b"1"))
        while b"1" not in await asyncio.gather(read(), read()):
            await reading.exists("/a")
        await changing
        await provider.store.close()

    try:
        ports.loop.run_until_complete(run())
    finally:
        cancel_all(ports.loop)
        ports.loop.close()


def test_a_watch_that_raises_keeps_nothing_from_the_others() -> None:
    ports = memory_ports(1)
    provider = LocalProvider(ports, "/coordination")
    faults: list[dict[str, Any]] = []
    ports.loop.set_exception_handler(lambda _, context: faults.append(context))

    def failing(_: object) -> None:
        raise ValueError("a fault of the caller")

    async def run() -> None:
        await provider.store.open()
        session, events = await provider.session(), Events()
        await session.exists("/a", failing)
        await session.exists("/a", events)
        await session.create("/a")
        assert len(events) == 1
        assert isinstance(faults[0]["exception"], ValueError)
        await provider.store.close()

    ports.loop.run_until_complete(run())
    ports.loop.close()
