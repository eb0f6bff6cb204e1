"""The loop in virtual time."""

from __future__ import annotations

import asyncio
import time

import pytest

from ottla.ports.memory import DeadlockError, SimulatedCrash, StandstillError, VirtualLoop, memory_ports
from ottla.ports.memory.loop import cancel_all

YEAR_SECONDS = 365 * 86_400


def run(main: object, seed: int | None = None) -> object:
    loop = VirtualLoop(seed=seed)
    try:
        return loop.run_until_complete(main)  # type: ignore[arg-type]
    finally:
        try:
            cancel_all(loop)
        finally:
            loop.close()


def test_a_year_is_slept_at_once() -> None:
    async def main() -> float:
        await asyncio.sleep(YEAR_SECONDS)
        return asyncio.get_running_loop().time()

    before = time.monotonic()
    assert run(main()) == YEAR_SECONDS
    assert time.monotonic() - before < YEAR_SECONDS / 1000


def test_timers_run_at_their_times_and_in_their_order() -> None:
    seen: list[tuple[float, str]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def note(name: str) -> None:
            seen.append((loop.time(), name))

        for delay, name in ((3.0, "c"), (1.0, "a"), (2.0, "b"), (0.0, "now"), (-5.0, "past")):
            loop.call_later(delay, note, name)
        cancelled = loop.call_later(1.5, seen.append, (1.5, "cancelled"))
        cancelled.cancel()
        await asyncio.sleep(10)

    run(main())
    assert sorted(seen[:2]) == [(0.0, "now"), (0.0, "past")]
    assert seen[2:] == [(1.0, "a"), (2.0, "b"), (3.0, "c")]


def test_thousands_of_cancelled_timers_are_forgotten() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        for _ in range(5000):
            loop.call_later(1000, print).cancel()
            await asyncio.sleep(0)
        return len(loop._scheduled)  # type: ignore[attr-defined]

    assert run(main()) < 200  # type: ignore[operator]


def test_waiting_for_nothing_is_a_deadlock_that_names_who_waits() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError, match=r"nothing is ready .*main"):
        run(main())


def test_time_that_stands_still_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.ports.memory.loop.STANDSTILL_TURNS_MAX", 1000)

    async def main() -> None:
        def again() -> None:
            asyncio.get_running_loop().call_soon(again)

        again()
        await asyncio.sleep(1)

    with pytest.raises(StandstillError):
        run(main())


def test_time_outs_and_events_work() -> None:
    async def main() -> list[object]:
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(5, event.set)
        await asyncio.wait_for(event.wait(), 10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(4)
        results = await asyncio.gather(*(asyncio.sleep(n, n) for n in (3, 1, 2)))
        return [asyncio.get_running_loop().time(), *results]

    assert run(main(), seed=1) == [11.0, 3, 1, 2]


async def order_of_tasks(count: int) -> list[int]:
    order: list[int] = []

    async def note(number: int) -> None:
        await asyncio.sleep(0)
        order.append(number)

    await asyncio.gather(*(note(number) for number in range(count)))
    return order


def test_without_a_seed_the_order_is_that_of_asyncio() -> None:
    assert run(order_of_tasks(20)) == list(range(20))


def test_a_seed_chooses_the_order_and_repeats_it() -> None:
    orders = [run(order_of_tasks(20), seed=seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(20))  # type: ignore[call-overload]


def test_crash_in_a_call_back_ends_the_run_and_it_can_go_on() -> None:
    loop = VirtualLoop()
    seen: list[str] = []

    def crash() -> None:
        raise SimulatedCrash

    async def main() -> None:
        loop.call_later(1, crash)
        loop.call_later(1, seen.append, "after it")
        await asyncio.sleep(2)
        seen.append("end")

    task = loop.create_task(main())
    with pytest.raises(SimulatedCrash):
        loop.run_until_complete(task)
    loop.run_until_complete(task)
    assert seen == ["after it", "end"]
    loop.close()


def test_executor_work_runs_on_the_loop() -> None:
    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, pow, 2, 10)

    assert run(main()) == 1024


def test_call_soon_threadsafe_is_a_call_soon() -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        asyncio.get_running_loop().call_soon_threadsafe(seen.append, 1)
        await asyncio.sleep(0)
        return seen

    assert run(main()) == [1]


def test_what_ending_tasks_start_is_ended_as_well() -> None:
    """As a link does that is lost to the end of another task and dials again."""
    begun: list[str] = []

    async def dial(depth: int) -> None:
        try:
            begun.append("dialled")
            await asyncio.sleep(1)
        finally:
            if depth:
                begun.append("lost")
                asyncio.get_running_loop().create_task(dial(depth - 1))

    async def main() -> None:
        asyncio.get_running_loop().create_task(dial(3))
        await asyncio.sleep(0)

    loop = VirtualLoop()
    loop.run_until_complete(main())
    cancel_all(loop)
    assert not asyncio.all_tasks(loop)
    loop.close()


def test_runner_can_use_it() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asyncio.sleep(1000))


def test_work_takes_virtual_time_and_is_cancelled_with_the_workers() -> None:
    ports = memory_ports(seed=3)
    ports.workers.latency_ms = (10, 20)

    async def main() -> None:
        done: list[int] = []
        await asyncio.gather(*(ports.workers.thread(lambda n=n: done.append(n)) for n in range(10)))  # type: ignore[misc]
        assert sorted(done) == list(range(10)) != done
        assert 10 <= ports.clock.monotonic_ms() <= 20
        future = ports.workers.thread(lambda: done.append(99))
        ports.workers.close()
        with pytest.raises(asyncio.CancelledError):
            await future
        assert 99 not in done

    ports.loop.run_until_complete(main())
    ports.loop.close()
