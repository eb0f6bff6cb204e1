"""A Ctrl-C while a poll or an iteration waits, or has its records: none is lost, and the consumer goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, islice
from types import FrameType
from typing import Any, Final

import pytest

from ottla.client.sync import Consumer, Producer
from ottla.client.sync.call_backs import CallBacks
from ottla.client.sync.loop_thread import LoopThread
from ottla.model import TopicPartition
from ottla.records.record import decode_batch


@contextmanager
def interrupted_at(number: int) -> Iterator[list[str]]:
    """A Ctrl-C at this one of the places of this thread in the client's code where Python looks for one: as a function
    begins, and behind a call of one that is written in C, whose result is lost then. Tells where that was."""
    came: list[str] = []
    places = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal places
        if event in {"call", "c_return"} and CLIENT in frame.f_code.co_filename and not came:
            places += 1
            if places == number:
                came.append(f"{frame.f_code.co_qualname}:{frame.f_lineno} {event}")
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        yield came
    finally:
        sys.setprofile(None)


def values(records: list[Any]) -> list[bytes]:
    return [one.value for one in records]


def of_batches(fetched: Any) -> list[bytes]:
    return [one.value for one in decode_batch(bytes(fetched.records[fetched.begin : fetched.end]))]


CLIENT: Final = os.path.join("ottla", "client") + os.sep
WAYS: dict[str, Callable[[Consumer], list[bytes]]] = {
    "records": lambda consumer: values(consumer.poll(timeout_ms=30_000)),
    "Arrow": lambda consumer: consumer.poll_arrow(columns=["value"], timeout_ms=30_000).column(0).to_pylist(),
    "batches": lambda consumer: of_batches(consumer.poll_batches(timeout_ms=30_000)),
}


@pytest.fixture
def consumer(bootstrap: str, topic: str) -> Iterator[Consumer]:
    """With a partition of three records."""
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "auto_offset_reset": "earliest",
        "group_id": topic,
        "fetch_max_wait_ms": 1,  # a seek waits for the fetch that is under way
    }
    # In one batch, however long the three calls take: closing sends it.
    with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        for number in range(3):
            producer.send(topic, b"%d" % number)
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer


@pytest.mark.parametrize("way", WAYS)
def test_what_an_interrupted_poll_had_is_given_out_by_the_next_one(consumer: Consumer, way: str) -> None:
    (partition,) = consumer.assignment()
    for number in count(1):
        consumer.seek(partition, 0)
        with interrupted_at(number) as came, suppress(KeyboardInterrupt):
            WAYS[way](consumer)
        if not came:
            break
        assert consumer.position(partition) == 0, came
        assert WAYS[way](consumer) == [b"0", b"1", b"2"], came
        assert consumer.position(partition) == 3, came
    assert number > 10


def test_an_interrupted_iteration_passes_over_nothing(consumer: Consumer) -> None:
    (partition,) = consumer.assignment()
    for number in count(1):
        consumer.seek(partition, 0)
        found: list[bytes] = []
        reading = iter(consumer)
        with interrupted_at(number) as came, suppress(KeyboardInterrupt):
            found += (record.value for record in islice(reading, 2))
        if not came:
            break
        found += values(consumer.poll(timeout_ms=30_000))
        assert found == [b"0", b"1", b"2"], came
    assert number > 10
    assert found == [b"0", b"1"]


class Told:
    def __init__(self) -> None:
        self.count = 0

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.count += 1


def test_a_rebalance_goes_on_whatever_of_a_listeners_call_was_interrupted() -> None:
    """Its steps go on when a poll is given up, and the next poll waits for them."""
    thread = LoopThread("interrupted")
    calls = CallBacks(thread)
    listener, steps = Told(), list[asyncio.Task[None]]()
    relayed: Any = calls.relayed(listener)

    async def poll() -> None:
        steps.append(asyncio.get_running_loop().create_task(relayed.on_assigned([TopicPartition("t", 0)])))
        await asyncio.wait(steps)

    async def next_poll() -> bool:
        return not steps or not (await asyncio.wait(steps, timeout=60))[1]

    for number in count(1):
        listener.count = 0
        steps.clear()
        with interrupted_at(number) as came, suppress(KeyboardInterrupt):
            calls.run(poll)
        assert calls.run(next_poll), came
        assert listener.count <= len(steps), came
        if not came:
            break
    assert number > 10
    assert listener.count == 1
    thread.end()


def test_a_listener_that_raises_a_cancellation_ends_its_poll_alone() -> None:
    thread = LoopThread("cancelled")
    calls = CallBacks(thread)
    waits = asyncio.Event()
    given_up: list[bool] = []

    class Cancelled:
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            raise asyncio.CancelledError

    relayed: Any = calls.relayed(Cancelled())

    async def poll() -> None:
        await relayed.on_assigned([])
        try:
            await waits.wait()
        except asyncio.CancelledError:
            given_up.append(True)
            raise

    async def nothing() -> int:
        return 1

    with pytest.raises(asyncio.CancelledError):
        calls.run(poll, lambda _: None)
    assert calls.run(nothing) == 1
    assert given_up
    thread.end()
