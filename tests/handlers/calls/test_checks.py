"""Checks take turns by connection; who has waited for too long is told so in place of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ottla.handlers.calls.checks import QUICK, WAIT_MS_MAX, CheckFailed, Checks
from ottla.ports.memory import MemoryPorts, memory_ports
from ottla.records.errors import CorruptBatch
from ottla.records.walk import WalkAllowance, WalkTooLong


def doubled(number: int, within: WalkAllowance | None) -> int:
    return 2 * number


def corrupt(within: WalkAllowance | None) -> int:
    raise CorruptBatch("as asked")


def long(number: int, within: WalkAllowance | None) -> int:
    """Work with much in it: the first process finds out, the second does it."""
    if within is not None:
        assert within == QUICK
        raise WalkTooLong
    return -number


def answers(number: int, asked: list[int]) -> Callable[[], tuple[int]]:
    def arguments() -> tuple[int]:
        asked.append(number)
        return (number,)

    return arguments


async def begun(ports: MemoryPorts, latency_ms: float) -> Checks:
    """Both processes run, and each piece of work takes so long from now on."""
    checks = Checks(ports.workers, ports.clock)
    assert await checks.run("the first", long, lambda: (1,)) == -1
    ports.workers.latency_ms = (latency_ms, latency_ms)
    return checks


def test_turns_in_order_up_to_a_time() -> None:
    ports = memory_ports(seed=1)
    read: list[int] = []

    async def main() -> list[int | BaseException]:
        checks = await begun(ports, 12_000.0)
        work = [checks.run("c", doubled, answers(number, read)) for number in range(6)]
        return await asyncio.gather(*work, return_exceptions=True)

    results = ports.loop.run_until_complete(main())
    assert WAIT_MS_MAX == 30_000
    assert results[:3] == [0, 2, 4]
    assert all(isinstance(result, CheckFailed) for result in results[3:])
    assert read == [0, 1, 2]


def test_who_has_used_little_does_not_stand_behind_those_who_used_much() -> None:
    """Sixteen connections have five bombs each on their way; each that comes for once gets the next turn but one."""
    ports = memory_ports(seed=1)

    async def main() -> None:
        checks = await begun(ports, 100.0)
        read: list[int] = []
        bombs = [
            asyncio.ensure_future(checks.run(f"bomber {n % 16}", doubled, answers(n, read))) for n in range(5 * 16)
        ]
        await asyncio.sleep(1.65)
        assert len(read) == 17  # each has had one turn
        for honest in range(1000, 1010):
            before = len(read)
            assert await checks.run(f"honest {honest}", doubled, answers(honest, read)) == 2 * honest
            assert len(read) - before <= 2  # the one that is on, and its own
        assert sorted(await asyncio.gather(*bombs)) == [2 * n for n in range(5 * 16)]

    ports.loop.run_until_complete(main())


def test_what_takes_long_is_waited_for_by_its_like_only() -> None:
    ports = memory_ports(seed=1)

    async def main() -> None:
        checks = await begun(ports, 0.0)
        bombs = [asyncio.ensure_future(checks.run(n, long, lambda n=n: (n,))) for n in range(3)]  # type: ignore[misc]
        await asyncio.sleep(0.001)
        assert await checks.run("honest", doubled, lambda: (21,)) == 42
        assert await asyncio.gather(*bombs) == [0, -1, -2]

    ports.loop.run_until_complete(main())


def test_who_is_cancelled_leaves_its_turn_to_others() -> None:
    ports = memory_ports(seed=1)

    async def main() -> None:
        checks = await begun(ports, 5.0)
        tasks = [asyncio.ensure_future(checks.run(n % 2, doubled, lambda: (4,))) for n in range(6)]
        await asyncio.sleep(0.001)
        for number in (0, 2, 5):
            tasks[number].cancel()
        assert [await tasks[number] for number in (1, 3, 4)] == [8, 8, 8]

    ports.loop.run_until_complete(main())


def test_work_that_nobody_waits_for_ends_before_the_next_turn() -> None:
    """It cannot be stopped: its turn lasts as long as it does, and its connection has used it."""
    ports = memory_ports(seed=1)

    async def main() -> None:
        checks = await begun(ports, 50.0)
        read: list[int] = []
        first = asyncio.ensure_future(checks.run("gone", doubled, answers(1, read)))
        second = asyncio.ensure_future(checks.run("here", doubled, answers(2, read)))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.02)
        assert read == [1]
        assert await second == 4

    ports.loop.run_until_complete(main())


def test_what_is_wrong_with_a_batch_is_told_once() -> None:
    ports = memory_ports(seed=1)

    async def main() -> None:
        checks = await begun(ports, 0.0)
        with pytest.raises(CorruptBatch, match="as asked"):
            await checks.run("c", corrupt, tuple)
        assert await checks.run("c", doubled, lambda: (1,)) == 2

    ports.loop.run_until_complete(main())
