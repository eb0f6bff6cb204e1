"""Many records in one call: all are checked before the first is queued, and each has a delivery."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.errors import BadArgument, KafkaError, PartitionerFailed, RecordTooLarge, SerializationFailed
from ottla.client.producing.producer import Producer
from ottla.client.records import ProducerRecord
from ottla.client.sync import Producer as SyncProducer
from ottla.client.sync.producer import HANDED_OVER_MAX
from tests.client.reading import read_all


def record(topic: str, value: Any, **more: Any) -> ProducerRecord:
    return ProducerRecord(topic=topic, value=value, **more)


async def test_many_records_in_their_order(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, batch_size=500) as producer:
        deliveries = await producer.send_many(
            record(topic, b"%d" % n, key=b"k", headers=(("n", b"%d" % n),), timestamp=n + 1) for n in range(1000)
        )
        assert [(await one).offset for one in deliveries] == list(range(1000))
    found = await read_all(bootstrap, topic)
    assert [(one.value, one.headers, one.timestamp) for one in found] == [
        (b"%d" % n, (("n", b"%d" % n),), n + 1) for n in range(1000)
    ]


async def test_more_than_there_is_room_for(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=20_000, batch_size=1000) as producer:
        deliveries = await producer.send_many([record(topic, b"x" * 100) for _ in range(500)])
        assert len(deliveries) == 500
    assert len(await read_all(bootstrap, topic)) == 500


BAD: list[tuple[dict[str, Any], type[KafkaError], str]] = [
    ({"headers": {"a": b"1"}}, BadArgument, r"records\[2\]: headers must be"),
    ({"timestamp": "now"}, BadArgument, r"records\[2\]: timestamp must be"),
    ({"topic": None}, BadArgument, r"records\[2\]: topic must be a str"),
    ({"value": "text"}, SerializationFailed, r"records\[2\]: the value is a str"),
    ({"key": 7}, SerializationFailed, r"records\[2\]: the key is an int"),
    ({"value": b"x" * 2_000_000}, RecordTooLarge, r"records\[2\]: a record of 2000032 bytes is over"),
]


@pytest.mark.parametrize(("more", "kind", "said"), BAD)
async def test_a_bad_one_among_them_and_nothing_is_queued(
    bootstrap: str, topic: str, more: dict[str, Any], kind: type[KafkaError], said: str
) -> None:
    bad = ProducerRecord(**{"topic": topic, "value": b"bad", **more})
    records = [record(topic, b"one"), record(topic, b"two"), bad, record(topic, b"four")]
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(kind, match=said):
            await producer.send_many(records)
        await producer.send_and_wait(topic, b"good")
    with SyncProducer(bootstrap_servers=bootstrap) as blocking, pytest.raises(kind, match=said):
        blocking.send_many(records)
    assert [one.value for one in await read_all(bootstrap, topic)] == [b"good"]


async def test_what_are_no_records(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        assert await producer.send_many([]) == []
        bad: Any
        for bad, said in (([b"x"], r"records\[0\] must be a ProducerRecord, not bytes"), (topic, r"not a str")):
            with pytest.raises(BadArgument, match=said):
                await producer.send_many(bad)


async def test_one_that_cannot_be_queued_has_its_error_in_its_delivery(bootstrap: str, topic: str) -> None:
    """The others are written; a topic that is not there is waited for once, not once a record."""

    def fussy(_: str, key: bytes | None, count: int) -> int:
        return count if key == b"fussy" else 0

    records = [record(topic, b"a"), record("bad/name", b"b"), record(topic, b"c", key=b"fussy"), record(topic, b"d")]
    async with Producer(bootstrap_servers=bootstrap, partitioner=fussy) as producer:
        deliveries = await producer.send_many([*records, record("bad/name", b"e")])
        await producer.flush()
        assert [delivery.done() for delivery in deliveries] == [True] * 5
        kinds = [type(delivery.exception()).__name__ for delivery in deliveries]
        assert kinds == ["NoneType", "InvalidTopic", "PartitionerFailed", "NoneType", "InvalidTopic"]
    with SyncProducer(bootstrap_servers=bootstrap, partitioner=fussy) as blocking:
        refused = blocking.send_many(records)
        assert isinstance(refused[2].exception(60), PartitionerFailed)
        assert refused[3].result(60).offset == 3
    assert [one.value for one in await read_all(bootstrap, topic)] == [b"a", b"d"] * 2


async def test_a_call_that_is_longer_than_its_time(bootstrap: str, topic: str) -> None:
    """Nobody answers: all records of the call wait together for `max.block.ms`."""
    async with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=50) as producer:
        deliveries = await producer.send_many([record(topic, b"x") for _ in range(200)])
        assert all(isinstance(delivery.exception(), KafkaError) for delivery in deliveries)


def test_from_threads(bootstrap: str, topic: str) -> None:
    with SyncProducer(bootstrap_servers=bootstrap) as producer:
        deliveries = producer.send_many(record(topic, b"x") for _ in range(HANDED_OVER_MAX + 100))
        assert deliveries[-1].result(60).offset == HANDED_OVER_MAX + 99
