"""Time and randomness: what both worlds promise, and how the virtual clock is moved."""

from __future__ import annotations

import asyncio

import pytest
from tests.ports.world import World

from ottla.ports.memory.clock import WALL_START_MS, Timeline, VirtualClock
from ottla.ports.memory.entropy import SeededEntropy


def test_monotonic_time_passes_with_the_loop(world: World) -> None:
    async def main() -> tuple[int, int]:
        before = world.ports.clock.monotonic_ms()
        await asyncio.sleep(0.05)
        return before, world.ports.clock.monotonic_ms()

    before, after = world.run(main())
    assert after - before >= 49


def test_wall_time_is_of_this_century(world: World) -> None:
    assert 1_700_000_000_000 < world.ports.clock.wall_ms() < 4_102_444_800_000


def test_token_has_its_size_and_differs(world: World) -> None:
    assert len(world.ports.entropy.token(16)) == 16
    assert world.ports.entropy.token(16) != world.ports.entropy.token(16)
    assert world.ports.entropy.token(0) == b""


@pytest.mark.parametrize("bound", [1, 2, 3, 255, 256, 257, 1 << 40])
def test_below_stays_below(world: World, bound: int) -> None:
    drawn = [world.ports.entropy.below(bound) for _ in range(200)]
    assert all(0 <= number < bound for number in drawn)
    if bound <= 3:
        assert set(drawn) == set(range(bound))


def test_same_seed_same_randomness() -> None:
    first, second, other = SeededEntropy(1), SeededEntropy(1), SeededEntropy(2)
    assert first.token(8) == second.token(8) != other.token(8)
    assert [first.below(1000) for _ in range(9)] == [second.below(1000) for _ in range(9)]


def test_wall_clock_jumps_and_monotonic_does_not() -> None:
    timeline = Timeline()
    clock = VirtualClock(timeline)
    timeline.move_to(10.0)
    clock.jump(-3_600_000)
    assert clock.wall_ms() == WALL_START_MS + 10_000 - 3_600_000
    assert clock.monotonic_ms() == 10_000
    timeline.move_to(11.0)
    assert clock.wall_ms() == WALL_START_MS + 11_000 - 3_600_000


def test_drift_changes_the_rate_from_now_on() -> None:
    timeline = Timeline()
    clock = VirtualClock(timeline, wall_start_ms=0)
    timeline.move_to(100.0)
    clock.drift(0.01)
    assert clock.wall_ms() == 100_000
    timeline.move_to(200.0)
    assert clock.wall_ms() == 201_000
    clock.drift(0.0)
    timeline.move_to(201.0)
    assert clock.wall_ms() == 202_000


def test_a_timer_wakes_at_its_millisecond() -> None:
    timeline = Timeline()
    clock = VirtualClock(timeline)
    for milliseconds in range(1, 2000):
        timeline.move_to(milliseconds / 1000)
        assert clock.monotonic_ms() == milliseconds
