"""What a network and a coordinator do to a transaction: it ends as was asked, or the caller hears that nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.client.producing.transactions.generations import GENERATIONS, committed, speaking
from tests.client.proxy import Action, Cut, Pass, Reply, Request, Silence
from tests.client.short_times import having
from tests.searches import seeds

from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import (
    ClientClosed,
    KafkaError,
    ProducerFenced,
    RequestTimedOut,
    TransactionAbortable,
    TransactionFailed,
    WrongTransactionState,
)
from ottla.client.producing.producer import Producer
from ottla.client.records import ProducerRecord
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.generated.end_txn import EndTxnResponse
from ottla.protocol.generated.init_producer_id import InitProducerIdResponse

#: Short pauses: the tests' faults are over at once.
IMPATIENT = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}
#: What a coordinator says while it cannot answer.
PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def refusal(request: Request, code: ErrorCode) -> Action:
    """By a coordinator, of any of the questions of a transaction."""
    if request.key == ApiKey.INIT_PRODUCER_ID:
        return Reply(InitProducerIdResponse(error_code=code))
    if request.key == ApiKey.END_TXN:
        return Reply(EndTxnResponse(error_code=code))
    assert request.key == ApiKey.ADD_PARTITIONS_TO_TXN
    topics = request.decoded().v3_and_below_topics
    return Reply(
        AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=one, partition_error_code=code)
                        for one in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )
    )


ASKED = {ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN}


def faults_of(random: Random) -> Callable[[Request], Action]:
    """Lets about half of the questions and batches through, and does something else to each of the others."""

    def rule(request: Request) -> Action:
        if request.key not in {*ASKED, ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT} or random.random() < 0.5:
            return Pass()
        kinds = [Cut(), Cut(forwarded=True), Cut(forwarded=True, answer_bytes=random.randrange(1, 20))]
        if request.key in ASKED:
            kinds += [refusal(request, random.choice(PASSING))]
        return random.choice(kinds)

    return rule


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("seed", seeds(2, 30))
async def test_once_or_not_at_all(bootstrap: str, wide_topic: str, generation: int, seed: int) -> None:
    random = Random(seed)
    expected = []
    async with (
        speaking(bootstrap, generation, faults_of(random)) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=wide_topic, **IMPATIENT) as producer,
    ):
        for number in range(12):
            values = [b"%02d-%d" % (number, one) for one in range(random.randrange(4))]
            await producer.begin()
            for value in values:
                await producer.send(wide_topic, value, partition=random.randrange(4))
            if random.random() < 0.3:
                await producer.abort()
            else:
                await producer.commit()
                expected += values
    assert await committed(bootstrap, wide_topic) == sorted(expected)


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_an_end_that_was_not_heard_is_asked_for_again(bootstrap: str, topic: str, generation: int) -> None:
    deaf = True

    def rule(request: Request) -> Action:
        return Silence() if deaf and request.key == ApiKey.END_TXN else Pass()

    async with (
        speaking(bootstrap, generation, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        await producer.begin()
        sent = await producer.send(topic, b"once")
        await sent
        with having(producer, max_block_ms=300, request_timeout_ms=100), pytest.raises(RequestTimedOut):
            await producer.commit()
        for call in (producer.begin, producer.abort, lambda: producer.send(topic, b"more")):
            with pytest.raises(WrongTransactionState, match="commit again"):
                await call()
        deaf = False
        await producer.commit()
        async with producer.transaction():
            await producer.send(topic, b"then")
    assert await committed(bootstrap, topic) == [b"once", b"then"]


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_record_that_comes_behind_the_end_leaves_the_commit_alone(
    bootstrap: str, topic: str, generation: int
) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    def rule(request: Request) -> Action:
        if request.key != ApiKey.END_TXN:
            return Pass()
        asked.set()
        return Pass(until=answered)

    async with (
        speaking(bootstrap, generation, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic) as producer,
    ):
        await producer.begin()
        await producer.send(topic, b"within")
        commit = asyncio.create_task(producer.commit())
        await asked.wait()
        late = await producer.send_many([ProducerRecord(topic=topic, value=b"late")])
        assert isinstance(late[0].exception(), WrongTransactionState)
        answered.set()
        await commit
        async with producer.transaction():
            await producer.send(topic, b"next")
    assert await committed(bootstrap, topic) == [b"next", b"within"]


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_record_that_was_taken_before_the_end_fails_the_commit(
    bootstrap: str, topic: str, generation: int
) -> None:
    """It came while what stands before it was still being written: nothing was asked of the coordinator yet."""
    asked, answered = asyncio.Event(), asyncio.Event()

    def rule(request: Request) -> Action:
        if request.key != ApiKey.PRODUCE or answered.is_set():
            return Pass()
        asked.set()
        return Pass(until=answered)

    async with (
        speaking(bootstrap, generation, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic) as producer,
    ):
        await producer.begin()
        await producer.send(topic, b"within")
        commit = asyncio.create_task(producer.commit())
        await asked.wait()
        late = await producer.send_many([ProducerRecord(topic=topic, value=b"late")])
        assert isinstance(late[0].exception(), WrongTransactionState)
        answered.set()
        with pytest.raises(TransactionAbortable):
            await commit
        await producer.abort()
    assert await committed(bootstrap, topic) == []


@pytest.mark.parametrize("how", ["send", "send_many"])
async def test_a_record_that_waited_for_its_topic_is_none_of_the_next_transaction(
    bootstrap: str, topic: str, how: str
) -> None:
    """The one in which it was sent was aborted meanwhile, and with it all that belongs to it."""
    asked, known = asyncio.Event(), asyncio.Event()

    def rule(request: Request) -> Action:
        if request.key != ApiKey.METADATA or f"{topic}-late" not in [one.name for one in request.decoded().topics]:
            return Pass()
        asked.set()
        return Pass(until=known)

    async with (
        speaking(bootstrap, 2, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        await producer.init_transactions()
        await producer.begin()
        late = ProducerRecord(topic=f"{topic}-late", value=b"late")
        work = producer.send_record(late) if how == "send" else producer.send_many([late])
        sending = asyncio.create_task(work)
        await asked.wait()
        await producer.abort()
        await producer.begin()
        known.set()
        if how == "send":
            with pytest.raises(WrongTransactionState, match="has ended"):
                await sending
        else:
            (delivery,) = await sending
            assert isinstance(delivery.exception(), WrongTransactionState)
        await producer.send(topic, b"next")
        await producer.commit()
    assert await committed(bootstrap, topic) == [b"next"]
    assert await committed(bootstrap, f"{topic}-late") == []


@pytest.mark.parametrize("what", [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN])
async def test_a_refusal_that_nobody_expects_is_the_producers_end(bootstrap: str, topic: str, what: ApiKey) -> None:
    """No delivery stays open, and every later call says why."""

    def rule(request: Request) -> Action:
        return refusal(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) if request.key == what else Pass()

    async with (
        speaking(bootstrap, 1, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        await producer.begin()
        sent = await producer.send(topic, b"in vain")
        with pytest.raises(TransactionFailed, match="AUTHORIZATION_FAILED"):
            await producer.commit()
        assert sent.done()
        for call in (producer.begin, producer.abort, lambda: producer.send(topic, b"more")):
            with pytest.raises(TransactionFailed):
                await call()


async def test_a_partition_that_may_not_be_written_to_ends_the_transaction_only(bootstrap: str, topic: str) -> None:
    denied = True

    def rule(request: Request) -> Action:
        if denied and request.key == ApiKey.ADD_PARTITIONS_TO_TXN:
            return refusal(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return Pass()

    async with (
        speaking(bootstrap, 1, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        await producer.begin()
        sent = await producer.send(topic, b"in vain")
        with pytest.raises(TransactionAbortable, match="TOPIC_AUTHORIZATION_FAILED"):
            await producer.commit()
        assert sent.exception() is not None
        await producer.abort()
        assert proxy.count(ApiKey.END_TXN) == 0  # the coordinator has heard of nothing
        denied = False
        async with producer.transaction():
            await producer.send(topic, b"allowed")
    assert await committed(bootstrap, topic) == [b"allowed"]


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_a_caller_that_gives_up_may_go_on(bootstrap: str, topic: str, generation: int) -> None:
    """A commit that is cancelled before the coordinator was asked leaves the transaction open."""
    held = asyncio.Event()
    seen = asyncio.Event()

    def rule(request: Request) -> Action:
        if request.key == ApiKey.PRODUCE and not held.is_set():
            seen.set()
            return Silence()
        return Pass()

    async with (
        speaking(bootstrap, generation, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        await producer.begin()
        with having(producer, request_timeout_ms=200):  # of the Produce request that nobody answers
            await producer.send(topic, b"first")
            committing = asyncio.ensure_future(producer.commit())
            await seen.wait()
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        held.set()
        await producer.send(topic, b"second")
        await producer.commit()
    assert await committed(bootstrap, topic) == [b"first", b"second"]


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("gives_up", ["the caller", "the client"])
async def test_offsets_that_nobody_waits_for_are_none_of_the_next_transaction(
    bootstrap: str, topic: str, generation: int, gives_up: str
) -> None:
    """They are on their way still, and reach the group's coordinator when the next transaction has offsets there."""
    late: list[bytes] = []
    seen = asyncio.Event()
    reached = False

    def rule(request: Request) -> Action:
        if request.key == ApiKey.TXN_OFFSET_COMMIT and reached and not late:
            late.append(request.frame)
            seen.set()
            return Silence()
        return Pass()

    partition = TopicPartition(topic, 0)
    async with (
        speaking(bootstrap, generation, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        async with producer.transaction():  # so that both coordinators are reached before time is short
            await producer.send_offsets({partition: 1}, topic)
        reached = True
        await producer.begin()
        if gives_up == "the caller":
            sending = asyncio.ensure_future(producer.send_offsets({partition: 3}, topic))
            await seen.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        else:
            with having(producer, max_block_ms=300, request_timeout_ms=400), pytest.raises(TransactionAbortable):
                await producer.send_offsets({partition: 3}, topic)
        await producer.abort()
        await producer.begin()
        await producer.send_offsets({partition: 7}, topic)
        host, port = bootstrap.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(len(late[0]).to_bytes(4) + late[0])
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        writer.close()
        await producer.commit()
    async with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        told = (await consumer.committed([partition]))[partition]
    assert told is not None
    assert told.offset == 7


@pytest.mark.parametrize("what", [ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.FIND_COORDINATOR])
async def test_closing_ends_whoever_waits(bootstrap: str, topic: str, what: ApiKey) -> None:
    seen = asyncio.Event()

    def rule(request: Request) -> Action:
        if request.key == what:
            seen.set()
            return Silence()
        return Pass()

    async with speaking(bootstrap, 2, rule) as proxy:
        producer = Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT)

        async def work() -> None:
            async with producer.transaction():
                await producer.send(topic, b"held up")

        working = asyncio.ensure_future(work())
        await seen.wait()
        await producer.close(timeout_ms=50)
        with pytest.raises(KafkaError) as ended:
            await asyncio.wait_for(working, 60)
        assert isinstance(ended.value, ClientClosed | TransactionAbortable)


async def test_one_that_was_aborted_before_its_time_was_fenced(bootstrap: str, topic: str) -> None:
    """While a producer that begins waits for the abort of what was open, the coordinator has no other word for it."""

    def rule(request: Request) -> Action:
        return refusal(request, ErrorCode.INVALID_TXN_STATE) if request.key == ApiKey.END_TXN else Pass()

    async with (
        speaking(bootstrap, 2, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic, **IMPATIENT) as producer,
    ):
        await producer.begin()
        await producer.send_and_wait(topic, b"in vain")
        with pytest.raises(ProducerFenced):
            await producer.commit()


@pytest.mark.parametrize("key", [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT])
async def test_a_partition_that_the_answer_leaves_out_is_asked_for_again(
    bootstrap: str, topic: str, key: ApiKey
) -> None:
    def forget_all(answer: Any) -> None:
        if key is ApiKey.TXN_OFFSET_COMMIT:
            answer.topics = []
        else:
            answer.results_by_topic_v3_and_below = []

    asked = 0

    def rule(request: Request) -> Action:
        nonlocal asked
        asked += request.key == key
        return Pass(forget_all if request.key == key and asked == 1 else None)

    settings = {**IMPATIENT, "transactional_id": f"of-{topic}"}
    async with speaking(bootstrap, 1, rule) as proxy, Producer(settings, bootstrap_servers=proxy.bootstrap) as producer:
        await producer.init_transactions()
        await producer.begin()
        await producer.send(topic, b"x", partition=0)
        await producer.send_offsets({TopicPartition(topic, 0): 1}, f"group-of-{topic}")
        await producer.commit()
        assert asked == 2
    assert await committed(bootstrap, topic) == [b"x"]
