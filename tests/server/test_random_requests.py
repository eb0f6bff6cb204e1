"""Requests that are well-formed and make no sense, of every API and version: none is met by an exception."""

from __future__ import annotations

import asyncio
import datetime
import os
from typing import Final

import pytest
from tests.protocol.random_messages import Kind, kinds, random_message
from tests.server.test_request_limits import Trickle
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.handlers.routes import advertised
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.header import RequestHeader, encode_request

SERVED: Final = {key: (low, high) for key, low, high in advertised()}
#: Their names are among those that random messages have.
TOPICS: Final = {"orders": {}, "a": {"cleanup.policy": "compact"}}


def requests() -> list[Kind]:
    found = []
    for kind in kinds():
        low, high = SERVED.get(kind.schema.api_key, (1, 0))
        if kind.struct.name.endswith("Request") and low <= kind.version <= high:
            found.append(kind)
    return found


async def topics(one: OneBroker) -> None:
    for name, configs in TOPICS.items():
        assert await one.create(name, 2, configs) in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}


async def ask_nonsense(one: OneBroker, seed: int) -> None:
    await one.broker.started()
    assert await one.create() == ErrorCode.NONE
    await one.must_produce(TP, batches=3)
    network = one.simulation.world.machine("clients").network
    for number, kind in enumerate(requests()):
        await topics(one)
        if number % 10 == 0:
            await one.produce(TopicPartition("orders", 0))
        for modest in (False, True):
            header = RequestHeader(
                api_key=kind.schema.api_key, api_version=kind.version, correlation_id=7, client_id=f"{kind.id}"
            )
            frame = encode_request(header, random_message(kind, seed * 2 + modest, modest=modest))
            _, protocol = await network.connect(Trickle, *one.broker.address)
            assert isinstance(protocol, Trickle)
            protocol.transport.write(frame)
            await asyncio.sleep(0.05)
            protocol.transport.abort()
            assert not one.said("a request failed"), kind.id
    await one.check()
    await one.must_produce(TP)
    await one.restart(power=False)
    await one.check()


def run(seed: int) -> None:
    with OneBroker(seed, {"offsets.topic.replication.factor": "1", "auto.create.topics.enable": "false"}) as one:
        one.run(ask_nonsense(one, seed))


def test_every_api_that_is_served_is_asked() -> None:
    assert {kind.schema.api_key for kind in requests()} == SERVED.keys()


@pytest.mark.parametrize("seed", range(4))
def test_no_request_is_met_by_an_exception(seed: int) -> None:
    run(seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_request_is_met_by_an_exception_in_hundreds_of_runs() -> None:
    first, runs = int(os.environ.get("OTTLA_SEED", "1000")), 300
    for seed in range(first, first + runs):
        run(seed)
    today = datetime.datetime.now(datetime.UTC).date()
    print(
        f"\nwell-formed nonsense of every API: {today}, {runs} seeds from {first}, {2 * len(requests())} requests each"
    )
