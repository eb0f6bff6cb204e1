"""Transactions as an admin sees them, and the ends that an admin gives them."""

from __future__ import annotations

import pytest
from tests.client.conftest import make_topic
from tests.client.producing.transactions.generations import committed, until_state

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import LATEST
from ottla.client.errors import BadArgument, ProducerFenced, TransactionalIdNotFound
from ottla.client.producing.producer import Producer
from ottla.client.producing.sequences import ProducerIdentity
from ottla.client.records import ProducerRecord
from ottla.model import TopicPartition
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records.builder import BatchBuilder
from ottla.testing import InProcessBroker


async def test_what_coordinators_know(bootstrap: str, wide_topic: str) -> None:
    async with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap_servers=bootstrap, transactional_id=wide_topic) as producer,
    ):
        await producer.begin()
        await producer.send_many(
            [ProducerRecord(topic=wide_topic, value=b"x", partition=partition) for partition in (0, 2)]
        )
        await producer.flush()
        found = (await admin.describe_transactions([wide_topic]))[wide_topic]
        assert found.state == "Ongoing"
        assert found.partitions == {TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 2)}
        assert found.timeout_ms == 60_000
        assert found.start_time_ms is not None
        assert found.coordinator is not None
        opened = await admin.open_transactions([TopicPartition(wide_topic, number) for number in range(4)])
        assert sorted((one.partition.partition, one.producer_id, one.producer_epoch) for one in opened) == [
            (0, found.producer_id, found.producer_epoch),
            (2, found.producer_id, found.producer_epoch),
        ]
        for filters, there in (
            ({}, True),
            ({"states": ["Ongoing"]}, True),
            ({"states": ["CompleteCommit"]}, False),
            ({"producer_ids": [found.producer_id]}, True),
            ({"producer_ids": [found.producer_id + 1_000_000]}, False),
            ({"duration_ms": 0}, True),
            ({"duration_ms": 3_600_000}, False),
            ({"pattern": wide_topic[:-1] + "."}, True),
            ({"pattern": wide_topic[:-1]}, False),
        ):
            listed = [one for one in await admin.list_transactions(**filters) if one.transactional_id == wide_topic]  # type: ignore[arg-type]
            assert bool(listed) == there, filters
            assert [one.producer_id for one in listed] == [found.producer_id] * there
        await producer.commit()
        await until_state(bootstrap, wide_topic, "CompleteCommit")
        found = (await admin.describe_transactions([wide_topic]))[wide_topic]
        assert found.partitions == frozenset()
        with pytest.raises(TransactionalIdNotFound):
            await admin.describe_transactions(["nobody"])


async def test_a_producer_is_fenced_and_what_it_left_open_is_aborted(bootstrap: str, topic: str) -> None:
    async with (
        Admin(bootstrap_servers=bootstrap) as admin,
        Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer,
    ):
        await producer.begin()
        await producer.send_and_wait(topic, b"in vain")
        fenced = await admin.fence_producers([topic])
        assert fenced[topic].producer_id >= 0
        with pytest.raises(ProducerFenced):
            await producer.commit()
    assert await committed(bootstrap, topic) == []


async def test_one_that_hangs_is_found_and_ended(new_name: str) -> None:
    """As brokers before KIP-890 let them arise: a batch comes behind its transaction's end."""
    partition = TopicPartition(new_name, 0)
    with InProcessBroker(properties={"transaction.partition.verification.enable": "false"}) as broker:
        await make_topic(broker.bootstrap, new_name)
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            producer = (await admin.fence_producers([new_name]))[new_name]
            await write_behind_the_end(admin, partition, producer)
            (hanging,) = await admin.find_hanging_transactions([partition], max_transaction_timeout_ms=0)
            assert (hanging.partition, hanging.producer_id, hanging.start_offset) == (
                partition,
                producer.producer_id,
                0,
            )
            assert await admin.find_hanging_transactions([partition]) == []  # it is young
            latest = {partition: LATEST}
            assert (await admin.list_offsets(latest, isolation_level=1))[partition].offset == 0
            await admin.abort_transaction(partition, hanging.producer_id, hanging.producer_epoch)
            assert await admin.open_transactions([partition]) == []
            assert (await admin.list_offsets(latest, isolation_level=1))[partition].offset == 2
        assert await committed(broker.bootstrap, new_name) == []


async def write_behind_the_end(
    admin: Admin,
    partition: TopicPartition,
    producer: ProducerIdentity,
    age_ms: int = 1_000,
    transactional_id: str | None = None,
) -> None:
    """Its id is the topic's name where none is said."""
    builder = BatchBuilder()
    builder.append(admin.cluster.world.clock.wall_ms() - age_ms, None, b"late")
    records = builder.build(
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    request = ProduceRequest(
        transactional_id=transactional_id or partition.topic,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=partition.topic,
                partition_data=[PartitionProduceData(index=partition.partition, records=records)],
            )
        ],
    )
    answer = await admin.cluster.ask(None, request, ProduceResponse, at_most=11)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def test_arguments(bootstrap: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        for call in (
            lambda: admin.list_transactions(states="Ongoing"),
            lambda: admin.list_transactions(producer_ids=[-1]),
            lambda: admin.list_transactions(duration_ms=-1),
            lambda: admin.describe_transactions("till-1"),
            lambda: admin.fence_producers([5]),  # type: ignore[list-item]
            lambda: admin.abort_transaction(TopicPartition("t", 0), 1, 40_000),
            lambda: admin.find_hanging_transactions([("t", -1)]),  # type: ignore[list-item]
        ):
            with pytest.raises(BadArgument):
                await call()
