"""Places that are yet to come, where the records before them come while the command waits."""

from __future__ import annotations

import asyncio

import pytest

from ottla.cli.offsets import parse_place
from ottla.cli.reachability import BrokerWatch
from ottla.cli.reading import PartitionReading, ReadingLimits
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.client.records import ConsumerRecord
from ottla.model import TopicPartition
from ottla.testing import InProcessBroker


@pytest.mark.parametrize("place", ["2", "+2"])
def test_records_before_a_place_that_is_yet_to_come_are_passed_over(
    ottla_broker: InProcessBroker, topic: str, place: str
) -> None:
    async def read() -> list[ConsumerRecord]:
        settings = {"bootstrap.servers": ottla_broker.bootstrap}
        async with Consumer(settings) as consumer, Producer(settings) as producer:
            reading = PartitionReading(
                consumer, ReadingLimits(records=1), parse_place(place), BrokerWatch(consumer.cluster)
            )
            await reading.begin([TopicPartition(topic, 0)])
            for value in (b"0", b"1", b"2"):
                await (await producer.send(topic, value))
            found: list[ConsumerRecord] = []
            while (records := await reading.more()) is not None:
                found += records
            return found

    (record,) = asyncio.run(asyncio.wait_for(read(), 60))
    assert (record.offset, bytes(record.value or b"")) == (2, b"2")
