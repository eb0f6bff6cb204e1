"""Once and in order, whatever the network does; and a clear end where it does too much."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from tests.client.conftest import make_topic
from tests.client.proxy import Action, Cut, Pass, Proxy, Raw, Reply, Request, Silence, produce_refusal
from tests.client.reading import read_all, values_of
from tests.client.short_times import having

from ottla.client.admin.admin import Admin
from ottla.client.errors import (
    BufferExhausted,
    ClientClosed,
    DeliveryTimedOut,
    InvalidTopic,
    KafkaError,
    RecordTooLarge,
)
from ottla.client.producing.producer import Producer
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey

#: Short pauses: the tests' faults are over at once.
IMPATIENT = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


def faults_of(seed: int) -> object:
    """A rule that lets about half of the Produce requests through and does something else to each of the others."""
    random = Random(seed)
    kinds = (
        lambda request: Cut(),
        lambda request: Cut(forwarded=True),
        lambda request: Cut(forwarded=True, answer_bytes=random.randrange(1, 30)),
        lambda request: Reply(produce_refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS)),
        lambda request: Reply(produce_refusal(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        lambda request: Raw(b"\x00\x00\x00\x10" + random.randbytes(16)),
        lambda request: Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    )

    def rule(request: Request) -> Action:
        if request.key != ApiKey.PRODUCE or random.random() < 0.5:
            return Pass()
        return random.choice(kinds)(request)

    return rule


@pytest.mark.parametrize("seed", range(6))
async def test_records_are_written_once_and_in_order(bootstrap: str, wide_topic: str, seed: int) -> None:
    random = Random(seed)
    async with (
        Proxy(bootstrap, faults_of(seed)) as proxy,
        Producer(
            bootstrap_servers=proxy.bootstrap, batch_size=random.choice([0, 120, 400]), linger_ms=1, **IMPATIENT
        ) as producer,
    ):
        sent: list[tuple[int, bytes]] = []
        deliveries = []
        for n in range(120):
            partition, value = random.randrange(4), b"%d" % n
            sent.append((partition, value))
            deliveries.append(await producer.send(wide_topic, value, partition=partition))
            if random.random() < 0.1:
                await asyncio.sleep(0.002)
        places = [await delivery for delivery in deliveries]
    records = await read_all(bootstrap, wide_topic)
    for partition in range(4):
        expected = [value for where, value in sent if where == partition]
        assert [one.value for one in records if one.partition == partition] == expected
    by_place = {(one.partition, one.offset): one.value for one in records}
    for place, (partition, value) in zip(places, sent, strict=True):
        if place.offset >= 0:  # a broker that answers a repeated batch may have forgotten where it is
            assert by_place[partition, place.offset] == value


async def test_a_batch_given_up_leaves_a_gap_that_a_new_epoch_closes(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        Proxy(bootstrap) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, linger_ms=0, **IMPATIENT) as producer,
    ):
        await producer.send_and_wait(topic, b"zero")
        proxy.rule = lambda request: Silence() if request.key == ApiKey.PRODUCE else Pass()
        with (
            having(producer, request_timeout_ms=1_000, delivery_timeout_ms=1_500),
            monkeypatch.context() as patch,
        ):
            patch.setattr(producer._queues, "_delivery_timeout_ms", 1_500)  # batches get theirs there
            doomed = await producer.send(topic, b"doomed")
            with pytest.raises(DeliveryTimedOut, match="not acknowledged within 1500 ms"):
                await doomed
        proxy.rule = lambda _: Pass()
        for value in b"one", b"two":
            await producer.send_and_wait(topic, value)
    assert await values_of(bootstrap, topic) == [b"zero", b"one", b"two"]
    async with Admin(bootstrap_servers=bootstrap) as admin:
        (known,) = (await admin.describe_producers([TopicPartition(topic, 0)]))[TopicPartition(topic, 0)]
    assert (known.producer_epoch, known.last_sequence) == (1, 1)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
async def test_a_broker_that_forgot_the_producer_gets_a_new_epoch(bootstrap: str, topic: str, error: ErrorCode) -> None:
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            if request.key == ApiKey.PRODUCE and proxy.count(ApiKey.PRODUCE) == 2:
                return Reply(produce_refusal(request, error, log_start_offset=0))
            return Pass()

        proxy.rule = rule
        async with Producer(bootstrap_servers=proxy.bootstrap, batch_size=0, linger_ms=0, **IMPATIENT) as producer:
            await producer.send_and_wait(topic, b"0")
            for delivery in [await producer.send(topic, b"%d" % n) for n in range(1, 5)]:
                await delivery
    assert await values_of(bootstrap, topic) == [b"0", b"1", b"2", b"3", b"4"]
    async with Admin(bootstrap_servers=bootstrap) as admin:
        (known,) = (await admin.describe_producers([TopicPartition(topic, 0)]))[TopicPartition(topic, 0)]
    assert known.producer_epoch == 1


async def test_a_batch_over_the_brokers_limit_is_split(bootstrap: str, new_name: str) -> None:
    await make_topic(bootstrap, new_name, max_message_bytes="1000")
    async with Producer(bootstrap_servers=bootstrap, linger_ms=50, **IMPATIENT) as producer:
        deliveries = [await producer.send(new_name, b"%03d" % n + b"." * 97) for n in range(60)]
        await producer.flush()
        assert [(await delivery).offset for delivery in deliveries] == list(range(60))
        with pytest.raises(RecordTooLarge):
            await producer.send_and_wait(new_name, b"x" * 2000)
        # What was refused took a sequence number with it: the next one begins anew.
        assert (await producer.send_and_wait(new_name, b"after")).offset == 60
    values = await values_of(bootstrap, new_name)
    assert [value[:3] for value in values[:60]] == [b"%03d" % n for n in range(60)]


async def test_an_answer_that_names_topics_by_their_ids_is_read_as_the_request_was_made(
    bootstrap: str, topic: str
) -> None:
    """Meanwhile a broker that lags has not heard of the topic: without idempotence the records would be written
    twice."""
    asked, answered = asyncio.Event(), asyncio.Event()

    def unknown(answer: Any) -> None:
        for one in answer.topics:
            one.error_code, one.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []

    def rule(request: Request) -> Action:
        if request.key == ApiKey.METADATA and asked.is_set() and not answered.is_set():
            return Pass(unknown)
        if request.key == ApiKey.PRODUCE:
            asked.set()
            return Pass(until=answered)
        return Pass()

    async with (
        Proxy(bootstrap, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, enable_idempotence=False, linger_ms=0, **IMPATIENT) as producer,
    ):
        delivery = await producer.send(topic, b"once")
        await asked.wait()
        while topic in producer.cluster.metadata.topics:
            await producer.cluster.updated()
        answered.set()
        assert (await delivery).offset == 0
    assert await values_of(bootstrap, topic) == [b"once"]


async def test_a_leader_of_the_topic_before_is_none_of_the_next_one_of_its_name(bootstrap: str, topic: str) -> None:
    """Its epoch is higher: what brokers say of the new topic would count as old for ever."""
    asked, answered = asyncio.Event(), asyncio.Event()

    def refused(answer: Any) -> None:
        for one in answer.responses[0].partition_responses:
            one.error_code, one.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
            one.current_leader.leader_id, one.current_leader.leader_epoch = leader.leader, 100

    def rule(request: Request) -> Action:
        if request.key != ApiKey.PRODUCE or asked.is_set():
            return Pass()
        asked.set()
        return Pass(refused, answered)

    async with (
        Proxy(bootstrap, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, linger_ms=0, **IMPATIENT) as producer,
        Admin(bootstrap_servers=bootstrap) as admin,
    ):
        delivery = await producer.send(topic, b"x")
        known = producer.cluster.metadata.topics[topic]
        leader = known.partitions[0]
        await asked.wait()
        await admin.delete_topic(topic)
        await admin.create_topic(topic, 1, 1)
        while producer.cluster.metadata.topics.get(topic, known).topic_id == known.topic_id:
            await producer.cluster.updated()
        answered.set()
        assert (await delivery).offset == 0
        await producer.cluster.updated()
        assert producer.cluster.metadata.topics[topic].partitions[0].leader_epoch < 100


async def test_an_error_that_no_retry_mends_comes_at_once(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            if request.key == ApiKey.PRODUCE and proxy.count(ApiKey.PRODUCE) == 1:
                return Reply(produce_refusal(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            return Pass()

        proxy.rule = rule
        async with Producer(bootstrap_servers=proxy.bootstrap, linger_ms=0, **IMPATIENT) as producer:
            with pytest.raises(KafkaError) as caught:
                await producer.send_and_wait(topic, b"refused")
            assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert not caught.value.retriable
            await producer.send_and_wait(topic, b"taken")
    assert await values_of(bootstrap, topic) == [b"taken"]


async def test_retries_are_counted(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            if request.key == ApiKey.PRODUCE:
                return Reply(produce_refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS))
            return Pass()

        proxy.rule = rule
        async with Producer(bootstrap_servers=proxy.bootstrap, retries=2, linger_ms=0, **IMPATIENT) as producer:
            with pytest.raises(KafkaError) as caught:
                await producer.send_and_wait(topic, b"never")
            assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert proxy.count(ApiKey.PRODUCE) == 3


async def test_send_waits_for_room_and_then_gives_up(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:
        silent = True

        def rule(request: Request) -> Action:
            return Silence() if request.key == ApiKey.PRODUCE and silent else Pass()

        proxy.rule = rule
        async with Producer(
            bootstrap_servers=proxy.bootstrap, buffer_memory=4000, max_block_ms=100, linger_ms=0, **IMPATIENT
        ) as producer:
            with having(producer, max_block_ms=60_000):  # the topic is known before time is short
                await producer.partitions_for(topic)
            while producer.try_send(topic, b"x" * 100) is not None:
                pass
            with pytest.raises(BufferExhausted, match=r"buffer\.memory stayed full"):
                await producer.send(topic, b"x" * 100)
            with pytest.raises(RecordTooLarge):
                await producer.send(topic, b"x" * 4000)
            await producer.close(timeout_ms=0)


async def test_a_brokers_quota_delays_records_by_what_it_asks_for(bootstrap: str, topic: str) -> None:
    def throttled(answer: Any) -> None:
        answer.throttle_time_ms = 50

    async with Proxy(bootstrap, lambda one: Pass(throttled) if one.key == ApiKey.PRODUCE else Pass()) as proxy:
        settings: dict[str, Any] = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 20_000, "linger_ms": 0}
        async with Producer(bootstrap_servers=proxy.bootstrap, **settings) as producer:
            for number in range(3):  # in requests of their own, while the connection rests
                assert (await producer.send_and_wait(topic, b"%d" % number)).offset == number


async def test_room_comes_back_with_acknowledgements(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=3000, linger_ms=5000) as producer:
        deliveries = await asyncio.gather(*(producer.send(topic, b"%d" % n) for n in range(100)))
        await producer.flush()
        assert sorted([(await delivery).offset for delivery in deliveries]) == list(range(100))
    assert await values_of(bootstrap, topic) == [b"%d" % n for n in range(100)]


async def test_close_gives_up_what_cannot_be_sent(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap, lambda request: Silence() if request.key == ApiKey.PRODUCE else Pass()) as proxy:
        producer = Producer(bootstrap_servers=proxy.bootstrap, linger_ms=0)
        delivery = await producer.send(topic, b"late")
        await producer.close(timeout_ms=10)
        with pytest.raises(ClientClosed):
            await delivery
        with pytest.raises(ClientClosed):
            await producer.send(topic, b"later")


async def test_a_topic_that_cannot_be_is_refused(bootstrap: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, max_block_ms=5000) as producer:
        with pytest.raises(InvalidTopic):
            await producer.send("no/such/name", b"x")
