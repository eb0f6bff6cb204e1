"""A client for Ottla and Apache Kafka, on asyncio; `ottla.client.sync` is the same without `await`.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        await producer.send_and_wait("greetings", b"hello")

    async with Consumer(bootstrap_servers="localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["greetings"])
        async for record in consumer:
            print(record.value)

Names are loaded when they are first used: whoever only asks for a topic's partitions loads no producer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin_results import NewTopic
    from ottla.client.batches import Delivery
    from ottla.client.consumer import Consumer
    from ottla.client.errors import KafkaError
    from ottla.client.group.assignors.assignor import Assignor
    from ottla.client.group.listener import RebalanceListener
    from ottla.client.group_results import CommittedOffset
    from ottla.client.producer import Producer
    from ottla.client.records import ConsumerRecord, OffsetAndTimestamp, ProducerRecord, RecordMetadata
    from ottla.model import ErrorCode, TopicPartition

__all__ = [
    "Admin",
    "Assignor",
    "CommittedOffset",
    "Consumer",
    "ConsumerRecord",
    "Delivery",
    "ErrorCode",
    "KafkaError",
    "NewTopic",
    "OffsetAndTimestamp",
    "Producer",
    "ProducerRecord",
    "RebalanceListener",
    "RecordMetadata",
    "TopicPartition",
]

_HOMES = {
    "Admin": "ottla.client.admin",
    "Assignor": "ottla.client.group.assignors.assignor",
    "CommittedOffset": "ottla.client.group_results",
    "Consumer": "ottla.client.consumer",
    "ConsumerRecord": "ottla.client.records",
    "Delivery": "ottla.client.batches",
    "ErrorCode": "ottla.model",
    "KafkaError": "ottla.client.errors",
    "NewTopic": "ottla.client.admin_results",
    "OffsetAndTimestamp": "ottla.client.records",
    "Producer": "ottla.client.producer",
    "ProducerRecord": "ottla.client.records",
    "RebalanceListener": "ottla.client.group.listener",
    "RecordMetadata": "ottla.client.records",
    "TopicPartition": "ottla.model",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
