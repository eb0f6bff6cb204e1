"""What requests and connections leave behind goes by itself: nobody has to look for circles."""

from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch, produce, produce_request
from tests.server.conftest import BrokerThread
from tests.server.test_connections import asks

from ottla.broker import garbage
from ottla.client import Consumer

Make = Callable[..., BrokerThread]
ROUNDS = 10
OURS = ("ottla.handlers", "ottla.server", "ottla.groups", "ottla.replication", "ottla.storage")


@pytest.fixture
def found() -> Iterator[list[Any]]:
    """What a collection finds."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


async def reads(port: int, group: str) -> None:
    async with Consumer(
        bootstrap_servers=f"127.0.0.1:{port}", group_id=group, auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["t"])
        await anext(aiter(consumer))


def test_nothing_that_a_request_or_a_connection_makes_stands_in_a_circle(make_broker: Make, found: list[Any]) -> None:
    with make_broker(
        offsets_topic_replication_factor="1", offsets_topic_num_partitions="1", group_initial_rebalance_delay_ms="0"
    ) as running:
        running.create_topic("t")
        for number in range(ROUNDS):
            with running.connect() as peer:
                for acks in (1, -1, -1):
                    assert produce(peer, batch(b"v"), acks=acks).error_code == 0
                assert fetch(peer)
                assert asks(peer)
            with running.connect() as peer:
                peer.send(peer.frame(produce_request(batch(b"v")), 8)[:50])
            with running.connect() as peer:
                peer.send(struct.pack(">i", -1))
                assert peer.is_closed()
            asyncio.run(reads(running.port, f"g{number}"))
        running.look(lambda _: gc.collect())
        names = [type(each).__name__ for each in found if type(each).__module__.startswith(OURS)]
        assert names == []


def test_all_is_looked_through_at_rest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "LOOK_S", 0.0)
    collected: list[int] = []
    resting_ms = garbage.REST_MS - 2

    def rests() -> int:
        nonlocal resting_ms
        resting_ms += 1
        return resting_ms

    def collect() -> int:
        collected.append(resting_ms)
        raise asyncio.CancelledError

    monkeypatch.setattr(gc, "collect", collect)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(garbage.collect_at_rest(rests))
    assert collected == [garbage.REST_MS]
