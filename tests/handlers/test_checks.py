"""Checks take turns; who has waited for too long is told so in place of its turn."""

from __future__ import annotations

import asyncio

import pytest

from ottla.handlers.checks import WAIT_MS_MAX, CheckFailed, Checks
from ottla.ports.memory import memory_ports
from ottla.records.errors import CorruptBatch


def doubled(number: int) -> int:
    return 2 * number


def corrupt() -> int:
    raise CorruptBatch("as asked")


def test_turns_in_order_up_to_a_time() -> None:
    ports = memory_ports(seed=1)
    ports.workers.latency_ms = (12_000.0, 12_000.0)
    read: list[int] = []

    async def main() -> list[int | BaseException]:
        checks = Checks(ports.workers, ports.clock)

        def arguments(number: int) -> tuple[int]:
            read.append(number)
            return (number,)

        work = [checks.run(doubled, lambda number=number: arguments(number)) for number in range(6)]
        return await asyncio.gather(*work, return_exceptions=True)

    results = ports.loop.run_until_complete(main())
    assert WAIT_MS_MAX == 30_000
    assert results[:3] == [0, 2, 4]
    assert all(isinstance(result, CheckFailed) for result in results[3:])
    assert read == [0, 1, 2]


def test_who_is_cancelled_leaves_its_turn_to_others() -> None:
    ports = memory_ports(seed=1)
    ports.workers.latency_ms = (5.0, 5.0)

    async def main() -> None:
        checks = Checks(ports.workers, ports.clock)
        tasks = [asyncio.ensure_future(checks.run(doubled, lambda: (4,))) for _ in range(4)]
        await asyncio.sleep(0.001)
        tasks[0].cancel()
        tasks[2].cancel()
        assert [await tasks[1], await tasks[3]] == [8, 8]

    ports.loop.run_until_complete(main())


def test_what_is_wrong_with_a_batch_is_told_once() -> None:
    ports = memory_ports(seed=1)

    async def main() -> None:
        checks = Checks(ports.workers, ports.clock)
        with pytest.raises(CorruptBatch, match="as asked"):
            await checks.run(corrupt, tuple)
        assert await checks.run(doubled, lambda: (1,)) == 2

    ports.loop.run_until_complete(main())
