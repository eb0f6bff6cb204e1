"""What a consumer is given is checked before anything is changed: an error names the argument, and reading goes on."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.fetcher import Fetcher
from ottla.client.errors import BadArgument, ClientClosed, ClientFault, NotAssigned, WrongConsumerState
from ottla.client.producing.producer import Producer
from ottla.client.sync import Consumer as SyncConsumer
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.proxy import Action, Pass, Proxy, Request, Silence

BAD_PARTITIONS: list[tuple[Any, str]] = [
    ("orders", r"partitions must be a list of \(topic, partition\), not a str"),
    (["orders"], r"partitions\[0\] must be \(topic, partition\), not a str"),
    ([("orders",)], r"partitions\[0\] must be \(topic, partition\), not a tuple"),
    ([("orders", "0")], r"partitions\[0\]: the partition must be an int, not a str"),
    ([("orders", 0), ("orders", -1)], r"partitions\[1\]: the partition must be from 0 to 2147483647, not -1"),
    ([(b"orders", 0)], r"partitions\[0\]: the topic must be a str, not bytes"),
    ([("", 0)], r"partitions\[0\]: the topic must not be empty"),
    (TopicPartition("orders", 0), r"partitions\[0\] must be \(topic, partition\), not a str"),
    (None, r"partitions must be a list of \(topic, partition\), not None"),
    ([None], r"partitions\[0\] must be \(topic, partition\), not None"),
]


@pytest.mark.parametrize(("given", "said"), BAD_PARTITIONS)
async def test_partitions(bootstrap: str, topic: str, given: Any, said: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"here")
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=topic) as consumer:
        consumer.assign([tp])
        with pytest.raises(BadArgument, match=said):
            consumer.assign(given)
        for ask in consumer.committed, consumer.beginning_offsets, consumer.end_offsets:
            with pytest.raises(BadArgument, match=said):
                await ask(given)
        assert [one.value for one in await consumer.poll(timeout_ms=30_000)] == [b"here"]
    with SyncConsumer(bootstrap_servers=bootstrap) as blocking, pytest.raises(BadArgument, match=said):
        blocking.assign(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [("0", "not a str"), (1.5, "not a float"), (True, "not a bool"), (-1, "not -1"), (2**63, "must be from 0 to")],
)
async def test_offsets(bootstrap: str, topic: str, given: Any, said: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"here")
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=topic) as consumer:
        consumer.assign([tp])
        with pytest.raises(BadArgument, match=f"offset .*{said}"):
            consumer.seek(tp, given)
        for offset in given, (given,), (given, "a note"):
            with pytest.raises(BadArgument, match=f"offset .*{said}"):
                await consumer.commit({tp: offset})
            with pytest.raises(BadArgument, match=f"offset .*{said}"):
                consumer.commit_async({tp: offset})
        assert [one.value for one in await consumer.poll(timeout_ms=30_000)] == [b"here"]


async def test_offsets_with_more_beside_them(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    bad: list[tuple[Any, str]] = [
        ((1, b"note"), "metadata must be a str, not bytes"),
        ((1, "note", "7"), "the leader epoch must be an int, not a str"),
        ((1, "note", 7, 8), r"must be an offset or \(offset, metadata, leader epoch\)"),
        ((), r"must be an offset or \(offset, metadata, leader epoch\)"),
        ([1], "the offset must be an int, not a list"),
    ]
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        for given, said in bad:
            with pytest.raises(BadArgument, match=said):
                await consumer.commit({tp: given})
        with pytest.raises(BadArgument, match="offsets must be a mapping"):
            await consumer.commit([(tp, 1)])  # type: ignore[arg-type]
        with pytest.raises(BadArgument, match="on_committed must be callable"):
            consumer.commit_async({tp: 1}, "print")  # type: ignore[arg-type]
        await consumer.commit({tp: (1, "note", -1)})


async def test_times(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        for given, said in (("now", "not a str"), (1.5, "not a float"), (-1, "not -1")):
            bad: Any = {tp: given}
            with pytest.raises(BadArgument, match=f"milliseconds since 1970.*{said}|from 0 to .*{said}"):
                await consumer.offsets_for_times(bad)

        with pytest.raises(BadArgument, match="times must be a mapping of partitions to times, not a list"):
            await consumer.offsets_for_times([tp])  # type: ignore[arg-type]


async def test_one_partition_is_no_other_thing(bootstrap: str, topic: str) -> None:
    said = r"partition must be \(topic, partition\)|partitions\[0\]"
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        for bad in (None, "", topic, 7, [topic, 0], (topic,), (topic, "0"), {}, (topic, []), (bytearray(b"x"), 0)):
            given: Any = bad
            with pytest.raises(BadArgument, match=said):
                await consumer.position(given)
            with pytest.raises(BadArgument, match=said):
                consumer.seek(given, 0)
            with pytest.raises(BadArgument, match=said):
                consumer.high_watermark(given)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("max_records", "5", "max_records must be an int, not a str"),
        ("max_records", 0, "max_records must be from 1"),
        ("max_records", 1.5, "max_records must be an int, not a float"),
        ("timeout_ms", "5", "timeout_ms must be a number, not a str"),
        ("timeout_ms", -1, "timeout_ms must be at least 0, not -1"),
        ("timeout_ms", float("nan"), "timeout_ms must be at least 0, not nan"),
    ],
)
async def test_what_poll_is_given(bootstrap: str, topic: str, name: str, given: Any, said: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(BadArgument, match=said):
            await consumer.poll(**{name: given})


async def test_poll_with_nothing_to_read_raises(bootstrap: str, topic: str) -> None:
    said = "nothing to read: subscribe to topics or assign partitions first"
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        with pytest.raises(NotAssigned, match=said):
            await consumer.poll(timeout_ms=10)
        with pytest.raises(NotAssigned, match=said):
            async for _ in consumer:
                pass
        consumer.assign([(topic, 0)])
        assert await consumer.poll(timeout_ms=10) == []
        consumer.assign([])
        with pytest.raises(NotAssigned, match=said):
            await consumer.poll()
        consumer.subscribe(pattern="no-such-topic-.*")  # which has no partitions yet
        assert await consumer.poll(timeout_ms=10) == []
        await consumer.unsubscribe()
        with pytest.raises(NotAssigned, match=said):
            await consumer.poll()
    with SyncConsumer(bootstrap_servers=bootstrap) as blocking:
        with pytest.raises(NotAssigned, match=said):
            blocking.poll(timeout_ms=10)
        with pytest.raises(NotAssigned, match=said):
            next(iter(blocking))


@pytest.mark.parametrize("step", ["_source", "_take"])
async def test_a_fault_of_the_consumers_own_is_raised_by_poll(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Out or back: nobody waits for ever for records that are not asked for any more; the next poll tries again."""

    def fails(*_: object) -> None:
        raise LookupError("no such street")

    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"here")
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        with monkeypatch.context() as broken:
            broken.setattr(Fetcher, step, fails)
            consumer.assign([(topic, 0)])
            with pytest.raises(ClientFault, match="LookupError: no such street"):
                await consumer.poll(timeout_ms=30_000)
        assert [one.value for one in await consumer.poll(timeout_ms=30_000)] == [b"here"]


async def test_times_of_partitions_that_are_plain_pairs(bootstrap: str, topic: str) -> None:
    pair: Any = (topic, 0)
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        assert await consumer.offsets_for_times({pair: 5}) == {TopicPartition(topic, 0): None}


@pytest.mark.parametrize(("given", "said"), [("5", "a number, not a str"), (-1, "at least 0"), (True, "not a bool")])
async def test_how_long_to_wait(bootstrap: str, topic: str, given: Any, said: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        consumer.assign([tp])
        for wait in (
            consumer.position(tp, timeout_ms=given),
            consumer.commit({tp: 1}, timeout_ms=given),
            consumer.committed([tp], timeout_ms=given),
        ):
            with pytest.raises(BadArgument, match=f"timeout_ms must be {said}|timeout_ms must be a number, {said}"):
                await wait


class _OfAnotherClient:
    def on_partitions_assigned(self, partitions: Any) -> None: ...

    def on_partitions_revoked(self, partitions: Any) -> None: ...


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topics": 7}, "topics must be a list of names, not an int"),
        ({"topics": b"x"}, "topics must be a list of names, not bytes"),
        ({"topics": [7]}, r"topics\[0\] must be a str, not an int"),
        ({"topics": []}, "subscribe takes the names of topics"),
        ({}, "subscribe takes topics or a pattern"),
        ({"topics": "x", "pattern": "x"}, "subscribe takes topics or a pattern"),
        ({"pattern": 7}, "pattern must be a str or a compiled expression, not an int"),
        ({"pattern": "("}, "pattern '\\(' is not a regular expression: missing"),
        ({"pattern": re.compile(b"x")}, "pattern must be an expression for str, not for bytes"),
        (
            {"topics": "x", "listener": _OfAnotherClient()},
            "listener must have one of the methods on_assigned",
        ),
        ({"pattern": "x", "listener": print}, "listener must have one of the methods"),
    ],
)
async def test_what_is_subscribed_to(bootstrap: str, topic: str, given: dict[str, Any], said: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        with pytest.raises(BadArgument, match=said):
            consumer.subscribe(**given)
        assert consumer.subscription() == []
    face = await asyncio.to_thread(SyncConsumer, bootstrap_servers=bootstrap, group_id=topic)
    try:
        with pytest.raises(BadArgument, match=said):
            await asyncio.to_thread(lambda: face.subscribe(**given))
    finally:
        await asyncio.to_thread(face.close)


async def test_what_a_consumer_cannot_do_now_is_an_error_of_the_client(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        with pytest.raises(NotAssigned, match=f"{tp} is not assigned"):
            consumer.seek(tp, 1)
        consumer.assign([tp])
        with pytest.raises(WrongConsumerState, match="assigned by hand"):
            consumer.subscribe(topic)
        await consumer.unsubscribe()
        consumer.subscribe(topic)
        with pytest.raises(WrongConsumerState, match="subscribed to"):
            consumer.assign([tp])


async def test_a_commit_that_close_cancels_is_heard_of(bootstrap: str, topic: str) -> None:
    """Whether the task had begun or not."""
    tp = TopicPartition(topic, 0)
    heard: list[Any] = []
    begun = asyncio.Event()

    def act(request: Request) -> Action:
        if request.key != ApiKey.OFFSET_COMMIT:
            return Pass()
        begun.set()
        return Silence()

    async with Proxy(bootstrap, act) as proxy:
        consumer = Consumer(bootstrap_servers=proxy.bootstrap, group_id=topic)
        consumer.commit_async({tp: 1}, lambda _, error: heard.append(error))
        await begun.wait()
        consumer.commit_async({tp: 2}, lambda _, error: heard.append(error))
        await consumer._group.commits.close()  # type: ignore[union-attr]
        await consumer.close(commit=False)
    assert [type(error) for error in heard] == [ClientClosed, ClientClosed]


async def test_what_is_asked_of_several_partitions_is_done_to_all_or_none(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for value in b"one", b"two":
            await producer.send_and_wait(topic, value)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        reading = aiter(consumer)
        assert (await anext(reading)).value == b"one"
        for ask in consumer.pause, consumer.seek_to_beginning, consumer.seek_to_end:
            with pytest.raises(NotAssigned, match=f"{topic}-7 is not assigned"):
                ask(tp, TopicPartition(topic, 7))
        assert consumer.paused() == []
        assert (await anext(reading)).value == b"two"
        consumer.pause(tp)
        with pytest.raises(NotAssigned):
            consumer.resume(tp, TopicPartition(topic, 7))
        assert consumer.paused() == [tp]


@pytest.mark.parametrize("length", [10**400, 10**5000], ids=["hundreds", "thousands"])
async def test_a_length_that_no_clock_has_is_for_ever(bootstrap: str, topic: str, length: int) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"here")
        async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=topic) as consumer:
            consumer.assign([tp])
            assert len(await consumer.poll(timeout_ms=length)) == 1
            assert await consumer.position(tp, timeout_ms=length) == 1
            await consumer.commit(timeout_ms=length)
            assert await consumer.committed([tp], timeout_ms=length) == {tp: (1, "", 0)}
            with pytest.raises(BadArgument, match="timeout_ms must be at least 0, not "):
                await consumer.poll(timeout_ms=-length)
        await producer.close(length)


async def test_an_iteration_that_goes_on_hears_that_its_consumer_is_closed(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for value in b"one", b"two":
            await producer.send_and_wait(topic, value)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        reading = aiter(consumer)
        assert (await anext(reading)).value == b"one"
    with pytest.raises(ClientClosed):
        await anext(reading)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ("\ud800", r"-0: the metadata '\\ud800' is no text that UTF-8 can write"),
        ("x" * 40_000, "-0: the metadata has 40000 bytes: 32767 at most can be sent"),
    ],
)
async def test_metadata_that_cannot_be_sent(bootstrap: str, topic: str, metadata: str, said: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        consumer.assign([tp])
        with pytest.raises(BadArgument, match=said):
            await consumer.commit({tp: (1, metadata)})
        with pytest.raises(BadArgument, match=said):
            consumer.commit_async({tp: (1, metadata)})
