"""The longest stall of the loop, by a clock of the test's."""

from __future__ import annotations

import asyncio
import time

import pytest

from ottla.broker.loop_stalls import LOOK_S, LoopStalls, register_loop_stalls
from ottla.metrics import Registry
from ottla.ports.memory import World


def test_what_holds_up_the_loop_is_measured() -> None:
    async def scenario() -> LoopStalls:
        stalls = LoopStalls()
        stalls.start()
        await asyncio.sleep(2 * LOOK_S)
        before = stalls.longest
        time.sleep(5 * LOOK_S)  # noqa: ASYNC251 - that is what holds up the loop
        await asyncio.sleep(2 * LOOK_S)
        stalls.stop()
        assert stalls.longest >= 3 * LOOK_S > 0
        assert stalls.total >= stalls.longest >= before
        return stalls

    asyncio.run(scenario())


def test_a_loop_that_runs_has_none_and_says_so() -> None:
    world = World(1)

    async def scenario() -> None:
        stalls, registry = LoopStalls(), Registry()
        register_loop_stalls(registry, stalls)
        stalls.start()
        await asyncio.sleep(100)
        assert stalls.longest == pytest.approx(0, abs=1e-6)
        stalls.stop()
        assert "ottla_loop_stall_seconds_max 0" in registry.render()

    world.loop.run_until_complete(scenario())
