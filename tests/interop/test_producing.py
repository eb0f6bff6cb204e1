"""What a producer is told: acks, idempotence, refusals; and that what it was told is true."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clients import SECONDS_MAX, confluent_consumer, confluent_producer, read_confluent
from tests.interop.conftest import create_topic


def deliver(producer: confluent_kafka.Producer, topic: str, values: list[bytes]) -> list[confluent_kafka.Message]:
    """Sends all, waits for all, and returns the delivery reports in the order in which they came."""
    reports: list[confluent_kafka.Message] = []

    def report(error: KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        reports.append(message)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=report)
    assert producer.flush(SECONDS_MAX) == 0
    return reports


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_level_of_acks_stores_every_record(bootstrap: str, topic: str, acks: str) -> None:
    values = [b"%d" % n for n in range(500)]
    reports = deliver(confluent_producer(bootstrap, acks=acks), topic, values)
    assert len(reports) == len(values)
    if acks != "0":  # without an answer the client knows no offsets
        assert [report.offset() for report in reports] == list(range(len(values)))
    assert [record.row.value for record in read_confluent(bootstrap, topic, len(values))] == values


def test_an_idempotent_producer_with_five_batches_in_flight_keeps_the_order(bootstrap: str, topic: str) -> None:
    values = [b"%d" % n for n in range(20_000)]
    producer = confluent_producer(
        bootstrap,
        enable_idempotence=True,
        max_in_flight_requests_per_connection=5,
        batch_num_messages=100,
        linger_ms=1,
    )
    reports = deliver(producer, topic, values)
    assert [report.offset() for report in reports] == list(range(len(values)))
    assert [record.row.value for record in read_confluent(bootstrap, topic, len(values))] == values


def test_two_idempotent_producers_share_a_partition(bootstrap: str, topic: str) -> None:
    first = confluent_producer(bootstrap, enable_idempotence=True)
    second = confluent_producer(bootstrap, enable_idempotence=True)
    for turn in range(5):
        deliver(first, topic, [b"first %d" % turn])
        deliver(second, topic, [b"second %d" % turn])
    expected = [b"%s %d" % (who, turn) for turn in range(5) for who in (b"first", b"second")]
    assert [record.row.value for record in read_confluent(bootstrap, topic, len(expected))] == expected


def test_a_record_over_the_topics_limit_is_refused_and_the_next_is_taken(
    bootstrap: str, admin: AdminClient, new_name: str
) -> None:
    create_topic(admin, new_name, max_message_bytes="20000")
    errors: list[KafkaError | None] = []
    producer = confluent_producer(bootstrap, compression_type="none")
    producer.produce(new_name, b"x" * 30_000, partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS_MAX)
    producer.produce(new_name, b"fits", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS_MAX)
    assert errors[0] is not None
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert errors[1] is None
    assert [record.row.value for record in read_confluent(bootstrap, new_name, 1)] == [b"fits"]


def test_log_append_time_replaces_the_producers_timestamp(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, message_timestamp_type="LogAppendTime")
    producer = confluent_producer(bootstrap)
    producer.produce(new_name, b"v", partition=0, timestamp=1_000_000)
    assert producer.flush(SECONDS_MAX) == 0
    consumer = confluent_consumer(bootstrap)
    consumer.assign([TopicPartition(new_name, 0, 0)])
    message = consumer.poll(SECONDS_MAX)
    consumer.close()
    kind, timestamp = message.timestamp()
    assert kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
    assert timestamp > 1_600_000_000_000


def test_a_topic_that_recompresses_returns_the_same_records(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, compression_type="zstd")
    values = [b"%d " % n * 50 for n in range(200)]
    deliver(confluent_producer(bootstrap, compression_type="gzip", linger_ms=20), new_name, values)
    assert [record.row.value for record in read_confluent(bootstrap, new_name, len(values))] == values


def test_producing_creates_the_topic(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    deliver(confluent_producer(bootstrap), new_name, [b"first"])
    assert new_name in admin.list_topics(timeout=SECONDS_MAX).topics
    assert [record.row.value for record in read_confluent(bootstrap, new_name, 1)] == [b"first"]


def test_an_unknown_partition_is_reported(bootstrap: str, topic: str) -> None:
    producer = confluent_producer(bootstrap, message_timeout_ms=60_000)
    codes: list[int] = []
    try:
        producer.produce(topic, b"v", partition=7, on_delivery=lambda error, _: codes.append(error.code()))
    except confluent_kafka.KafkaException as refused:  # at once, when the client knows the topic already
        codes.append(refused.args[0].code())
    producer.flush(SECONDS_MAX)
    assert codes == [KafkaError._UNKNOWN_PARTITION]
