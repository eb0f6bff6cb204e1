"""The simulation itself: what belongs to a process ends with it, and no power cut goes unnoticed."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.testing.sim.one_broker import OneBroker

from ottla.logs import logger
from ottla.model import ErrorCode
from ottla.testing.sim import BrokerFault
from ottla.testing.sim.wire import Unreachable


def test_what_a_process_has_started_ends_with_it() -> None:
    async def scenario(one: OneBroker) -> None:
        await one.broker.started()
        assert await one.create() == ErrorCode.NONE
        await one.must_produce(batches=3)
        one.broker.kill()
        # Its housekeeping would go on every second, and on a dead disk it would complain.
        lines = len(one.simulation.trace.lines)
        await asyncio.sleep(3600)
        assert len(one.simulation.trace.lines) == lines
        with pytest.raises(Unreachable):
            await one.produce()

    with OneBroker() as one:
        one.run(scenario(one))


def test_after_a_power_cut_a_client_hears_nothing_until_its_time_is_over() -> None:
    async def scenario(one: OneBroker) -> None:
        await one.broker.started()
        assert await one.create() == ErrorCode.NONE
        one.broker.ports.workers.latency_ms = (50.0, 50.0)
        asked = asyncio.create_task(one.produce())
        await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        one.broker.lose_power()
        with pytest.raises(Unreachable, match="no answer in time"):
            await asked
        assert asyncio.get_running_loop().time() - began > 2.0

    with OneBroker() as one:
        one.run(scenario(one))


@pytest.mark.parametrize("operation", range(1, 60, 7))
def test_a_power_cut_in_any_operation_of_the_start_is_a_power_cut(operation: int) -> None:
    async def scenario(one: OneBroker) -> None:
        one.disk.crash_at(operation)
        start = one.broker.start()
        await one.broker.ended.wait()
        assert not one.broker.serving.is_set()
        assert start.done() or start.cancelling()
        assert one.said("loses its power")
        await one.broker.started()
        assert await one.create() == ErrorCode.NONE
        await one.must_produce()

    with OneBroker(operation) as one:
        one.run(scenario(one))


def test_an_exception_in_a_call_back_of_the_broker_ends_the_run() -> None:
    async def scenario(one: OneBroker) -> None:
        await one.broker.started()
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(10)

    with OneBroker() as one, pytest.raises(AssertionError, match="ZeroDivisionError") as failed:
        one.run(scenario(one))
    assert isinstance(failed.value.__cause__, BrokerFault)
    assert "seed 1" in str(failed.value)


def test_a_broker_that_stands_still_answers_when_it_goes_on() -> None:
    async def scenario(one: OneBroker) -> None:
        await one.broker.started()
        assert await one.create() == ErrorCode.NONE
        one.broker.pause()
        lines = len(one.simulation.trace.lines)
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable, match="no answer in time"):
            await one.produce()
        await asyncio.sleep(600)
        assert len(one.simulation.trace.lines) == lines
        one.broker.wake()
        await one.must_produce()
        assert asyncio.get_running_loop().time() - began < 610

    with OneBroker() as one:
        one.run(scenario(one))


def test_a_broker_that_is_killed_while_it_stands_still_starts_again() -> None:
    async def scenario(one: OneBroker) -> None:
        await one.broker.started()
        assert await one.create() == ErrorCode.NONE
        await one.must_produce()
        one.broker.pause()
        one.broker.kill()
        await one.broker.started()
        await one.must_produce()

    with OneBroker() as one:
        one.run(scenario(one))


def test_what_another_thread_logs_meanwhile_is_none_of_the_trace() -> None:
    """A broker of another test may still run in this process: the same seed would give two traces."""

    async def scenario(one: OneBroker) -> None:
        await one.broker.started()
        lines = len(one.simulation.trace.lines)
        other = threading.Thread(target=logger("server").warning, args=("not of this world",))
        other.start()
        other.join()
        assert len(one.simulation.trace.lines) == lines
        logger("server").warning("of this world")
        assert len(one.simulation.trace.lines) == lines + 1

    with OneBroker() as one:
        one.run(scenario(one))
