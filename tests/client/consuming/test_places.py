"""Where reading begins: each partition by itself, and whoever waits hears of it, with all time-outs as they are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.client.conftest import make_topic
from tests.client.proxy import Action, Pass, Proxy, Request

from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import NoOffset, RequestTimedOut, SomeFailed, TopicAuthorizationFailed
from ottla.client.producing.producer import Producer
from ottla.client.wire.leaders import ask_leaders
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey

#: Less than the time after which metadata is asked for again, or a request is given up: nobody may wait for that.
SECONDS_MAX = 25.0


def of_answers(key: ApiKey, change: Callable[[Any], None]) -> Callable[[Request], Action]:
    return lambda one: Pass(change if one.key == key else None)


async def write(bootstrap: str, topic: str, partitions: int) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for partition in range(partitions):
            await producer.send(topic, b"x", partition=partition)


def leaderless(number: int) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        for topic in answer.topics:
            topic.partitions[number].leader_id = -1
            topic.partitions[number].error_code = ErrorCode.LEADER_NOT_AVAILABLE

    return change


def led_by_nobody_known(number: int) -> Callable[[Any], None]:
    """As in the moment in which a broker leaves the cluster, and its partitions' leaders are not elected yet."""

    def change(answer: Any) -> None:
        for topic in answer.topics:
            topic.partitions[number].leader_id = 99

    return change


def without(number: int) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        for topic in answer.topics:
            topic.partitions = [one for one in topic.partitions if one.partition_index != number]

    return change


def refused(number: int) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                if one.partition_index == number:
                    one.error_code, one.offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1

    return change


@pytest.mark.parametrize(
    ("key", "change"),
    [
        (ApiKey.METADATA, leaderless(1)),
        (ApiKey.METADATA, led_by_nobody_known(1)),
        (ApiKey.LIST_OFFSETS, refused(1)),
        (ApiKey.LIST_OFFSETS, without(1)),
    ],
    ids=["no-leader", "unknown-leader", "refused", "not-answered"],
)
async def test_one_partition_without_a_place_keeps_no_other_waiting(
    bootstrap: str, wide_topic: str, key: ApiKey, change: Callable[[Any], None]
) -> None:
    await write(bootstrap, wide_topic, 4)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(key, change)) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([TopicPartition(wide_topic, number) for number in range(4)])
        read: set[int] = set()
        while read < {0, 2, 3}:
            read |= {one.partition for one in await consumer.poll()}
        asked = proxy.count(ApiKey.LIST_OFFSETS)
        await consumer.poll(timeout_ms=250)
        assert proxy.count(ApiKey.LIST_OFFSETS) - asked <= 20, "it pauses between two questions"
        proxy.rule = lambda _: Pass()
        assert [one.partition for one in await consumer.poll()] == [1]


async def test_a_topic_that_one_may_not_read_keeps_no_other_waiting(bootstrap: str, new_name: str) -> None:
    def change(answer: Any) -> None:
        for topic in answer.topics:
            if topic.name.endswith("-no"):
                topic.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                topic.partitions = []

    for name in (f"{new_name}-yes", f"{new_name}-no"):
        await make_topic(bootstrap, name)
        await write(bootstrap, name, 1)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(ApiKey.METADATA, change)) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([(f"{new_name}-no", 0), (f"{new_name}-yes", 0)])
        values: list[bytes | None] = []
        faults = 0
        while not (values and faults):
            try:
                values += [one.value for one in await consumer.poll()]
            except TopicAuthorizationFailed:
                faults += 1
        assert values == [b"x"]


async def test_a_poll_that_waits_hears_that_there_is_no_offset(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    settings = {"bootstrap_servers": bootstrap, "auto_offset_reset": "none", "group_id": f"group-of-{topic}"}
    async with asyncio.timeout(SECONDS_MAX), Consumer(settings) as assigned:
        assigned.assign([tp])
        with pytest.raises(NoOffset):
            await assigned.poll()
    async with asyncio.timeout(SECONDS_MAX), Consumer(settings) as subscribed:
        subscribed.subscribe([topic])
        with pytest.raises(NoOffset):
            await subscribed.poll()


async def test_a_poll_that_waits_hears_that_it_may_not_look_offsets_up(bootstrap: str, topic: str) -> None:
    def change(answer: Any) -> None:
        for one in answer.topics:
            one.partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(ApiKey.LIST_OFFSETS, change)) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([(topic, 0)])
        with pytest.raises(TopicAuthorizationFailed):
            await consumer.poll()


async def test_the_position_of_what_is_paused_is_found(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, 1)
    async with asyncio.timeout(SECONDS_MAX), Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([tp])
        consumer.pause(tp)
        assert await consumer.position(tp) == 1
        consumer.seek_to_beginning(tp)
        assert await consumer.position(tp) == 0


async def test_a_listener_that_asks_where_its_partitions_are(bootstrap: str, topic: str) -> None:
    class Pausing:
        def __init__(self, consumer: Consumer) -> None:
            self._consumer = consumer
            self.found: list[int] = []

        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            self._consumer.pause(*partitions)
            self.found = [await self._consumer.position(tp) for tp in partitions]

    await write(bootstrap, topic, 1)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Consumer(bootstrap_servers=bootstrap, group_id=f"group-of-{topic}", auto_offset_reset="latest") as consumer,
    ):
        listener = Pausing(consumer)
        consumer.subscribe([topic], listener=listener)
        while not listener.found:
            await consumer.poll(timeout_ms=20)
        assert listener.found == [1]


def not_to_be_read(answer: Any) -> None:
    for one in answer.topics:
        one.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        one.partitions = []


async def test_a_topic_is_read_as_soon_as_one_may(bootstrap: str, topic: str) -> None:
    await write(bootstrap, topic, 1)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(ApiKey.METADATA, not_to_be_read)) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([(topic, 0)])
        for _ in range(3):
            with pytest.raises(TopicAuthorizationFailed):
                await consumer.poll()
        assert proxy.count(ApiKey.METADATA) <= 5
        proxy.rule = lambda _: Pass()
        values: list[bytes | None] = []
        while not values:
            with contextlib.suppress(TopicAuthorizationFailed):
                values += [one.value for one in await consumer.poll()]
        assert values == [b"x"]


async def test_a_topic_that_one_may_not_read_any_more(bootstrap: str, topic: str) -> None:
    await write(bootstrap, topic, 1)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest", metadata_max_age_ms=100) as consumer,
    ):
        consumer.assign([(topic, 0)])
        assert [one.value for one in await consumer.poll()] == [b"x"]
        proxy.rule = of_answers(ApiKey.METADATA, not_to_be_read)
        with pytest.raises(TopicAuthorizationFailed):
            await consumer.poll()
        proxy.rule = lambda _: Pass()
        await write(bootstrap, topic, 1)
        values: list[bytes | None] = []
        while not values:
            with contextlib.suppress(TopicAuthorizationFailed):
                values += [one.value for one in await consumer.poll()]
        assert values == [b"x"]


async def test_a_position_is_asked_for_again_when_one_may(bootstrap: str, topic: str) -> None:
    def change(answer: Any) -> None:
        for one in answer.topics:
            one.partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    await write(bootstrap, topic, 1)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(ApiKey.LIST_OFFSETS, change)) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="latest") as consumer,
    ):
        consumer.assign([(topic, 0)])
        with pytest.raises(TopicAuthorizationFailed):
            await consumer.position(TopicPartition(topic, 0))
        proxy.rule = lambda _: Pass()
        with contextlib.suppress(TopicAuthorizationFailed):  # it may have been asked before that
            await consumer.position(TopicPartition(topic, 0))
        assert await consumer.position(TopicPartition(topic, 0)) == 1


async def test_an_offset_of_the_group_that_is_not_settled_keeps_no_other_waiting(
    bootstrap: str, wide_topic: str
) -> None:
    def change(answer: Any) -> None:
        for group in answer.groups:
            for topic in group.topics:
                for one in topic.partitions:
                    if one.partition_index == 1:
                        one.error_code, one.committed_offset = ErrorCode.UNSTABLE_OFFSET_COMMIT, -1

    await write(bootstrap, wide_topic, 4)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(ApiKey.OFFSET_FETCH, change)) as proxy,
        Consumer(
            bootstrap_servers=proxy.bootstrap,
            auto_offset_reset="earliest",
            group_id=f"group-of-{wide_topic}",
            enable_auto_commit=False,
        ) as consumer,
    ):
        consumer.assign([TopicPartition(wide_topic, number) for number in range(4)])
        read: set[int] = set()
        while read < {0, 2, 3}:
            read |= {one.partition for one in await consumer.poll()}
        assert 1 not in read
        proxy.rule = lambda _: Pass()
        assert [one.partition for one in await consumer.poll()] == [1]


async def test_a_commit_that_nothing_was_said_of_has_failed(bootstrap: str, wide_topic: str) -> None:
    def change(answer: Any) -> None:
        for topic in answer.topics:
            topic.partitions = [one for one in topic.partitions if one.partition_index != 1]

    settings = {"group_id": f"group-of-{wide_topic}", "enable_auto_commit": False}
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, of_answers(ApiKey.OFFSET_COMMIT, change)) as proxy,
        Consumer({**settings, "bootstrap_servers": proxy.bootstrap}) as consumer,
    ):
        consumer.assign([(wide_topic, 0), (wide_topic, 1)])

        async def commit_until_something_is_heard() -> None:
            while True:  # half a second may be over before the coordinator is found
                with contextlib.suppress(RequestTimedOut):
                    await consumer.commit({TopicPartition(wide_topic, number): 1 for number in (0, 1)}, timeout_ms=500)

        with pytest.raises(SomeFailed, match="nothing about"):
            await commit_until_something_is_heard()


async def test_a_leader_that_leaves_the_cluster_while_it_is_asked_is_no_fault(bootstrap: str, topic: str) -> None:
    """Of two questions to it the second finds that the cluster has no such broker now."""
    rounds: list[str] = []

    def rule(request: Request) -> Action:
        if request.key == ApiKey.LIST_OFFSETS and not rounds:
            return Pass(leaves)
        return Pass(without_it if request.key == ApiKey.METADATA and rounds == ["left"] else None)

    def leaves(_: Any) -> None:
        rounds.append("left")
        consumer.cluster.metadata = consumer.cluster.metadata._replace(nodes={})

    def without_it(answer: Any) -> None:
        rounds.append("back")
        answer.brokers[0].node_id = 99

    tp = TopicPartition(topic, 0)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, rule) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="by_duration:PT1H") as consumer,
    ):
        consumer.assign([tp])
        assert await consumer.position(tp) == 0
        assert rounds == ["left", "back"]
        tried: list[int] = []

        async def ask(leader: int, group: Any, results: dict[TopicPartition, int], _: Any) -> None:
            tried.append(leader)
            await consumer.cluster.control(99 if len(tried) == 1 else leader)
            results.update(dict.fromkeys(group, leader))

        assert await ask_leaders(consumer.cluster, [tp], ask) == {tp: tried[1]}


async def test_a_place_that_was_sought_before_it_was_asked_for_is_not_asked_for(bootstrap: str, topic: str) -> None:
    await write(bootstrap, topic, 1)
    tp = TopicPartition(topic, 0)
    async with (
        asyncio.timeout(SECONDS_MAX),
        Proxy(bootstrap, lambda _: Pass()) as proxy,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([tp])
        assert len(await consumer.poll()) == 1
        asked = proxy.count(ApiKey.LIST_OFFSETS)
        consumer.seek_to_beginning(tp)
        await asyncio.sleep(0)  # the look-up is begun, and its turn comes behind ours
        consumer.seek(tp, 0)
        assert len(await consumer.poll()) == 1
        assert proxy.count(ApiKey.LIST_OFFSETS) == asked
