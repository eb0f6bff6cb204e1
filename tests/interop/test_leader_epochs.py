"""A consumer that stands at a partition's end while the broker is killed, with nothing written in between.

Each unclean start begins a new epoch. The consumer holds the epoch of before, which has no record, and asks where it
ended: it must not be told that the log was cut.
"""

from __future__ import annotations

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, confluent_producer
from tests.interop.conftest import create_topic

KILLS = 2


def _consumer(broker: Broker, topic: str) -> confluent_kafka.Consumer:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"at-the-end-of-{topic}",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 300,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_END)])
    return consumer


def _told(consumer: confluent_kafka.Consumer, seconds: float) -> list[str]:
    """What reaches the application in this time: nothing but lost connections is to."""
    told = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        message = consumer.poll(0.1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            told.append(repr(message.value()))
        elif error.code() not in {confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN}:
            told.append(str(error))
    return told


@pytest.mark.parametrize("count", [10, pytest.param(0, marks=pytest.mark.slow)])
def test_a_consumer_at_the_end_of_a_partition_keeps_its_place_through_kills(own_broker: Broker, count: int) -> None:
    own_broker.server.start()
    create_topic(AdminClient({"bootstrap.servers": own_broker.bootstrap}), "idle")
    producer = confluent_producer(own_broker.bootstrap)
    for number in range(count):
        producer.produce("idle", b"%d" % number)
    assert producer.flush(SECONDS_MAX) == 0
    # The first of these leader epochs has the records, the next ones have none.
    own_broker.server.kill()
    own_broker.server.start()
    consumer = _consumer(own_broker, "idle")
    assert _told(consumer, 2.0) == []
    for _ in range(KILLS):
        own_broker.server.kill()
        own_broker.server.start()
        assert _told(consumer, 2.5) == []
    producer = confluent_producer(own_broker.bootstrap)
    producer.produce("idle", b"news")
    assert producer.flush(SECONDS_MAX) == 0
    until = time.monotonic() + SECONDS_MAX
    told: list[str] = []
    while not told and time.monotonic() < until:
        told = _told(consumer, 0.2)
    assert told == [repr(b"news")]
    consumer.close()
    own_broker.server.stop(SECONDS_MAX)
