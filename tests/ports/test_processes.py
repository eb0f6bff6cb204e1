"""Processes of simulated machines: they stand still, wake, and end with all that they have set."""

from __future__ import annotations

import asyncio

import pytest
from tests.ports.test_memory_network import Two, reach
from tests.ports.world import until

from ottla.ports.memory import VirtualLoop
from ottla.ports.memory.loop import cancel_all
from ottla.ports.memory.processes import Process


class Ticking:
    """A process that counts every second, and one that does so beside it."""

    def __init__(self) -> None:
        self.loop = VirtualLoop(seed=1)
        self.process = Process("ticking")
        self.ticks: list[float] = []
        self.others = 0

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.ticks.append(self.loop.time())

    async def beside(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.others += 1

    def run(self, main: object) -> None:
        self.loop.create_task(self.tick(), context=self.process.context())
        self.loop.create_task(self.beside())
        self.loop.run_until_complete(main)  # type: ignore[arg-type]
        self.loop.go_on(self.process)
        cancel_all(self.loop)
        self.loop.close()


def test_a_stopped_process_stands_still_and_the_others_go_on() -> None:
    one = Ticking()

    async def main() -> None:
        await asyncio.sleep(2.5)
        one.loop.suspend(one.process)
        await asyncio.sleep(10)
        assert one.ticks == [1, 2]
        assert one.others >= 11

    one.run(main())


def test_on_waking_what_came_due_is_due_at_once_and_its_clock_has_jumped() -> None:
    one = Ticking()

    async def main() -> None:
        await asyncio.sleep(2.5)
        one.loop.suspend(one.process)
        await asyncio.sleep(10)
        one.loop.go_on(one.process)
        await asyncio.sleep(0.1)
        assert one.ticks == [1, 2, 12.5]
        await asyncio.sleep(1)
        assert one.ticks[-1] == 13.5

    one.run(main())


def test_a_process_that_ends_while_it_stands_still_does_nothing_more() -> None:
    one = Ticking()
    gone_off: list[str] = []

    async def main() -> None:
        one.process.context().run(one.loop.call_later, 3, gone_off.append, "while stopped")
        one.process.context().run(one.loop.call_later, 30, gone_off.append, "after the end")
        await asyncio.sleep(2.5)
        one.loop.suspend(one.process)
        await asyncio.sleep(5)
        one.loop.end(one.process)
        await asyncio.sleep(60)
        assert (one.ticks, gone_off, one.process.tasks) == ([1, 2], [], [])

    one.run(main())


def test_the_loop_says_what_ran_in_a_turn() -> None:
    one = Ticking()
    seen: list[list[str]] = []
    one.loop.after_turn = lambda: seen.append([process.name for process in one.loop.ran])

    async def main() -> None:
        await asyncio.sleep(1.5)

    one.run(main())
    assert ["ticking"] in seen
    assert [] in seen


def test_the_sockets_of_a_stopped_process_fill_up_and_are_read_when_it_wakes() -> None:
    two = Two()
    process = Process("a")

    async def main() -> None:
        opening = two.loop.create_task(reach(two.a, "b"), context=process.context())
        client = await opening
        two.loop.suspend(process)
        await until(lambda: two.broker.connections)
        channel = two.broker.connections[0].channel
        sent = channel.send(bytes(10_000_000))
        with pytest.raises(BlockingIOError):
            channel.send(b"more")
        await asyncio.sleep(5)
        assert client.received == b""
        two.loop.go_on(process)
        await until(lambda: len(client.received) == sent)

    two.run(main())


def test_what_a_killed_process_has_sent_arrives_with_its_end() -> None:
    """The network belongs to no process: what is on the way stays on the way."""
    two = Two()
    process = Process("a")
    two.world.fabric.latency(50, 50)

    async def main() -> None:
        client = await two.loop.create_task(reach(two.a, "b"), context=process.context())
        await until(lambda: two.broker.connections)
        process.context().run(client.transport.write, b"last words")
        two.loop.end(process)
        two.world.kill("a")
        await until(lambda: two.broker.connections[0].ended or two.broker.connections[0].error)
        # It sent them back, which shows that it has received them.
        assert "readable" in two.broker.connections[0].events or two.broker.connections[0].ended

    two.run(main())
