"""The consumer: positions, order, bounds; and what it does when the log or the way to it is not as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.proxy import Action, Cut, Pass, Proxy, Raw, Reply, Request
from tests.client.reading import read_all

from ottla.client.admin.admin import Admin
from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import (
    ClientClosed,
    CorruptRecords,
    KafkaError,
    LogTruncated,
    NoOffset,
    OffsetOutOfRange,
    SerializationFailed,
)
from ottla.client.producing.producer import Producer
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.fetch import FetchResponse
from ottla.records.batch import iterate

IMPATIENT = {"retry_backoff_ms": 2, "retry_backoff_max_ms": 10, "reconnect_backoff_ms": 1, "fetch_max_wait_ms": 50}


async def fill(bootstrap: str, topic: str, count: int, *, partition: int = 0, **settings: Any) -> None:
    """Records 0, 1, 2, ... with their number as the time too, in batches of ten or so."""
    async with Producer(bootstrap_servers=bootstrap, batch_size=700, **settings) as producer:
        for n in range(count):
            await producer.send(topic, b"%d" % n + b"." * 40, partition=partition, timestamp=1_000_000 + n)


def numbers(records: list[Any]) -> list[int]:
    return [int(record.value.rstrip(b".")) for record in records]


async def poll_all(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    while len(records) < count:
        records += await consumer.poll()
    return records


async def test_everything_in_order_from_the_beginning(bootstrap: str, wide_topic: str) -> None:
    for partition in range(4):
        await fill(bootstrap, wide_topic, 100, partition=partition, compression_type="lz4")
    records = await read_all(bootstrap, wide_topic, max_partition_fetch_bytes=1000, max_poll_records=7)
    for partition in range(4):
        own = [one for one in records if one.partition == partition]
        assert numbers(own) == list(range(100))
        assert [one.offset for one in own] == list(range(100))


async def test_poll_gives_no_more_than_it_may_and_waits_no_longer(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 30)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        assert numbers(await consumer.poll(max_records=1)) == [0]
        assert await consumer.position(tp) == 1
        assert numbers(await poll_all(consumer, 29)) == list(range(1, 30))
        assert await consumer.poll(timeout_ms=1) == []
        assert consumer.high_watermark(tp) == 30


async def test_seeking(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 50)
    async with Consumer(bootstrap_servers=bootstrap, **IMPATIENT) as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        assert await consumer.position(tp) == 50  # latest is where reading begins
        consumer.seek(tp, 17)  # in the midst of a batch
        assert numbers(await consumer.poll(max_records=3)) == [17, 18, 19]
        consumer.seek(tp, 3)
        assert numbers(await consumer.poll(max_records=3)) == [3, 4, 5]
        consumer.seek_to_beginning()
        assert numbers(await consumer.poll(max_records=2)) == [0, 1]
        consumer.seek_to_end(tp)
        assert await consumer.position(tp) == 50
        with pytest.raises(ValueError, match="offset must be from 0"):
            consumer.seek(tp, -1)
        with pytest.raises(ValueError, match="is not assigned"):
            consumer.seek(TopicPartition(topic, 1), 0)


async def test_offsets(bootstrap: str, wide_topic: str) -> None:
    await fill(bootstrap, wide_topic, 20, partition=1)
    one, two = TopicPartition(wide_topic, 1), TopicPartition(wide_topic, 2)
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        assert await consumer.beginning_offsets([one, two]) == {one: 0, two: 0}
        assert await consumer.end_offsets([one, two]) == {one: 20, two: 0}
        found = await consumer.offsets_for_times({one: 1_000_007, two: 1})
        assert found[two] is None
        assert found[one] is not None
        assert (found[one].offset, found[one].timestamp) == (7, 1_000_007)
        assert [tp.partition for tp in await consumer.partitions_for(wide_topic)] == [0, 1, 2, 3]


async def test_pausing(bootstrap: str, wide_topic: str) -> None:
    zero, one = TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 1)
    await fill(bootstrap, wide_topic, 5, partition=0)
    await fill(bootstrap, wide_topic, 5, partition=1)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **IMPATIENT) as consumer:
        consumer.assign([zero, one])
        consumer.pause(zero)
        assert consumer.paused() == [zero]
        records = await poll_all(consumer, 5)
        assert {record.partition for record in records} == {1}
        assert await consumer.poll(timeout_ms=100) == []
        consumer.resume(zero)
        assert {record.partition for record in await poll_all(consumer, 5)} == {0}


async def test_what_lies_ready_of_a_paused_partition_takes_no_room_of_others(bootstrap: str, wide_topic: str) -> None:
    zero, one = TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 1)
    await fill(bootstrap, wide_topic, 40, partition=0)
    async with (
        asyncio.timeout(60),
        Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_bytes=1, **IMPATIENT) as consumer,
    ):
        consumer.assign([zero, one])
        assert len(await consumer.poll(max_records=1)) == 1
        while not consumer._reading.assigned[zero].buffered_bytes:  # noqa: ASYNC110 - read ahead, as nobody is told
            await asyncio.sleep(0.002)
        consumer.pause(zero)
        await fill(bootstrap, wide_topic, 5, partition=1)
        assert {record.partition for record in await poll_all(consumer, 5)} == {1}
        consumer.resume(zero)
        assert numbers(await poll_all(consumer, 39)) == list(range(1, 40))


async def test_iteration_counts_what_it_gave_out(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 40)
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        seen = []
        async for record in consumer:
            seen.append(record)
            if len(seen) == 3:
                break
        assert numbers(seen) == [0, 1, 2]
        assert await consumer.position(tp) == 3
        assert numbers(await consumer.poll(max_records=2)) == [3, 4]
        consumer.seek(tp, 30)
        async for record in consumer:
            assert numbers([record]) == [30]
            break


async def test_assigning_again_keeps_positions(bootstrap: str, wide_topic: str) -> None:
    zero, one = TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 1)
    await fill(bootstrap, wide_topic, 10, partition=0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **IMPATIENT) as consumer:
        consumer.assign([zero])
        await consumer.poll(max_records=4)
        consumer.assign([one, zero])
        assert consumer.assignment() == [zero, one]
        assert await consumer.position(zero) == 4
        consumer.assign([one])
        with pytest.raises(ValueError, match="is not assigned"):
            await consumer.position(zero)
        assert await consumer.poll(timeout_ms=100) == []


async def test_records_that_come_while_waiting(bootstrap: str, topic: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert await consumer.poll(timeout_ms=20) == []
        await fill(bootstrap, topic, 3)
        assert numbers(await poll_all(consumer, 3)) == [0, 1, 2]


async def test_closing_ends_it(bootstrap: str, topic: str) -> None:
    consumer = Consumer(bootstrap_servers=bootstrap)
    consumer.assign([TopicPartition(topic, 0)])
    await consumer.poll(timeout_ms=1)
    await consumer.close()
    with pytest.raises(ClientClosed):
        await consumer.poll()


# No position


async def test_without_a_reset_one_has_to_seek(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 3)
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([tp])
        with pytest.raises(NoOffset, match="seek first"):
            await consumer.poll()
        consumer.seek(tp, 1)
        assert numbers(await consumer.poll()) == [1, 2]


async def test_reading_begins_an_hour_ago(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send(topic, b"old", timestamp=1_000_000)
        await producer.send_and_wait(topic, b"new")
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="by_duration:PT1H") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in await consumer.poll()] == [b"new"]


async def test_out_of_range_begins_where_the_reset_says(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 30)
    tp = TopicPartition(topic, 0)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        assert await admin.delete_records({tp: 12}) == {tp: 12}
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **IMPATIENT) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 5)
        assert numbers(await consumer.poll(max_records=1)) == [12]
        consumer.seek(tp, 1000)
        assert numbers(await consumer.poll(max_records=1)) == [12]
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="none", **IMPATIENT) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 5)
        for _ in range(2):  # until somebody seeks
            with pytest.raises(OffsetOutOfRange) as caught:
                await consumer.poll()
            assert (caught.value.partition, caught.value.offset) == (tp, 5)
        consumer.seek(tp, 29)
        assert numbers(await consumer.poll()) == [29]


# Damage


async def damaged(
    bootstrap: str, topic: str, change: Callable[[FetchResponse], None], **settings: Any
) -> tuple[list[int], KafkaError]:
    """What is read before the fault, and the fault, when the first fetch's answer is changed on its way."""
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            return Pass(change) if request.key == ApiKey.FETCH else Pass()

        proxy.rule = rule
        async with Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest", **settings) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            records: list[Any] = []

            async def read_on() -> None:
                while True:
                    records.extend(await consumer.poll())

            with pytest.raises(KafkaError) as caught:
                await read_on()
            proxy.rule = lambda _: Pass()
            consumer.seek(TopicPartition(topic, 0), 35)
            assert numbers(await poll_all(consumer, 5)) == list(range(35, 40))
            return numbers(records), caught.value


def flip(answer: FetchResponse, at: int) -> None:
    for topic in answer.responses:
        for one in topic.partitions:
            records = bytearray(one.records or b"")
            if len(records) > at:
                records[at] ^= 0x40
                one.records = bytes(records)


async def test_a_flipped_bit_is_found_and_can_be_passed(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 40)
    read, fault = await damaged(bootstrap, topic, lambda answer: flip(answer, 1000))
    assert isinstance(fault, CorruptRecords)
    assert read == list(range(fault.offset))
    assert 0 < fault.offset < 35


async def test_a_batch_whose_length_lies(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 40)
    read, fault = await damaged(bootstrap, topic, lambda answer: flip(answer, 8))
    assert isinstance(fault, KafkaError)
    assert read == []


async def test_crcs_are_checked_only_where_they_should_be(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 40)

    def flipped(request: Request) -> Action:
        return Pass(lambda answer: flip(answer, 90)) if request.key == ApiKey.FETCH else Pass()

    async with (
        Proxy(bootstrap, flipped) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest", check_crcs=False) as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0)])
        assert len(await poll_all(consumer, 40)) == 40


async def test_what_cannot_be_deserialized_stops_there(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for value in b"1", b"2", b"three", b"4":
            await producer.send(topic, value)
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer=int) as consumer:
        consumer.assign([tp])
        assert [record.value for record in await poll_all(consumer, 2)] == [1, 2]
        with pytest.raises(SerializationFailed, match="offset 2"):
            await consumer.poll()
        assert await consumer.position(tp) == 2
        consumer.seek(tp, 3)
        assert [record.value for record in await consumer.poll()] == [4]


# Faults on the way


FAULTS: dict[str, Callable[[Request], Action]] = {
    "cut before": lambda request: Cut(),
    "cut after": lambda request: Cut(forwarded=True),
    "cut within": lambda request: Cut(forwarded=True, answer_bytes=100),
    "garbage": lambda request: Raw(bytes(100)),
    "session unknown": lambda request: Reply(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)),
    "session epoch": lambda request: Reply(FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)),
    "session ids": lambda request: Reply(FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)),
    "server error": lambda request: Reply(FetchResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)),
    "not leader": lambda request: Pass(lambda answer: refuse(answer, ErrorCode.NOT_LEADER_OR_FOLLOWER)),
    "fenced": lambda request: Pass(lambda answer: refuse(answer, ErrorCode.FENCED_LEADER_EPOCH)),
    "unknown id": lambda request: Pass(lambda answer: refuse(answer, ErrorCode.UNKNOWN_TOPIC_ID)),
}


def refuse(answer: FetchResponse, error: int) -> None:
    for topic in answer.responses:
        for one in topic.partitions:
            one.error_code = error
            one.records = None


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_third_fetch_goes_wrong(bootstrap: str, wide_topic: str, fault: str) -> None:
    for partition in range(2):
        await fill(bootstrap, wide_topic, 100, partition=partition)
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            if request.key == ApiKey.FETCH and proxy.count(ApiKey.FETCH) % 3 == 2:
                return FAULTS[fault](request)
            return Pass()

        proxy.rule = rule
        records = await read_all(proxy.bootstrap, wide_topic, max_partition_fetch_bytes=1500, **IMPATIENT)
    for partition in range(2):
        assert numbers([one for one in records if one.partition == partition]) == list(range(100))


async def test_sessions_name_only_what_changes(bootstrap: str, wide_topic: str) -> None:
    await fill(bootstrap, wide_topic, 100, partition=2)
    async with Proxy(bootstrap) as proxy:
        await read_all(proxy.bootstrap, wide_topic, max_partition_fetch_bytes=1500, **IMPATIENT)
        asked = [request.decoded() for request in proxy.requests if request.key == ApiKey.FETCH]
    assert asked[0].session_epoch == 0
    assert [one.session_epoch for one in asked[1:4]] == [1, 2, 3]
    assert sum(len(topic.partitions) for topic in asked[0].topics) == 4
    assert all(sum(len(topic.partitions) for topic in one.topics) <= 1 for one in asked[1:4])


@pytest.mark.parametrize("reset", ["earliest", "none"])
async def test_a_log_that_has_another_past(bootstrap: str, topic: str, reset: str) -> None:
    """A new leader that lacks the last records that were read says where the two pasts part."""
    await fill(bootstrap, topic, 20)
    tp = TopicPartition(topic, 0)
    async with (
        Proxy(bootstrap) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset=reset, **IMPATIENT) as consumer,
    ):
        consumer.assign([tp])
        consumer.seek(tp, 0)
        await poll_all(consumer, 20)

        def diverge(answer: FetchResponse) -> None:
            for one in answer.responses:
                one.partitions[0].diverging_epoch.epoch = 0
                one.partitions[0].diverging_epoch.end_offset = 14
                proxy.rule = lambda _: Pass()

        proxy.rule = lambda request: Pass(diverge) if request.key == ApiKey.FETCH else Pass()
        await fill(bootstrap, topic, 1)  # wakes the fetch that waits
        if reset == "none":
            with pytest.raises(LogTruncated) as caught:
                await consumer.poll()
            assert (caught.value.offset, caught.value.divergent_offset) == (20, 14)
        else:
            assert (await consumer.poll(max_records=1))[0].offset == 14


async def test_the_broker_is_told_the_epoch_of_what_was_read(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 20)
    async with Proxy(bootstrap) as proxy:
        await read_all(proxy.bootstrap, topic, max_partition_fetch_bytes=300, **IMPATIENT)
        asked = [request.decoded().topics for request in proxy.requests if request.key == ApiKey.FETCH]
    (first,) = asked[0][0].partitions
    (later,) = asked[1][0].partitions
    assert (first.fetch_offset, first.last_fetched_epoch) == (0, -1)
    assert later.fetch_offset > 0
    assert later.last_fetched_epoch == later.current_leader_epoch >= 0


EPOCH_AT = 12  # of a batch; what is before its checksum may be changed


@pytest.mark.parametrize("how", ["records", "one at a time", "arrow", "batches"])
async def test_the_end_of_a_transaction_is_part_of_what_was_read(bootstrap: str, topic: str, how: str) -> None:
    """Whoever goes on behind the marker says by which leader it was written, not who wrote the last record: a log in
    which that leader's records end before would have another past."""

    def older_records(answer: FetchResponse) -> None:
        for one in answer.responses:
            for data in one.partitions:
                changed = bytearray(data.records or b"")
                for pos, header in iterate(bytes(changed), 0, len(changed)):
                    if not header.is_control:
                        changed[pos + EPOCH_AT : pos + EPOCH_AT + 4] = b"\xff\xff\xff\xff"
                data.records = bytes(changed)

    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer, producer.transaction():
        await producer.send(topic, b"one")
        await producer.send(topic, b"two")
    rule = lambda one: Pass(older_records if one.key == ApiKey.FETCH else None)  # noqa: E731
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", "enable_auto_commit": False}
    async with (
        Proxy(bootstrap, rule) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, group_id=f"group-of-{topic}", **settings, **IMPATIENT) as consumer,
    ):
        consumer.assign([tp])
        while await consumer.position(tp) < 3:
            if how == "records":
                await consumer.poll(timeout_ms=20)
            elif how == "one at a time":
                await consumer.poll(max_records=1, timeout_ms=20)
            elif how == "arrow":
                await consumer.poll_arrow(timeout_ms=20)
            else:
                await consumer.poll_batches(timeout_ms=20)
        await consumer.commit()
        assert await consumer.committed([tp]) == {tp: CommittedOffset(3, "", 0)}
