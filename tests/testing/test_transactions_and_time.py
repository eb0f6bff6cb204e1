"""Transactions in tests: time-outs and fences when a test wants them, and time that ends what was left open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ConfluentProducer

from ottla import testing
from ottla.client.errors import InvalidTxnState, ProducerFenced, TransactionalIdNotFound, TransactionTimedOut
from ottla.client.sync import Admin, Consumer, Producer
from ottla.testing import InProcessBroker

SECONDS_MAX = 60.0
ID = "till-1"


#: Transactions of a millisecond end when a test says so, and not where the coordinator looks for what is overdue.
NEVER_LOOKED_AT = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000"}


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    with testing.broker(properties=NEVER_LOOKED_AT) as running:
        yield running


@pytest.fixture
def orders(broker: InProcessBroker, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    broker.create_topic(name)
    return name


def committed(broker: InProcessBroker, topic: str, count: int) -> list[bytes]:
    """So many records of it, or the first ones."""
    found: list[bytes] = []
    until = time.monotonic() + SECONDS_MAX
    with Consumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        while len(found) < count:
            assert time.monotonic() < until, found
            found += [record.value or b"" for record in consumer.poll(timeout_ms=100)]
    return found


@pytest.mark.parametrize("fault", ["timeout", "fence"])
def test_a_producer_hears_what_has_befallen_it(broker: InProcessBroker, orders: str, fault: Any) -> None:
    """It takes for a time-out what comes when its time is over by its own clock: a millisecond here."""
    expected, time_ms = (TransactionTimedOut, 1) if fault == "timeout" else (ProducerFenced, 60_000)
    with Producer(
        bootstrap_servers=broker.bootstrap, transactional_id=orders, transaction_timeout_ms=time_ms
    ) as producer:
        producer.begin()
        producer.send_and_wait(orders, b"lost")
        broker.inject(fault, orders)
        with pytest.raises(expected):
            producer.commit()
        if fault == "timeout":
            producer.abort()
            with producer.transaction():
                producer.send(orders, b"kept")
    if fault == "fence":
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id=orders) as another, another.transaction():
            another.send(orders, b"kept")
    assert committed(broker, orders, 1) == [b"kept"]


def test_readers_go_on_as_soon_as_it_has_come(broker: InProcessBroker, orders: str) -> None:
    """Markers are written when it returns: what stood behind the open transaction is read at once."""
    with (
        Producer(bootstrap_servers=broker.bootstrap, transactional_id=orders) as producer,
        Producer(bootstrap_servers=broker.bootstrap) as plain,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        producer.begin()
        producer.send_and_wait(orders, b"open")
        plain.send_and_wait(orders, b"behind")
        broker.inject("timeout", orders)
        assert admin.describe_transactions([orders])[orders].state == "CompleteAbort"
        assert committed(broker, orders, 1) == [b"behind"]


def test_other_clients_hear_it_in_their_own_words(broker: InProcessBroker, orders: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": orders, "log_level": 0}
    producer = ConfluentProducer(settings)
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(orders, b"lost")
    assert producer.flush(SECONDS_MAX) == 0
    broker.inject("fence", orders)
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(SECONDS_MAX)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].code() == ConfluentError._FENCED


def test_what_cannot_be_befallen(broker: InProcessBroker, orders: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=orders) as producer:
        with producer.transaction():
            producer.send(orders, b"committed")
        with pytest.raises(InvalidTxnState):
            broker.inject("timeout", orders)
        for fault in ("timeout", "fence"):
            with pytest.raises(TransactionalIdNotFound):
                broker.inject(cast("Any", fault), "nobodys")
        with pytest.raises(ValueError, match="no 'flood'"):
            broker.inject(cast("Any", "flood"), orders)
    assert committed(broker, orders, 1) == [b"committed"]


def test_the_same_where_a_loop_runs() -> None:
    async def scenario() -> None:
        async with testing.async_broker() as broker:
            with pytest.raises(TransactionalIdNotFound):
                await broker.inject("fence", ID)

    asyncio.run(scenario())


def test_time_ends_what_is_overdue_and_nothing_else() -> None:
    with (
        testing.broker() as broker,
        Producer(bootstrap_servers=broker.bootstrap, transactional_id="short", transaction_timeout_ms=300_000) as short,
        Producer(bootstrap_servers=broker.bootstrap, transactional_id="long", transaction_timeout_ms=900_000) as long,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        broker.create_topic("orders")
        for producer, value in ((short, b"short"), (long, b"long")):
            producer.begin()
            producer.send_and_wait("orders", value)
        broker.advance("3m")
        states = admin.describe_transactions(["short", "long"])
        assert [states[each].state for each in ("short", "long")] == ["Ongoing", "Ongoing"]
        broker.advance("3m")  # and the ten seconds between two looks
        until = time.monotonic() + SECONDS_MAX
        while admin.describe_transactions(["short"])["short"].state != "CompleteAbort":
            assert time.monotonic() < until
        assert admin.describe_transactions(["long"])["long"].state == "Ongoing"
        # Its own clock has not moved: it takes the abort for that of another producer.
        with pytest.raises(ProducerFenced):
            short.commit()
        long.commit()
        assert committed(broker, "orders", 1) == [b"long"]


def test_ids_that_nobody_uses_are_forgotten_in_a_week() -> None:
    with testing.broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        broker.create_topic("orders")
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id=ID) as producer, producer.transaction():
            producer.send("orders", b"x")
        broker.advance("6d")
        assert admin.describe_transactions([ID])[ID].state == "CompleteCommit"
        broker.advance("2d")
        until = time.monotonic() + SECONDS_MAX
        while any(each.transactional_id == ID for each in admin.list_transactions()):
            assert time.monotonic() < until
