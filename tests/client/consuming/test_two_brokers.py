"""One partition is on its way from two brokers: one that was read from before, and the one to read from now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.client.proxy import Action, Pass, Proxy, Request

from ottla.client.consuming.assignment import AssignedPartition, Chunk
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.metadata import MetadataResponseBroker
from ottla.records.builder import build_batch

#: No broker of the tests has this id: the proxy is it as well.
OTHER = 77


class TwoBrokers:
    """A rule: the proxy is two brokers, and says who leads; `slow` keeps back what the second Fetch brings."""

    def __init__(self) -> None:
        self.other_leads = False
        self.slow = asyncio.Event()
        self.fetches = 0

    def __call__(self, one: Request) -> Action:
        if one.key == ApiKey.METADATA:
            return Pass(self._metadata)
        if one.key == ApiKey.FETCH:
            self.fetches += 1
            return self.fetch(self.fetches)
        return Pass()

    def fetch(self, number: int) -> Action:
        return Pass(until=self.slow) if number == 1 else Pass()

    def _metadata(self, answer: Any) -> None:
        (first,) = answer.brokers
        answer.brokers.append(MetadataResponseBroker(node_id=OTHER, host=first.host, port=first.port))
        for topic in answer.topics:
            for one in topic.partitions:
                one.leader_epoch = -1  # the broker would refuse one that it has not had
                if self.other_leads:
                    one.leader_id = OTHER


async def test_what_the_leader_before_sends_late_is_not_given_out_again(bootstrap: str, topic: str) -> None:
    rule = TwoBrokers()
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"x", partition=0)
    async with (
        Proxy(bootstrap, rule) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, metadata_max_age_ms=100) as consumer,
    ):
        consumer.assign([(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        while rule.fetches < 1:
            await consumer.poll_batches(timeout_ms=5)
        rule.other_leads = True
        first = await consumer.poll_batches()
        assert first is not None
        assert (first.position, first.next_position) == (0, 1)
        rule.slow.set()
        assert await consumer.poll_batches(timeout_ms=300) is None


class LateReplica(TwoBrokers):
    """The leader sends its readers to another broker for a while, which finds late that it has no such offset."""

    def fetch(self, number: int) -> Action:
        if number == 1:
            return Pass(self._to_the_other)
        if number == 2:
            return Pass(self._out_of_range, self.slow)
        self.slow.set()
        return Pass()

    @staticmethod
    def _to_the_other(answer: Any) -> None:
        for topic in answer.responses:
            for one in topic.partitions:
                one.preferred_read_replica = OTHER

    @staticmethod
    def _out_of_range(answer: Any) -> None:
        for topic in answer.responses:
            for one in topic.partitions:
                one.error_code, one.records = ErrorCode.OFFSET_OUT_OF_RANGE, None


async def test_only_the_leader_is_believed_that_an_offset_is_not_there(bootstrap: str, topic: str) -> None:
    rule = LateReplica()
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"x", partition=0)
        async with (
            Proxy(bootstrap, rule) as proxy,
            Consumer(
                bootstrap_servers=proxy.bootstrap, metadata_max_age_ms=100, auto_offset_reset="earliest"
            ) as consumer,
        ):
            consumer.assign([(topic, 0)])
            assert [one.value for one in await consumer.poll()] == [b"x"]
            # The second answer has a partition in it only when something is there.
            await producer.send_and_wait(topic, b"y", partition=0)
            values: list[bytes | None] = []
            while rule.fetches < 4:
                values += [one.value for one in await consumer.poll(timeout_ms=50)]
            assert values == [b"y"]
            assert proxy.count(ApiKey.LIST_OFFSETS) == 1


class NewReplica(TwoBrokers):
    """The leader sends its readers to a broker that has come since they looked, until they know of it."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = False
        self.known: Callable[[], bool] = lambda: False

    def fetch(self, number: int) -> Action:
        self.joined = number > 1
        return Pass(self._elsewhere if self.joined and not self.known() else None)

    def _elsewhere(self, answer: Any) -> None:
        LateReplica._to_the_other(answer)
        for topic in answer.responses:
            for one in topic.partitions:
                one.records = None

    def _metadata(self, answer: Any) -> None:
        super()._metadata(answer)
        if not self.joined:
            del answer.brokers[1:]


async def test_a_replica_that_is_not_known_yet_is_looked_for(bootstrap: str, topic: str) -> None:
    """The leader gives nothing out to those that it sends elsewhere: without a look nothing would be read for minutes,
    while it is asked again and again."""
    rule = NewReplica()
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"x", partition=0)
        async with (
            asyncio.timeout(20),
            Proxy(bootstrap, rule) as proxy,
            Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            rule.known = lambda: OTHER in consumer.cluster.metadata.nodes
            consumer.assign([(topic, 0)])
            assert [one.value for one in await consumer.poll()] == [b"x"]
            await producer.send_and_wait(topic, b"y", partition=0)
            assert [one.value for one in await consumer.poll()] == [b"y"]
            assert rule.known()
            assert proxy.count(ApiKey.FETCH) < 20


def test_the_epoch_of_a_batch_that_was_passed_is_not_taken() -> None:
    """With an older epoch than that of the last batch read, a broker would say that the log was truncated."""
    one = AssignedPartition(TopicPartition("t", 0))
    one.seek(5, 7)
    batch = build_batch(
        b"", count=0, last_offset_delta=0, base_timestamp=0, max_timestamp=0, base_offset=3, leader_epoch=2
    )
    one.chunks.append(Chunk(b"", batch, len(batch), None))
    assert one.take(1, check_crcs=True, key_deserializer=None, value_deserializer=None) == []
    assert (one.position, one.position_epoch) == (5, 7)
