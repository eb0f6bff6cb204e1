"""What `send` is given is checked before anything is queued: an error names the argument, and the producer goes on."""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.client.errors import (
    BadArgument,
    ClientClosed,
    KafkaError,
    PartitionerFailed,
    RecordTooLarge,
    SerializationFailed,
)
from ottla.client.producing.producer import Producer
from ottla.client.records import ProducerRecord
from ottla.client.sync import Producer as SyncProducer
from ottla.client.sync.producer import Delivery as SyncDelivery
from tests.client.reading import read_all

RELEASED = memoryview(b"gone")
RELEASED.release()

#: Arguments beside a topic and a value, and what the error says of them.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"headers": (("source", "web"),)}, r"headers\[0\]: the value of 'source' must be bytes or None, not a str"),
    ({"headers": ((b"source", b"web"),)}, r"headers\[0\]: the name must be a str, not bytes"),
    ({"headers": ((None, b"web"),)}, r"headers\[0\]: the name must be a str, not None"),
    ({"headers": (("source", RELEASED),)}, r"headers\[0\]: the value of 'source' cannot be read: .* released"),
    ({"headers": {"source": b"web"}}, r"headers must be \(name, value\) pairs, not a dict: .*\.items\(\)"),
    ({"headers": {}}, r"headers must be \(name, value\) pairs, not a dict"),
    ({"headers": (("a", b"1"), ("b", 2))}, r"headers\[1\]: the value of 'b' must be bytes or None, not an int"),
    ({"headers": (("a",),)}, r"headers\[0\] must be a \(name, value\) pair"),
    ({"headers": (("a", b"1", b"2"),)}, r"headers\[0\] must be a \(name, value\) pair"),
    ({"headers": ("ab",)}, r"headers\[0\] must be a \(name, value\) pair"),
    ({"headers": ("a", b"1")}, r"headers\[0\] must be a \(name, value\) pair"),
    ({"headers": "source=web"}, r"headers must be \(name, value\) pairs, not a str"),
    ({"headers": 7}, r"headers must be \(name, value\) pairs, not an int"),
    ({"headers": (("\ud800", b"1"),)}, r"headers\[0\]: the name '\\ud800' is no text that UTF-8 can write"),
    ({"timestamp": "now"}, r"timestamp must be milliseconds since 1970, as an int, not a str"),
    ({"timestamp": 1.5}, r"timestamp must be milliseconds since 1970, as an int, not a float"),
    ({"timestamp": True}, r"timestamp must be .* not a bool"),
    ({"timestamp": datetime(2026, 1, 1, tzinfo=UTC)}, r"timestamp must be .* not a datetime"),
    ({"timestamp": -1}, r"timestamp must be from 0 to 9223372036854775807, not -1"),
    ({"timestamp": 2**63}, r"timestamp must be from 0 to 9223372036854775807, not 9223372036854775808"),
    ({"partition": "0"}, r"partition must be an int, not a str"),
    ({"partition": 0.0}, r"partition must be an int, not a float"),
    ({"partition": False}, r"partition must be an int, not a bool"),
    ({"partition": -1}, r"partition must be from 0 to 2147483647, not -1"),
    ({"partition": 2**31}, r"partition must be from 0 to 2147483647, not 2147483648"),
    ({"on_delivery": "print"}, r"on_delivery must be callable, not a str"),
]
BAD_TOPICS: list[tuple[Any, str]] = [
    (None, "topic must be a str, not None"),
    (b"orders", "topic must be a str, not bytes"),
    (["orders"], "topic must be a str, not a list"),
    ("", "topic must not be empty"),
    ("\ud800", r"topic '\\ud800' is no text that UTF-8 can write"),
    ("x" * 40_000, "topic is a name of 40000 characters: a topic's has 249 at most"),
]


def ids(bad: list[tuple[Any, str]]) -> list[str]:
    return [f"{number}-{ascii(given)[:30]}" for number, (given, _) in enumerate(bad)]


@pytest.mark.parametrize(("given", "said"), BAD, ids=ids(BAD))
async def test_a_bad_argument_is_refused_and_the_next_record_is_written(
    bootstrap: str, topic: str, given: dict[str, Any], said: str
) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for _ in range(2):  # before the topic is known, and when it is
            with pytest.raises(BadArgument, match=said):
                await producer.send(topic, b"bad", **given)
            with pytest.raises(BadArgument, match=said):
                producer.try_send(topic, b"bad", **given)
            await producer.send_and_wait(topic, b"good")
    assert [one.value for one in await read_all(bootstrap, topic)] == [b"good"] * 2


@pytest.mark.parametrize(("given", "said"), BAD, ids=ids(BAD))
def test_the_synchronous_face_refuses_it_in_the_callers_thread(
    bootstrap: str, topic: str, given: dict[str, Any], said: str
) -> None:
    with SyncProducer(bootstrap_servers=bootstrap) as producer:
        for _ in range(2):
            with pytest.raises(BadArgument, match=said):
                producer.send(topic, b"bad", **given)
            assert producer.send(topic, b"good").result(60).topic == topic


@pytest.mark.parametrize(("given", "said"), BAD_TOPICS, ids=ids(BAD_TOPICS))
async def test_topics(bootstrap: str, given: Any, said: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(BadArgument, match=said):
            await producer.send(given, b"x")
        with pytest.raises(BadArgument, match=said):
            await producer.partitions_for(given)
    with SyncProducer(bootstrap_servers=bootstrap) as blocking, pytest.raises(BadArgument, match=said):
        blocking.send(given, b"x")


@pytest.mark.parametrize("field", ["key", "value"])
@pytest.mark.parametrize("given", ["text", 7, 1.5, object(), ["a"], {"a": 1}, [b"a"]])
async def test_keys_and_values_that_are_no_bytes(bootstrap: str, topic: str, field: str, given: Any) -> None:
    record = {"value": b"v", "key": b"k", field: given}
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(SerializationFailed, match=f"the {field} is an? .* not bytes"):
            await producer.send(topic, **record)
        await producer.send_and_wait(topic, b"good")
    with SyncProducer(bootstrap_servers=bootstrap) as blocking:
        with pytest.raises(SerializationFailed, match=f"the {field} is an? .* not bytes"):
            blocking.send(topic, **record)
        blocking.send(topic, b"good").result(60)


async def test_a_view_that_was_released(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(SerializationFailed, match=r"the key cannot be read: .* released"):
            await producer.send(topic, b"bad", key=RELEASED)
        await producer.send_and_wait(topic, b"good")


async def test_what_is_not_quite_what_is_asked_for_and_can_be_taken(bootstrap: str, topic: str) -> None:
    class Topic(enum.StrEnum):
        here = topic

    class Index:
        def __index__(self) -> int:
            return 0

    pairs: list[Any] = [("a", bytearray(b"1")), ["b", memoryview(b"2")], ("c", None)]
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(Topic.here, b"list", headers=pairs)
        await producer.send_and_wait(topic, b"generator", headers=(pair for pair in pairs))
        await producer.send_and_wait(topic, b"items", headers={"a": b"1"}.items())
        await producer.send_and_wait(topic, b"none", headers=None)
        await producer.send_and_wait(topic, None, key=b"k", headers=None)
        number: Any = Index()
        await producer.send_and_wait(topic, b"index", partition=number, timestamp=number)
    with SyncProducer(bootstrap_servers=bootstrap) as blocking:
        blocking.send(topic, b"generator", headers=(pair for pair in pairs)).result(60)
    three = (("a", b"1"), ("b", b"2"), ("c", None))
    records = await read_all(bootstrap, topic)
    assert [one.headers for one in records] == [three, three, (("a", b"1"),), (), (), (), three]
    assert records[5].timestamp == 0


async def test_a_header_that_changes_after_it_was_sent(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        content, headers = bytearray(b"before"), []
        headers.append(("h", content))
        await producer.send(topic, b"x", headers=headers)
        content[:] = b"after!"
        headers.clear()
    assert [one.headers for one in await read_all(bootstrap, topic)] == [(("h", b"before"),)]


@pytest.mark.parametrize("face", ["asyncio", "threads"])
async def test_an_oversize_record_is_refused_by_send(bootstrap: str, topic: str, face: str) -> None:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap, "max_request_size": 10_000}
    large = (("h", b"x" * 10_000),)
    if face == "asyncio":
        async with Producer(settings) as producer:
            for record in {"value": b"x" * 10_000}, {"value": b"x", "headers": large}:
                with pytest.raises(RecordTooLarge, match=r"max\.request\.size"):
                    await producer.send(topic, **record)
            assert (await producer.send_and_wait(topic, b"good")).offset == 0
        return
    with SyncProducer(settings) as blocking:
        for record in {"value": b"x" * 10_000}, {"value": b"x", "headers": large}:
            with pytest.raises(RecordTooLarge, match=r"max\.request\.size"):
                blocking.send(topic, **record)
        assert blocking.send_and_wait(topic, b"good", timeout=60).offset == 0
    with SyncProducer(settings, buffer_memory=500) as tiny, pytest.raises(RecordTooLarge, match=r"buffer\.memory"):
        tiny.send(topic, b"x" * 600)


def raises(*_: object, **__: object) -> int:
    raise LookupError("no such street")


@pytest.mark.parametrize(
    ("partitioner", "said"),
    [
        (raises, "the partitioner raised LookupError: no such street"),
        (lambda *_: "0", "the partitioner returned a str, not an int"),
        (lambda *_: None, "the partitioner returned None, not an int"),
        (lambda *_: 1.0, "the partitioner returned a float, not an int"),
        (lambda *_: 7, "the partitioner chose partition 7: the last one is 0"),
    ],
)
async def test_a_partitioner_that_fails(bootstrap: str, topic: str, partitioner: Callable[..., Any], said: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, partitioner=partitioner) as producer:
        with pytest.raises(PartitionerFailed, match=said):
            await producer.send(topic, b"x")
        await producer.send_and_wait(topic, b"good", partition=0)
    with SyncProducer(bootstrap_servers=bootstrap, partitioner=partitioner) as blocking:
        refused = blocking.send(topic, b"x")
        with pytest.raises(PartitionerFailed, match=said):
            refused.result(60)
        blocking.send(topic, b"good", partition=0).result(60)


def test_call_backs_that_raise_harm_nobody(bootstrap: str, topic: str) -> None:
    def spiteful(_: SyncDelivery) -> None:
        raise LookupError("spite")

    with SyncProducer(bootstrap_servers=bootstrap, partitioner=raises) as producer:
        refused = producer.send(topic, b"x", on_delivery=spiteful)
        written = producer.send(topic, b"good", partition=0, on_delivery=spiteful)
        assert isinstance(refused.exception(60), KafkaError)
        assert written.result(60).offset == 0


async def test_a_whole_record_is_checked_too(bootstrap: str, topic: str) -> None:
    bad: Any = {"source": "web"}
    record = ProducerRecord(topic=topic, value=b"x", headers=bad)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(BadArgument, match="headers must be"):
            await producer.send_record(record)
    with SyncProducer(bootstrap_servers=bootstrap) as blocking, pytest.raises(BadArgument, match="headers must be"):
        blocking.send_record(record)


@pytest.mark.parametrize(
    ("codec", "level"), [("gzip", 10), ("gzip", 0), ("lz4", 0), ("lz4", 18), ("zstd", 23), ("zstd", -131_073)]
)
def test_levels_that_a_codec_does_not_have(codec: str, level: int) -> None:
    """They are found when the first batch is compressed, unless somebody looks before."""
    with pytest.raises(ValueError, match=rf"compression\.{codec}\.level must be"):
        Producer(bootstrap_servers="localhost:1", compression_type=codec, **{f"compression_{codec}_level": level})


async def test_a_fault_of_the_producers_own_ends_every_delivery(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong between the queues and the socket: nobody waits for ever."""
    async with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        deliveries = [await producer.send(topic, b"x") for _ in range(3)]
        assert producer._sender is not None
        monkeypatch.setattr(producer._sender, "_request", raises)
        await producer.flush()
        for delivery in deliveries:
            with pytest.raises(KafkaError, match="no such street"):
                await delivery
        with pytest.raises(KafkaError, match="no such street"):
            await producer.send(topic, b"x")


def test_a_record_that_comes_while_another_thread_closes(bootstrap: str, topic: str) -> None:
    """It is refused by `send` or it has an end: a thread that waits for it does not wait for ever."""
    for _ in range(20):
        producer = SyncProducer(bootstrap_servers=bootstrap)
        producer.send(topic, b"first").result(60)
        deliveries: list[SyncDelivery] = []

        def work(producer: SyncProducer = producer, deliveries: list[SyncDelivery] = deliveries) -> None:
            try:
                while True:
                    deliveries.append(producer.send(topic, b"x"))
            except ClientClosed:
                pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(deliveries) < 100:
            pass
        producer.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert all(delivery.done() for delivery in deliveries)


def test_a_record_between_the_last_look_and_the_end(bootstrap: str, topic: str) -> None:
    """The thread has passed the question whether it is closed when the other one closes it."""
    producer = SyncProducer(bootstrap_servers=bootstrap)
    producer.send(topic, b"first").result(60)

    class Closing(deque[SyncDelivery]):
        def append(self, one: SyncDelivery, /) -> None:
            closing = threading.Thread(target=producer.close)
            closing.start()
            closing.join(60)
            producer._told = True  # as if a third thread had woken the loop just before it ended
            super().append(one)

    producer._handed = Closing()
    delivery = producer.send(topic, b"late")
    assert isinstance(delivery.exception(60), ClientClosed)


async def test_a_record_is_a_record(bootstrap: str) -> None:
    given: Any = ("orders", b"x")
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(BadArgument, match="record must be a ProducerRecord, not a tuple"):
            await producer.send_record(given)
    said = pytest.raises(BadArgument, match="record must be a ProducerRecord, not a tuple")
    with SyncProducer(bootstrap_servers=bootstrap) as blocking, said:
        blocking.send_record(given)


@pytest.mark.parametrize("seconds", ["5", True, float("nan")])
def test_a_wait_has_a_length(bootstrap: str, topic: str, seconds: Any) -> None:
    with SyncProducer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(BadArgument, match="timeout must be"):
            producer.flush(seconds)
        with pytest.raises(BadArgument, match="timeout must be"):
            producer.send_and_wait(topic, b"x", timeout=seconds)
        producer.flush(float("inf"))
