"""Who waits for this broker's own disk is answered as soon as it may be, and before a graceful stop."""

from __future__ import annotations

import asyncio

import pytest
from tests.testing.sim.one_broker import OneBroker

from ottla.model import ErrorCode
from ottla.testing.sim.wire import Unreachable

FLUSHED = {"flush.messages": "1"}


@pytest.mark.parametrize("senders", [1, 3])
def test_a_produce_that_waits_for_its_flush_is_answered_before_the_stop(senders: int) -> None:
    with OneBroker(senders) as one:
        one.run(_answered(one, senders))


async def _answered(one: OneBroker, senders: int) -> None:
    await one.broker.started()
    assert await one.create(configs=FLUSHED) == ErrorCode.NONE
    await one.must_produce()
    one.broker.ports.workers.latency_ms = (900.0, 1000.0)
    waiting = []
    for number in range(senders):
        # All but the first were written after the running flush began, and wait for the one behind it.
        waiting.append(asyncio.create_task(one.produce(client=one.new_client(f"sender-{number}"))))
        await asyncio.sleep(0.1)
    assert not any(each.done() for each in waiting)
    await one.broker.stop()
    assert await asyncio.gather(*waiting) == [ErrorCode.NONE] * senders
    one.broker.ports.workers.latency_ms = (0.0, 0.0)
    await one.broker.started()
    one.client.close()
    await one.check()


def test_what_was_written_during_a_flush_is_flushed_behind_it() -> None:
    with OneBroker(5) as one:
        one.run(_behind(one))


async def _behind(one: OneBroker) -> None:
    """Not with the next write, which may never come, nor when the flushes by time are looked at."""
    await one.broker.started()
    assert await one.create(configs=FLUSHED) == ErrorCode.NONE
    one.broker.ports.workers.latency_ms = (100.0, 100.0)
    clock = asyncio.get_running_loop().time
    for _ in range(7):
        await asyncio.sleep(0.13)
        began = clock()
        first = asyncio.create_task(one.produce(client=one.new_client("first")))
        await asyncio.sleep(0.03)
        second = asyncio.create_task(one.produce(client=one.new_client("second")))
        assert await asyncio.gather(first, second) == [ErrorCode.NONE] * 2
        assert clock() - began < 0.25
    await one.check()


def test_a_stop_does_not_wait_for_those_who_go_on_writing() -> None:
    with OneBroker(7) as one:
        one.run(_under_load(one))


async def _under_load(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create(configs=FLUSHED) == ErrorCode.NONE
    one.broker.ports.workers.latency_ms = (90.0, 100.0)
    loads = [asyncio.create_task(_load(one, number)) for number in range(4)]
    await asyncio.sleep(2)
    began = asyncio.get_running_loop().time()
    await one.broker.stop()
    assert asyncio.get_running_loop().time() - began < 2
    await asyncio.gather(*loads)
    one.broker.ports.workers.latency_ms = (0.0, 0.0)
    await one.broker.started()
    one.client.close()
    await one.check()


async def _load(one: OneBroker, number: int) -> None:
    client = one.new_client(f"load-{number}")
    try:
        while True:
            assert await one.produce(client=client) == ErrorCode.NONE
    except Unreachable:
        return
