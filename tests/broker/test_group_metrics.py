"""What a scrape tells of groups."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, Producer
from tests.broker.test_broker_metrics import numbers

from ottla import testing

STATES = ("empty", "preparingrebalance", "completingrebalance", "stable", "dead")
CLASSIC = "kafka_coordinator_group_groupmetadatamanager_numgroups"
COORDINATOR = "kafka_server_group_coordinator_metrics_"


def by_offset(name: str, group: str, topic: str, partition: int) -> str:
    return f'{name}{{consumergroup="{group}",topic="{topic}",partition="{partition}"}}'


def consume(bootstrap: str, group: str, count: int, then: Callable[[], object], **settings: str) -> None:
    """Reads and commits so many records; `then` is called while the member is still there."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    try:
        read = 0
        while read < count:
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None, message.error()
            read += 1
            consumer.commit(message, asynchronous=False)
        then()
    finally:
        consumer.close()


def test_a_broker_without_groups() -> None:
    with testing.broker() as broker:
        seen = numbers(broker.metrics())
    for name in (CLASSIC, *(CLASSIC + state for state in STATES), f"{COORDINATOR}offset_commit_count"):
        assert seen[name] == 0, name
    assert seen[f'{COORDINATOR}group_count{{protocol="classic"}}'] == 0
    assert not [name for name in seen if name.startswith("kafka_consumergroup_")]


def test_offsets_lag_and_groups() -> None:
    while_there: dict[str, float] = {}
    with testing.broker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.create_topic("orders", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(5):
            producer.produce("orders", b"%d" % number, partition=1)
        assert producer.flush(60) == 0
        consume(broker.bootstrap, "readers", 2, lambda: while_there.update(numbers(broker.metrics())))
        consume(broker.bootstrap, "moderns", 5, lambda: None, **{"group.protocol": "consumer"})
        seen = numbers(broker.metrics())
        assert while_there[CLASSIC + "stable"] == 1
        assert while_there[by_offset("kafka_consumergroup_current_offset", "readers", "orders", 1)] == 2
        assert while_there[by_offset("kafka_consumergroup_lag", "readers", "orders", 1)] == 3
        assert by_offset("kafka_consumergroup_lag", "readers", "orders", 0) not in while_there
        assert while_there['kafka_consumergroup_members{consumergroup="readers"}'] == 1
        assert seen['kafka_consumergroup_members{consumergroup="readers"}'] == 0
        assert seen[by_offset("kafka_consumergroup_lag", "moderns", "orders", 1)] == 0
        for group, offset, lag in (("readers", 2, 3), ("moderns", 5, 0)):
            labels = f'{{consumergroup="{group}",topic="orders"}}'
            assert seen[f"kafka_consumergroup_current_offset_sum{labels}"] == offset
            assert seen[f"kafka_consumergroup_lag_sum{labels}"] == lag
        assert (seen[CLASSIC], seen[CLASSIC + "empty"], seen[CLASSIC + "stable"]) == (1, 1, 0)
        assert seen[f'{COORDINATOR}group_count{{protocol="classic"}}'] == 1
        assert seen[f'{COORDINATOR}group_count{{protocol="consumer"}}'] == 1
        assert seen[f'{COORDINATOR}consumer_group_count{{state="empty"}}'] == 1
        assert seen[f"{COORDINATOR}group_completed_rebalance_count"] >= 1
        assert seen[f"{COORDINATOR}offset_commit_count"] == 7
        producer.produce("orders", b"more", partition=1)
        assert producer.flush(60) == 0
        assert numbers(broker.metrics())[by_offset("kafka_consumergroup_lag", "moderns", "orders", 1)] == 1
        broker.delete_topic("orders")
        seen = numbers(broker.metrics())
        assert not [name for name in seen if '"orders"' in name]
        assert seen[f"{COORDINATOR}offset_deletion_count"] == 2
