"""Transactions from plain threads."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.producing.transactions.generations import committed

from ottla.client.errors import TransactionAbortable, TransactionAborted, UnknownTopicOrPartition, WrongTransactionState
from ottla.client.sync import Consumer, Producer
from ottla.model import TopicPartition


def test_a_block_and_single_calls(bootstrap: str, topic: str) -> None:
    def in_vain() -> None:
        with producer.transaction():
            producer.send(topic, b"never")
            raise ZeroDivisionError

    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            written = producer.send(topic, b"one")
        assert written.result(0).topic == topic
        with pytest.raises(ZeroDivisionError):
            in_vain()
        for call in (producer.commit, producer.abort, lambda: producer.send(topic, b"outside")):
            with pytest.raises(WrongTransactionState):
                call()
        producer.begin()
        for number in range(2000):  # many of them are on their way to the loop's thread when it is asked to commit
            producer.send(topic, b"%04d" % number)
        producer.commit()
        producer.begin()
        gone = [producer.send(topic, b"given up") for _ in range(2000)]
        producer.abort()
        assert all(one.done() for one in gone)
        producer.begin()
        producer.send(topic, b"handed over")
        identity = producer.detach()
    assert identity is not None
    with Producer(bootstrap_servers=bootstrap) as other:
        other.finish(identity)
    expected = sorted([b"one", b"handed over", *(b"%04d" % number for number in range(2000))])
    assert asyncio.run(committed(bootstrap, topic)) == expected


def test_a_record_that_came_into_no_batch_keeps_all_from_being_committed(bootstrap: str, topic: str) -> None:
    """Its send returned long before that was known."""
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.begin()
        nowhere = producer.send(topic, b"nowhere", partition=99)
        with pytest.raises(TransactionAbortable):
            producer.commit()
        assert isinstance(nowhere.exception(), UnknownTopicOrPartition)
        producer.abort()
        with producer.transaction():
            producer.send(topic, b"somewhere")
    assert asyncio.run(committed(bootstrap, topic)) == [b"somewhere"]


def test_closing_leaves_no_delivery_open(bootstrap: str, topic: str) -> None:
    with Producer(
        bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=60_000, delivery_timeout_ms=120_000
    ) as producer:
        producer.begin()
        sent = producer.send(topic, b"open")
    assert isinstance(sent.exception(0), TransactionAborted)


def test_offsets_with_what_was_made_of_their_records(bootstrap: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    with (
        Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer,
        Consumer(
            bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer,
    ):
        with producer.transaction():
            producer.send(topic, b"in")
        consumer.subscribe([topic])
        (record,) = consumer.poll(timeout_ms=30_000)
        with producer.transaction():
            producer.send(topic, record.value + b"-out")
            producer.send_offsets({partition: record.offset + 1}, consumer.group_metadata())
        told = consumer.committed([partition])[partition]
        assert told is not None
        assert told.offset == record.offset + 1
