"""Batches that another process looks into, in a simulated world: what was acknowledged is there, whatever happened."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode
from ottla.storage.log.append import IN_THE_LOOP
from ottla.testing.sim.reader import read_all
from ottla.testing.sim.wire import Client, Unreachable

#: The topic has a codec of its own, so that all batches are looked into.
CONFIGS = {"compression.type": "lz4", "max.message.bytes": "8000000"}
MANY = IN_THE_LOOP.records + 500
CLIENTS = 4


def _checks(one: OneBroker) -> int:
    """How many requests wait for a verdict."""
    broker = one.broker.broker
    assert broker is not None
    assert broker._dispatcher is not None
    return len(broker._dispatcher._produce.checks.tasks)


def slow_checks(one: OneBroker) -> None:
    one.broker.ports.workers.latency_ms = (0.0, 40.0)


async def _produce(one: OneBroker, client: Client, random: Random, batches: int) -> int:
    """How many were acknowledged before the broker was gone."""
    done = 0
    try:
        for _ in range(batches):
            error = await one.produce(count=random.choice([1, MANY]), client=client)
            assert error == ErrorCode.NONE, error.name
            done += 1
    except (Unreachable, OSError):
        client.close()
    return done


async def _scenario(one: OneBroker, seed: int, *, power: bool) -> int:
    random = Random(seed)
    await one.broker.started()
    slow_checks(one)
    assert await one.create(configs=CONFIGS) == ErrorCode.NONE
    acknowledged = 0
    for _ in range(3):
        clients = [one.new_client(f"client {number}") for number in range(CLIENTS)]
        work = [asyncio.ensure_future(_produce(one, client, random, 5)) for client in clients]
        await asyncio.sleep(random.uniform(0.01, 0.4))
        await one.restart(power=power)
        slow_checks(one)
        acknowledged += sum(await asyncio.gather(*work))
        for client in clients:
            client.close()
    return acknowledged


@pytest.mark.parametrize("power", [False, True])
def test_what_was_acknowledged_is_there_after_a_kill_in_the_middle(power: bool) -> None:
    acknowledged = 0

    async def run(one: OneBroker, seed: int) -> None:
        nonlocal acknowledged
        acknowledged += await _scenario(one, seed, power=power)
        if not power:
            await one.check()
        assert await one.produce(count=MANY) == ErrorCode.NONE

    for seed in range(4):
        with OneBroker(seed) as one:
            one.run(run(one, seed))
    assert acknowledged > 20


def test_a_seed_gives_one_run() -> None:
    async def run(one: OneBroker) -> None:
        await _scenario(one, 7, power=False)
        await one.check([TP])

    told = []
    for _ in range(2):
        with OneBroker(7) as one:
            one.run(run(one))
            told.append(list(one.simulation.trace.lines))
    assert told[0] == told[1]


def test_a_clean_stop_lets_them_end() -> None:
    async def run(one: OneBroker) -> None:
        await one.broker.started()
        slow_checks(one)
        assert await one.create(configs=CONFIGS) == ErrorCode.NONE
        work = asyncio.ensure_future(one.produce(count=MANY))
        while not _checks(one):  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(0.0001)
        await one.broker.stop()
        with contextlib.suppress(Unreachable):  # its flush is not waited for
            await work
        one.client.close()
        await one.broker.started()
        assert len(await read_all(one.client, TP)) == MANY

    with OneBroker(3) as one:
        one.run(run(one))
