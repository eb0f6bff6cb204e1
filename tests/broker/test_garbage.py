"""What requests and connections leave behind goes by itself: nobody has to look for circles."""

from __future__ import annotations

import asyncio
import gc
import itertools
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import confluent_kafka
import pytest
from tests.client.producing.transactions.generations import GENERATIONS, speaking
from tests.handlers.calls.test_turns import Clock
from tests.handlers.frames import batch, fetch, produce, produce_request
from tests.server.conftest import BrokerThread
from tests.server.test_connections import asks

from ottla.broker import garbage
from ottla.client import Admin, Consumer, Producer, TopicPartition
from ottla.client.admin.results import ConfigResource
from ottla.handlers.calls.turns import Turns
from ottla.steps import Steps, in_turns

Make = Callable[..., BrokerThread]
ROUNDS = 5
SECONDS_MAX = 60.0
OURS = (
    *("ottla.handlers", "ottla.server", "ottla.groups", "ottla.replication", "ottla.storage", "ottla.transactions"),
    *("ottla.coordinators", "ottla.broker", "ottla.controller", "ottla.coordination", "ottla.metadata"),
)


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


def reads_by_the_new_protocol(port: int, group: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": group, "group.protocol": "consumer"}
        | {"auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    assert consumer.poll(SECONDS_MAX) is not None
    consumer.close()


def left_behind(running: BrokerThread, found: list[Any], work: Callable[[], None]) -> list[str]:
    """What the work leaves in circles when it is done again: what a start and a first time leave is left once."""
    work()
    gc.set_debug(0)  # what is found is freed
    running.look(lambda _: gc.collect())
    gc.set_debug(gc.DEBUG_SAVEALL)
    work()
    running.look(lambda _: gc.collect())
    return [type(each).__name__ for each in found if type(each).__module__.startswith(OURS)]


def test_nothing_that_a_request_or_a_connection_makes_stands_in_a_circle(make_broker: Make, found: list[Any]) -> None:
    names = itertools.count()

    def work() -> None:
        for _ in range(ROUNDS):
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
            asyncio.run(reads(running.port, f"g{next(names)}"))
        reads_by_the_new_protocol(running.port, f"new{next(names)}")

    with make_broker(
        offsets_topic_replication_factor="1", offsets_topic_num_partitions="1", group_initial_rebalance_delay_ms="0"
    ) as running:
        running.create_topic("t")
        assert left_behind(running, found, work) == []


async def writes(port: int, generation: int) -> None:
    """Transactions that are committed, aborted and fenced, with a group's positions."""
    async with speaking(f"127.0.0.1:{port}", generation) as proxy:
        settings = {"bootstrap_servers": proxy.bootstrap, "transactional_id": f"id-{generation}"}
        async with Producer(**settings) as producer:
            for number in range(ROUNDS):
                await producer.begin()
                await producer.send("t", b"v")
                await producer.send_offsets({TopicPartition("t", 0): number}, "group")
                await (producer.commit() if number % 2 else producer.abort())
            await producer.begin()
            await producer.send_and_wait("t", b"v")
            async with Producer(**settings) as other:
                await other.begin()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_nothing_of_a_transaction_stands_in_a_circle(make_broker: Make, found: list[Any], generation: int) -> None:
    topics = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    replicas = {name.replace("num_partitions", "replication_factor"): "1" for name in topics}
    with make_broker(**topics, **replicas, transaction_state_log_min_isr="1") as running:
        running.create_topic("t")
        assert left_behind(running, found, lambda: asyncio.run(writes(running.port, generation))) == []


async def administrates(port: int) -> None:
    """What a controller does for an operator: topics come, grow, change and go."""
    async with Admin(bootstrap_servers=f"127.0.0.1:{port}") as admin:
        for number in range(ROUNDS):
            name, partition = f"t{number}", TopicPartition(f"t{number}", 0)
            topic = ConfigResource.topic(name)
            await admin.create_topic(name, partitions=2)
            await admin.create_partitions({name: 3})
            await admin.alter_configs({topic: {"retention.ms": "1000"}})
            await admin.describe_configs([topic])
            await admin.delete_records({partition: 0})
            await admin.elect_leaders(partitions=[partition])
            await admin.describe_log_dirs()
            await admin.delete_topic(name)


def test_no_change_of_a_controller_stands_in_a_circle(make_broker: Make, found: list[Any]) -> None:
    with make_broker() as running:
        assert left_behind(running, found, lambda: asyncio.run(administrates(running.port))) == []


def test_nothing_is_looked_through_but_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "LOOK_S", 0.0)
    collected: list[int] = []
    resting_ms = garbage.REST_MS - 2

    def rests() -> int:
        nonlocal resting_ms
        resting_ms += 1
        return resting_ms

    def collect(generation: int = 2) -> int:
        collected.append(resting_ms)
        raise asyncio.CancelledError

    monkeypatch.setattr(gc, "collect", collect)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(garbage.collect_at_rest(rests))
    assert collected == [garbage.REST_MS]


@pytest.fixture
def looked_through() -> Iterator[list[int]]:
    """How many objects each collection of this thread looks through: a broker of earlier tests has its own."""
    counts: list[int] = []
    here = threading.current_thread()

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start" and threading.current_thread() is here:
            counts.append(sum(len(gc.get_objects(each)) for each in range(about["generation"] + 1)))

    before = gc.get_threshold()
    gc.callbacks.append(note)
    yield counts
    gc.callbacks.remove(note)
    gc.set_threshold(*before)
    # As everything is before each test.
    gc.freeze()


#: Lists, and so objects for the collector.
STANDING, MADE = 60_000, 3_000


def filling(held: list[list[int]], count: int) -> Steps[None]:
    for _ in range(count):
        held.append([])
        yield


async def rest_twice() -> None:
    looks = 0

    def rests() -> int:
        nonlocal looks
        looks += 1
        if looks > 2:
            raise asyncio.CancelledError
        return garbage.REST_MS

    with suppress(asyncio.CancelledError):
        await garbage.collect_at_rest(rests)


@pytest.mark.parametrize("driver", ["turns", "in_turns"])
def test_what_was_kept_is_not_looked_through_again_behind_long_work(
    monkeypatch: pytest.MonkeyPatch, looked_through: list[int], driver: str
) -> None:
    monkeypatch.setattr(garbage, "LOOK_S", 0.0)
    held: list[list[int]] = [[] for _ in range(STANDING)]

    async def works() -> None:
        garbage.settle_in()
        looked_through.clear()
        for _ in range(3):
            work = filling(held, MADE)
            await (Turns(Clock()).to_end(work) if driver == "turns" else in_turns(work, Clock().monotonic_ms))
            await rest_twice()

    asyncio.run(works())
    assert len(held) == STANDING + 3 * MADE
    assert looked_through
    assert max(looked_through) < STANDING


class Circle:
    def __init__(self) -> None:
        self.own = self


def test_all_is_looked_through_where_much_more_is_alive_than_was(
    monkeypatch: pytest.MonkeyPatch, looked_through: list[int]
) -> None:
    monkeypatch.setattr(garbage, "LOOK_S", 0.0)
    blocks = 4 * garbage.GROWTH_MIN
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)

    async def works() -> None:
        nonlocal blocks
        # Garbage that is kept, as what long work has made may be.
        garbage.settle_in()
        resting = asyncio.ensure_future(garbage.collect_at_rest(lambda: garbage.REST_MS))
        for _ in range(5):
            await asyncio.sleep(0)
        blocks += blocks // 2
        for _ in range(5):
            await asyncio.sleep(0)
        assert gone() is not None
        blocks += 1
        for _ in range(5):
            await asyncio.sleep(0)
        assert gone() is None
        resting.cancel()

    gone = weakref.ref(Circle())
    asyncio.run(works())
