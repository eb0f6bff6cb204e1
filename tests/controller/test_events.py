"""One event after the other, whatever becomes of it."""

from __future__ import annotations

import asyncio

import pytest

from ottla.controller.deciding.refusal import Refusal
from ottla.controller.events import EventQueue
from ottla.ports.memory import memory_ports


def test_an_event_in_which_something_was_cancelled_ends_no_other() -> None:
    loop = memory_ports(seed=1, shuffle=False).loop

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def fine() -> str:
        return "done"

    async def work() -> None:
        events = EventQueue(lambda: 0)
        events.start()
        with pytest.raises(Refusal):
            await events.run(cancelled)
        assert await events.run(fine) == "done"
        await events.stop()
        with pytest.raises(Refusal):
            await events.run(fine)

    loop.run_until_complete(work())


def test_a_consumer_that_is_cancelled_ends() -> None:
    loop = memory_ports(seed=1, shuffle=False).loop

    async def waiting() -> None:
        await asyncio.sleep(10)

    async def work() -> None:
        events = EventQueue(lambda: 0)
        events.start()
        asked = asyncio.ensure_future(events.run(waiting))
        await asyncio.sleep(1)
        assert events._consumer is not None
        events._consumer.cancel()
        with pytest.raises(Refusal):
            await asked
        assert events._consumer.done()

    loop.run_until_complete(work())


def test_a_turn_that_waits_for_a_tree_that_is_away_does_not_hold_up_a_stop() -> None:
    """Nobody learns that the session is over before a server of it answers."""
    loop = memory_ports(seed=1, shuffle=False).loop

    async def work() -> None:
        events = EventQueue(lambda: 0)
        events.start()
        asked = asyncio.ensure_future(events.run(asyncio.Event().wait))
        await asyncio.sleep(1)
        async with asyncio.timeout(60):
            await events.stop()
        with pytest.raises(Refusal):
            await asked

    loop.run_until_complete(work())
