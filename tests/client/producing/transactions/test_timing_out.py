"""Transactions that are open for longer than `transaction.timeout.ms`: told from fences, and outlived."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.conftest import TARGET, make_topic
from tests.client.producing.transactions.generations import GENERATIONS, committed, speaking, until_state

from ottla.client.errors import KafkaError, ProducerFenced, TransactionTimedOut
from ottla.client.producing.producer import Producer
from ottla.testing import InProcessBroker

pytestmark = pytest.mark.parametrize("generation", GENERATIONS)


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker that looks for such transactions more often than every ten seconds."""
    if TARGET != "ottla":
        yield request.getfixturevalue("bootstrap")
        return
    properties = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"}
    with InProcessBroker(properties=properties) as broker:
        yield broker.bootstrap


async def write_within(producer: Producer, topic: str, value: bytes) -> None:
    """In a transaction that stays open. A busy machine may take longer for that than the transaction has time: it is
    aborted before, and the next one is tried."""
    while True:
        await producer.begin()
        try:
            await producer.send_and_wait(topic, value)
        except KafkaError:
            await producer.abort()
        else:
            return


@pytest.mark.parametrize("sends", [False, True])
async def test_the_producer_goes_on(quick: str, new_name: str, generation: int, sends: bool) -> None:
    """Whether a leader refuses another batch first, or the coordinator the commit."""
    await make_topic(quick, new_name)
    async with (
        speaking(quick, generation) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=new_name, transaction_timeout_ms=100) as producer,
    ):
        await write_within(producer, new_name, b"slow")
        await until_state(quick, new_name, "CompleteAbort")
        if sends:
            await producer.send(new_name, b"slower")
        with pytest.raises(TransactionTimedOut):
            await producer.commit()
        with pytest.raises(TransactionTimedOut):
            await producer.send(new_name, b"slowest")
        await producer.abort()
        await producer.begin()
        await producer.abort()
    assert await committed(quick, new_name) == []


async def test_one_that_was_taken_over_meanwhile_is_fenced(quick: str, new_name: str, generation: int) -> None:
    await make_topic(quick, new_name)
    async with (
        speaking(quick, generation) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=new_name, transaction_timeout_ms=100) as slow,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=new_name) as other,
    ):
        await write_within(slow, new_name, b"slow")
        await until_state(quick, new_name, "CompleteAbort")
        await other.begin()
        await other.send_and_wait(new_name, b"quick")
        with pytest.raises(ProducerFenced):
            await slow.commit()
        await other.commit()
    assert await committed(quick, new_name) == [b"quick"]
