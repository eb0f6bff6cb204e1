"""The synchronous face of a group's member: heartbeats go on while its thread works, call-backs come in that thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import BadArgument, CommitFailed, KafkaError
from ottla.client.sync import Consumer
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.group.members import QUICK, write
from tests.client.proxy import Proxy


def settings(bootstrap: str, group: str, **more: Any) -> dict[str, Any]:
    return {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, **more}


class Listener:
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.told: list[tuple[str, int, int]] = []

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.told.append(("assigned", len(partitions), threading.get_ident()))

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.told.append(("revoked", len(partitions), threading.get_ident()))
        self.consumer.commit({tp: (self.consumer.position(tp), "by the listener") for tp in partitions})


def test_a_members_life(bootstrap: str, wide_topic: str, group: str) -> None:
    asyncio.run(write(bootstrap, wide_topic, [b"%d" % n for n in range(8)], 4))
    zero = TopicPartition(wide_topic, 0)
    with Consumer(settings(bootstrap, group, enable_auto_commit=False)) as consumer:
        listener = Listener(consumer)
        consumer.subscribe([wide_topic], listener=listener)
        assert consumer.subscription() == [wide_topic]
        seen = []
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 8:
                break
        assert sorted(seen) == [b"%d" % n for n in range(8)]
        assert len(consumer.assignment()) == 4
        assert consumer.group_metadata().generation == 1
        consumer.commit({zero: 1})
        assert consumer.committed([zero]) == {zero: CommittedOffset(1)}
        answered = threading.Event()
        failed: list[KafkaError | None] = []
        consumer.commit_async({zero: 2}, lambda _, error: (failed.append(error), answered.set()))
        assert answered.wait(60)
        assert failed == [None]
        consumer.unsubscribe()
        assert consumer.committed([zero]) == {zero: CommittedOffset(2, "by the listener")}
    mine = threading.get_ident()
    assert listener.told == [("assigned", 4, mine), ("revoked", 4, mine)]


async def test_heartbeats_go_on_while_the_caller_works(bootstrap: str, topic: str, group: str) -> None:
    may_go_on = threading.Event()

    def work(address: str) -> None:
        with Consumer(settings(address, group, enable_auto_commit=False)) as consumer:
            consumer.subscribe([topic])
            while not consumer.assignment():
                consumer.poll(timeout_ms=20)
            before = consumer.group_metadata()
            works.set()
            assert may_go_on.wait(60)
            consumer.commit({TopicPartition(topic, 0): 0})
            assert consumer.group_metadata() == before

    works = threading.Event()
    async with Proxy(bootstrap) as proxy:
        working = asyncio.create_task(asyncio.to_thread(work, proxy.bootstrap))
        try:
            assert await asyncio.to_thread(works.wait, 60)
            beaten = proxy.count(ApiKey.HEARTBEAT)
            # As many as a session of two seconds has. One that ends in time would end while the machine is busy, too.
            while proxy.count(ApiKey.HEARTBEAT) < beaten + 40:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
        finally:
            may_go_on.set()
            await working


def test_a_poll_comes_too_late(bootstrap: str, topic: str, group: str) -> None:
    asyncio.run(write(bootstrap, topic, [b"x"]))
    with Consumer(settings(bootstrap, group, max_poll_interval_ms=100, enable_auto_commit=False)) as consumer:
        consumer.subscribe([topic])
        assert len(consumer.poll(timeout_ms=60_000)) == 1

        def commit_on() -> None:
            while True:
                consumer.commit()
                time.sleep(0.01)

        with pytest.raises(CommitFailed, match=r"more than max\.poll\.interval\.ms \(100 ms\)"):
            commit_on()


def test_what_a_call_back_raises_and_must_not_do(bootstrap: str, topic: str, group: str) -> None:
    with Consumer(settings(bootstrap, group)) as consumer:

        class Raising:
            def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
                consumer.poll()

        consumer.subscribe([topic], listener=Raising())
        with pytest.raises(ValueError, match="must not poll, unsubscribe or close"):
            consumer.poll(timeout_ms=60_000)
        consumer.poll(timeout_ms=10)
        assert len(consumer.assignment()) == 1


def test_two_threads_at_once(bootstrap: str, topic: str, group: str) -> None:
    """The second one is told, and the first one goes on."""
    with Consumer(settings(bootstrap, group)) as consumer:
        consumer.subscribe([topic])
        seen: list[bytes] = []

        def poll() -> None:
            seen.extend(record.value for record in consumer.poll())

        first = threading.Thread(target=poll)
        first.start()
        while not consumer.assignment():
            time.sleep(0.01)
        for work in (consumer.poll, consumer.unsubscribe, consumer.close):
            with pytest.raises(ValueError, match="one thread at a time polls"):
                work()
        asyncio.run(write(bootstrap, topic, [b"x"]))
        first.join()
        assert seen == [b"x"]
        assert consumer.poll(timeout_ms=0) == []


def test_a_listener_that_nobody_would_await_is_refused(bootstrap: str, topic: str, group: str) -> None:
    class Awaited:
        async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            raise AssertionError

    with (
        Consumer(settings(bootstrap, group)) as consumer,
        pytest.raises(BadArgument, match="on_revoked is a coroutine, which nobody would await"),
    ):
        consumer.subscribe([topic], listener=Awaited())
