"""Turns by connection: random comings and goings beside what must hold, and the boundaries."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.handlers.calls.fair_turns import EMPTY_LINES_MAX, HALF_MS, FairTurns, TurnOverdue, _give_up
from ottla.ports.memory import memory_ports

FAR = 10**9


@pytest.mark.parametrize("seed", range(10))
def test_one_at_a_time_and_nobody_is_forgotten(seed: int) -> None:
    ports, rng = memory_ports(seed=seed), Random(seed)
    turns = FairTurns(ports.clock)
    inside = served = overdue = 0

    async def one(owner: int) -> None:
        nonlocal inside, served, overdue
        await asyncio.sleep(rng.random())
        deadline_ms = ports.clock.monotonic_ms() + rng.choice([FAR, FAR, 50])
        try:
            turn = await turns.take(owner, deadline_ms)
        except TurnOverdue:
            overdue += 1
            return
        assert inside == 0
        inside += 1
        try:
            await asyncio.sleep(rng.choice([0.0, 0.001, 0.02]))
        finally:
            inside -= 1
            served += 1
            turn.end()

    async def main() -> int:
        tasks = [asyncio.ensure_future(one(rng.randrange(5))) for _ in range(100)]
        await asyncio.sleep(0.5)
        gone = [task for task in tasks if rng.random() < 0.2 and task.cancel()]
        await asyncio.gather(*tasks, return_exceptions=True)
        turn = await turns.take("the last", 0)  # nobody has it, so that it need not wait
        turn.end()
        return len(gone)

    cancelled = ports.loop.run_until_complete(main())
    assert served + overdue <= 100 <= served + overdue + cancelled
    assert served > 30
    assert len(turns) == 0


@pytest.mark.parametrize("ends_first", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_turn_ends_in_the_moment_in_which_the_next_one_gives_up(ends_first: bool, late: bool) -> None:
    ports = memory_ports(seed=1)
    turns = FairTurns(ports.clock)

    async def main() -> None:
        turn = await turns.take("first", FAR)
        gone = asyncio.ensure_future(turns.take("gone", FAR))
        here = asyncio.ensure_future(turns.take("here", FAR))
        await asyncio.sleep(0.01)
        assert len(turns) == 2
        _, place = turns._standing["gone"].waiting[0]

        def gives_up() -> None:
            if late:
                _give_up(place)
            else:
                gone.cancel()

        first, second = (turn.end, gives_up) if ends_first else (gives_up, turn.end)
        first()
        second()
        if late and ends_first:
            (await gone).end()  # it came in time
        else:
            with pytest.raises((asyncio.CancelledError, TurnOverdue)):
                await gone
        (await asyncio.wait_for(here, 5)).end()
        assert len(turns) == 0

    ports.loop.run_until_complete(main())


def test_what_was_used_counts_and_is_forgotten() -> None:
    ports = memory_ports(seed=1)
    turns = FairTurns(ports.clock)
    order: list[str] = []

    async def one(owner: str) -> None:
        turn = await turns.take(owner, FAR)
        order.append(owner)
        await asyncio.sleep(0.01)
        turn.end()

    async def both() -> list[str]:
        order.clear()
        await asyncio.gather(*(one(owner) for owner in ["busy"] * 6 + ["idle"] * 6))
        return order

    async def main() -> None:
        for _ in range(100):
            await one("busy")
        # The first comes while nobody else is there.
        assert await both() == ["busy"] + ["idle"] * 6 + ["busy"] * 5
        await asyncio.sleep(100 * HALF_MS / 1000)
        # Nothing of it is left: both have their turns in between.
        assert "idle" in (await both())[:4]
        assert "busy" in order[-4:]

    ports.loop.run_until_complete(main())


def test_empty_lines_have_a_bound() -> None:
    ports = memory_ports(seed=1)
    turns = FairTurns(ports.clock)

    async def main() -> None:
        for owner in range(EMPTY_LINES_MAX + 500):
            (await turns.take(owner, FAR)).end()

    ports.loop.run_until_complete(main())
    assert len(turns._empty) == EMPTY_LINES_MAX
