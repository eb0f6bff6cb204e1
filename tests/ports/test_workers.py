"""Work beside the loop, in threads and in a process."""

from __future__ import annotations

import asyncio
import os
import pickle

import pytest
from tests.ports.world import World

from ottla.ports.real.workers import WorkerDiedError


def doubled(number: int) -> int:
    return 2 * number


def failing() -> None:
    raise KeyError("as asked")


def printing() -> str:
    print("this is not an answer")
    return "answer"


def dying() -> None:
    os._exit(7)


def test_thread_gives_its_result_on_the_loop(world: World) -> None:
    async def main() -> list[int]:
        return await asyncio.gather(*(world.ports.workers.thread(lambda n=n: n * n) for n in range(50)))  # type: ignore[misc]

    assert world.run(main()) == [number * number for number in range(50)]


def test_thread_gives_its_exception(world: World) -> None:
    async def main() -> None:
        with pytest.raises(KeyError, match="as asked"):
            await world.ports.workers.thread(failing)

    world.run(main())


def test_work_on_the_disk(world: World) -> None:
    async def main() -> None:
        file = world.ports.disk.open(world.folder + "/log", create=True)
        file.append([b"abc"])
        await world.ports.workers.thread(file.sync)
        assert await world.ports.workers.thread(lambda: file.read(3, 0)) == b"abc"
        file.close()

    world.run(main())


def test_process_gives_its_result_or_exception(world: World) -> None:
    async def main() -> None:
        assert await world.ports.workers.process(doubled, 21) == 42
        with pytest.raises(KeyError, match="as asked"):
            await world.ports.workers.process(failing)
        assert await world.ports.workers.process(printing) == "answer"

    world.run(main())


def test_check_gives_its_result_or_exception(world: World) -> None:
    async def main() -> None:
        assert await world.ports.workers.check(doubled, 21) == 42
        with pytest.raises(KeyError, match="as asked"):
            await world.ports.workers.check(failing)
        with pytest.raises((AttributeError, pickle.PicklingError)):
            await world.ports.workers.check(lambda: 1)
        assert await asyncio.gather(*(world.ports.workers.check(doubled, n) for n in range(5))) == [0, 2, 4, 6, 8]

    world.run(main())


def test_process_refuses_what_cannot_be_sent(world: World) -> None:
    async def main() -> None:
        with pytest.raises((AttributeError, pickle.PicklingError)):
            await world.ports.workers.process(lambda: 1)
        assert await world.ports.workers.process(doubled, 1) == 2

    world.run(main())


def test_closed_workers_start_nothing(world: World) -> None:
    async def main() -> None:
        await world.ports.workers.thread(lambda: 1)
        world.ports.workers.close()
        with pytest.raises(RuntimeError, match="closed"):
            world.ports.workers.thread(lambda: 1)
        with pytest.raises(RuntimeError, match="closed"):
            world.ports.workers.process(doubled, 1)
        with pytest.raises(RuntimeError, match="closed"):
            world.ports.workers.check(doubled, 1)

    world.run(main())


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_a_check_does_not_stand_behind_other_work(world: World) -> None:
    async def main() -> None:
        workers = world.ports.workers
        endless = workers.process(waiting_for_ever)
        first = await workers.check(os.getpid)
        assert first != os.getpid()
        assert await workers.check(os.getpid) == first
        assert not endless.done()
        endless_check = workers.check_long(waiting_for_ever)
        assert await workers.check(os.getpid) == first
        assert not endless_check.done()
        with pytest.raises(WorkerDiedError, match="exit code 7"):
            await workers.check(dying)
        assert await workers.check(os.getpid) != first
        unwanted = workers.check(waiting_for_ever)
        behind = workers.check(waiting_for_ever)
        workers.close()
        for future in (endless, endless_check, unwanted, behind):
            with pytest.raises((WorkerDiedError, asyncio.CancelledError)):
                await future

    world.run(main())


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_a_dead_process_is_told_and_replaced(world: World) -> None:
    async def main() -> None:
        first = await world.ports.workers.process(os.getpid)
        with pytest.raises(WorkerDiedError, match="exit code 7"):
            await world.ports.workers.process(dying)
        second = await world.ports.workers.process(os.getpid)
        assert len({first, second, os.getpid()}) == 3

    world.run(main())


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_close_ends_a_process_in_the_middle_of_its_work(world: World) -> None:
    async def main() -> None:
        await world.ports.workers.process(doubled, 1)
        endless = world.ports.workers.process(waiting_for_ever)
        waiting = world.ports.workers.process(doubled, 2)
        world.ports.workers.close()
        with pytest.raises((WorkerDiedError, asyncio.CancelledError)):
            await endless
        with pytest.raises((WorkerDiedError, asyncio.CancelledError)):
            await waiting

    world.run(main())


def waiting_for_ever() -> None:
    reader, _ = os.pipe()
    os.read(reader, 1)
