"""The worlds that every port test runs in: this machine, this machine with portable means only, and memory."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ports.world import World

from ottla.ports.memory import memory_ports
from ottla.ports.real import new_event_loop, real_ports


@pytest.fixture(params=["real", "hosted", "portable", "memory", "memory-shuffled"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param.startswith("memory"):
        memory = memory_ports(seed=7, shuffle=request.param == "memory-shuffled")
        memory.network.fabric.chop = request.param == "memory-shuffled"
        memory.disk.make_directory("/data")
        made = World("memory", memory, "/data", memory.loop)
    else:
        ports = real_ports(portable=request.param == "portable")
        loop = new_event_loop() if request.param == "hosted" else asyncio.new_event_loop()
        made = World(request.param, ports, str(tmp_path), loop)
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
