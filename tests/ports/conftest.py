"""The worlds that every port test runs in: this machine, this machine with portable means only, and memory."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ottla.ports import Ports
from ottla.ports.memory import memory_ports
from ottla.ports.memory.loop import cancel_all
from ottla.ports.real import real_ports

T = TypeVar("T")

#: Far more than anything here takes; only a test that hangs gets there.
PATIENCE_SECONDS = 30


class World:
    """One set of ports, a folder on its disk, and the loop that its coroutines run on."""

    def __init__(self, kind: str, ports: Ports, folder: str, loop: asyncio.AbstractEventLoop) -> None:
        self.kind = kind
        self.ports = ports
        self.folder = folder
        self.loop = loop
        #: What the loop was told of: tests that expect it take it out.
        self.complaints: list[BaseException | None] = []
        loop.set_exception_handler(lambda _, context: self.complaints.append(context.get("exception")))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE_SECONDS))

    def close(self) -> None:
        self.ports.network.close()
        self.ports.workers.close()
        cancel_all(self.loop)
        self.loop.close()
        assert self.complaints == []


async def until(condition: Callable[[], object]) -> None:
    """Waits for what must come about."""
    while not condition():
        await asyncio.sleep(0.001)


@pytest.fixture(params=["real", "portable", "memory", "memory-shuffled"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param.startswith("memory"):
        memory = memory_ports(seed=7, shuffle=request.param == "memory-shuffled")
        memory.network.fabric.chop = request.param == "memory-shuffled"
        memory.disk.make_directory("/data")
        made = World("memory", memory, "/data", memory.loop)
    else:
        ports = real_ports(portable=request.param == "portable")
        made = World(request.param, ports, str(tmp_path), asyncio.new_event_loop())
    yield made
    made.close()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
