"""Positions and look-ups: by offset, by time, at both ends, and past them."""

from __future__ import annotations

import threading
import time

import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.interop.clients import SECONDS_MAX, Row, confluent_consumer, read_confluent, write_confluent
from tests.interop.conftest import create_topic

#: Timestamps rise by a thousand, except that the record at offset 5 carries the greatest.
BASE_MS = int(time.time() * 1000) - 3_600_000
TIMES = [BASE_MS + 1000 * n for n in range(10)]
TIMES[5] = BASE_MS + 60_000


@pytest.fixture
def timed_topic(bootstrap: str, topic: str) -> str:
    for n, timestamp in enumerate(TIMES):  # one batch each, so that the look-up must cross batches
        write_confluent(bootstrap, topic, [Row(None, b"%d" % n, (), timestamp)], "none")
    return topic


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(0, 0), (TIMES[0], 0), (TIMES[3] - 1, 3), (TIMES[3], 3), (TIMES[5], 5), (TIMES[9], 5), (TIMES[5] + 1, -1)],
    ids=["zero", "first", "just before", "exact", "greatest", "hidden behind the greatest", "beyond"],
)
def test_the_first_offset_at_or_after_a_time(bootstrap: str, timed_topic: str, timestamp: int, offset: int) -> None:
    consumer = confluent_consumer(bootstrap)
    found = consumer.offsets_for_times([TopicPartition(timed_topic, 0, timestamp)], SECONDS_MAX)
    consumer.close()
    assert [partition.offset for partition in found] == [offset if offset >= 0 else confluent_kafka.OFFSET_END]


def test_earliest_latest_and_greatest_timestamp(admin: AdminClient, timed_topic: str) -> None:
    partition = TopicPartition(timed_topic, 0)
    for spec, offset in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 10), (OffsetSpec.max_timestamp(), 5)):
        result = admin.list_offsets({partition: spec})[partition].result(SECONDS_MAX)
        assert result.offset == offset


def test_kafka_python_looks_offsets_up(bootstrap: str, timed_topic: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    partition = kafka.TopicPartition(timed_topic, 0)
    found = consumer.offsets_for_times({partition: TIMES[3]})[partition]
    assert (found.offset, found.timestamp) == (3, TIMES[3])
    assert consumer.offsets_for_times({partition: TIMES[5] + 1}) == {partition: None}
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    consumer.close()


def test_reading_from_the_middle_of_a_batch_starts_there(bootstrap: str, topic: str) -> None:
    rows = [Row(None, b"%d" % n, (), BASE_MS) for n in range(50)]
    write_confluent(bootstrap, topic, rows, "lz4")
    found = read_confluent(bootstrap, topic, 20, start=30)
    assert [record.offset for record in found] == list(range(30, 50))
    assert [record.row for record in found] == rows[30:]


def test_a_consumer_at_the_end_is_told_so_and_woken_by_the_next_record(bootstrap: str, timed_topic: str) -> None:
    consumer = confluent_consumer(bootstrap, **{"enable.partition.eof": True, "fetch.wait.max.ms": 1500})
    consumer.assign([TopicPartition(timed_topic, 0, 10)])
    message = consumer.poll(SECONDS_MAX)
    assert message.error().code() == KafkaError._PARTITION_EOF
    writer = threading.Thread(
        target=write_confluent, args=(bootstrap, timed_topic, [Row(None, b"next", (), BASE_MS)], "none")
    )
    writer.start()
    message = consumer.poll(SECONDS_MAX)
    writer.join()
    consumer.close()
    assert (message.offset(), message.value()) == (10, b"next")


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", None)])
def test_an_offset_out_of_range_is_reset_by_policy(
    bootstrap: str, timed_topic: str, policy: str, first: int | None
) -> None:
    consumer = confluent_consumer(bootstrap, **{"auto.offset.reset": policy, "enable.partition.eof": True})
    consumer.assign([TopicPartition(timed_topic, 0, 5000)])
    message = consumer.poll(SECONDS_MAX)
    if first is None:
        assert message.error().code() == KafkaError._PARTITION_EOF
        assert message.offset() == len(TIMES)
    else:
        assert message.offset() == first
    consumer.close()


def test_an_offset_out_of_range_is_an_error_without_a_policy(bootstrap: str, timed_topic: str) -> None:
    consumer = confluent_consumer(bootstrap, **{"auto.offset.reset": "error"})
    consumer.assign([TopicPartition(timed_topic, 0, 5000)])
    message = consumer.poll(SECONDS_MAX)
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    consumer.close()


def test_several_partitions_are_each_read_in_order(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, partitions=5)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for n in range(1000):
        producer.produce(new_name, b"%d" % n, partition=n % 5)
    assert producer.flush(SECONDS_MAX) == 0
    consumer = confluent_consumer(bootstrap)
    consumer.assign([TopicPartition(new_name, partition, 0) for partition in range(5)])
    found: dict[int, list[int]] = {partition: [] for partition in range(5)}
    deadline = time.monotonic() + SECONDS_MAX
    while sum(map(len, found.values())) < 1000 and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            found[message.partition()].append(int(message.value()))
    consumer.close()
    assert found == {partition: list(range(partition, 1000, 5)) for partition in range(5)}


def test_small_fetches_still_bring_every_record(bootstrap: str, topic: str) -> None:
    """A limit below a batch's size: the first batch comes whole all the same."""
    rows = [Row(None, bytes([n]) * 30_000, (), BASE_MS) for n in range(20)]
    write_confluent(bootstrap, topic, rows, "none")
    consumer = confluent_consumer(
        bootstrap, **{"fetch.message.max.bytes": 1000, "fetch.max.bytes": 1000, "message.max.bytes": 1000}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(SECONDS_MAX) for _ in rows]
    consumer.close()
    assert [message.value() for message in found] == [row.value for row in rows]
