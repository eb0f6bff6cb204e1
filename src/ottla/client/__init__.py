"""A client for Ottla and Apache Kafka, on asyncio; `ottla.client.sync` is the same without `await`.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        await producer.send_and_wait("greetings", b"hello")

    async with Consumer(bootstrap_servers="localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["greetings"])
        async for record in consumer:
            print(record.value)

Names are loaded when they are first used: a program that only asks for a topic's partitions loads no producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import lazy_names

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.group_results import CommittedOffset
    from ottla.client.admin.results import NewTopic
    from ottla.client.consuming.consumer import Consumer
    from ottla.client.consuming.group.assignors.assignor import Assignor
    from ottla.client.consuming.group.listener import RebalanceListener
    from ottla.client.errors import KafkaError
    from ottla.client.producing.batches import Delivery
    from ottla.client.producing.producer import Producer
    from ottla.client.producing.transactions.core import TransactionIdentity
    from ottla.client.records import ConsumerRecord, OffsetAndTimestamp, ProducerRecord, RecordMetadata
    from ottla.client.zookeeper_groups.consumer import ZookeeperConsumer
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
    "TransactionIdentity",
    "ZookeeperConsumer",
]

_HOMES = {
    "Admin": "ottla.client.admin.admin",
    "Assignor": "ottla.client.consuming.group.assignors.assignor",
    "CommittedOffset": "ottla.client.admin.group_results",
    "Consumer": "ottla.client.consuming.consumer",
    "ConsumerRecord": "ottla.client.records",
    "Delivery": "ottla.client.producing.batches",
    "ErrorCode": "ottla.model",
    "KafkaError": "ottla.client.errors",
    "NewTopic": "ottla.client.admin.results",
    "OffsetAndTimestamp": "ottla.client.records",
    "Producer": "ottla.client.producing.producer",
    "ProducerRecord": "ottla.client.records",
    "RebalanceListener": "ottla.client.consuming.group.listener",
    "RecordMetadata": "ottla.client.records",
    "TopicPartition": "ottla.model",
    "TransactionIdentity": "ottla.client.producing.transactions.core",
    "ZookeeperConsumer": "ottla.client.zookeeper_groups.consumer",
}


if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
