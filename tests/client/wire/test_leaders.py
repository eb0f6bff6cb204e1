"""Questions that only leaders answer, about topics that some broker has not heard of (yet)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.client.proxy import Action, Pass, Proxy, Request

from ottla.client.admin.logs import delete_records
from ottla.client.consuming.assignment import AssignedPartition
from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.resets import Resets
from ottla.client.errors import (
    CoordinatorNotAvailable,
    NotLeaderOrFollower,
    SomeFailed,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.client.producing.producer import Producer
from ottla.client.settings import AdminSettings, parse_settings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.coordinators import ask_coordinators
from ottla.client.wire.leaders import ask_leaders
from ottla.client.wire.metadata import Node
from ottla.client.wire.offsets import list_offsets
from ottla.client.wire.world import real_world
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.delete_records import DeleteRecordsResponse
from ottla.protocol.generated.find_coordinator import FindCoordinatorResponse
from ottla.protocol.generated.list_offsets import ListOffsetsResponse
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse

EARLIEST = -2
#: A broker that the cluster has not.
GONE = 99
NOT_HEARD_OF = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def hidden(answer: MetadataResponse) -> None:
    for topic in answer.topics:
        topic.error_code, topic.partitions = NOT_HEARD_OF, []


def refused(answer: ListOffsetsResponse) -> None:
    for topic in answer.topics:
        for partition in topic.partitions:
            partition.error_code, partition.offset = NOT_HEARD_OF, -1


async def first_offset(proxy: Proxy, *partitions: TopicPartition) -> dict[TopicPartition, int]:
    cluster = Cluster(parse_settings(AdminSettings, None, {"bootstrap_servers": proxy.bootstrap}), real_world())
    try:
        found = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    finally:
        await cluster.close()
    return {tp: one.offset for tp, one in found.items()}


@pytest.mark.parametrize(
    ("api", "change"),
    [
        pytest.param(ApiKey.METADATA, hidden, id="any broker"),
        pytest.param(ApiKey.LIST_OFFSETS, refused, id="its leader"),
    ],
)
async def test_a_new_topic_is_heard_of_later(
    bootstrap: str, topic: str, api: ApiKey, change: Callable[[Any], None]
) -> None:
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            return Pass(change if request.key == api and proxy.count(api) < 3 else None)

        proxy.rule = rule
        tp = TopicPartition(topic, 0)
        assert await first_offset(proxy, tp) == {tp: 0}
        assert proxy.count(api) == 3


async def test_a_leader_that_has_gone_since_it_was_looked_up_is_looked_up_again(bootstrap: str, topic: str) -> None:
    """Between the two a round of metadata may bring a cluster without it."""
    tp = TopicPartition(topic, 0)
    cluster = Cluster(parse_settings(AdminSettings, None, {"bootstrap_servers": bootstrap}), real_world())
    asked: list[int] = []

    async def ask(
        leader: int, group: Sequence[TopicPartition], results: dict[TopicPartition, int], _errors: object
    ) -> None:
        asked.append(leader)
        await cluster.ask(GONE if len(asked) == 1 else leader, MetadataRequest(), MetadataResponse)
        results |= dict.fromkeys(group, leader)

    try:
        found = await ask_leaders(cluster, [tp], ask)
    finally:
        await cluster.close()
    assert found == {tp: asked[-1]}
    assert len(asked) == 2


async def test_a_position_is_asked_of_whoever_leads_when_its_leader_has_gone(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    world = real_world()
    cluster = Cluster(parse_settings(AdminSettings, None, {"bootstrap_servers": bootstrap}), world)
    resets = Resets("earliest", cluster, world.clock, Backoff(1, 1, world.entropy), 0)
    one = AssignedPartition(tp)
    one.reset_to(EARLIEST)
    try:
        cluster.want([topic])
        await cluster.updated()
        there = cluster.metadata
        led = there.topics[topic].partitions[0]._replace(leader=GONE)
        cluster.metadata = there._replace(
            nodes={GONE: Node(GONE, "127.0.0.1", 1)}, topics={topic: there.topics[topic]._replace(partitions=(led,))}
        )
        looked = asyncio.Event()
        resets.begin({tp: one}, looked.set)
        cluster.metadata = there
        await looked.wait()
        assert one.error is None
        looked.clear()
        resets.begin({tp: one}, looked.set)
        while one.position is None:
            await looked.wait()
            looked.clear()
            resets.begin({tp: one}, looked.set)
    finally:
        await resets.close()
        await cluster.close()
    assert (one.position, one.error) == (0, None)


async def test_what_nobody_has_heard_of_for_a_while_is_not_there(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:
        there, too_high, nowhere = (
            TopicPartition(topic, 0),
            TopicPartition(topic, 7),
            TopicPartition("no-such-topic", 0),
        )
        with pytest.raises(SomeFailed) as failed:
            await first_offset(proxy, there, too_high, nowhere)
        assert {tp: one.offset for tp, one in failed.value.results.items()} == {there: 0}
        assert {tp: type(error) for tp, error in failed.value.errors.items()} == dict.fromkeys(
            (too_high, nowhere), UnknownTopicOrPartition
        )
        assert "has no partition 7" in str(failed.value.errors[too_high])
        assert proxy.count(ApiKey.LIST_OFFSETS) == 1  # what is known is not asked again


def cluster_of(proxy: Proxy, **settings: Any) -> Cluster:
    return Cluster(parse_settings(AdminSettings, {"bootstrap_servers": proxy.bootstrap}, settings), real_world())


async def test_a_partition_that_cannot_be_asked_hides_nothing_of_the_others(bootstrap: str, wide_topic: str) -> None:
    """When the time is up: what the others have answered is known, or done."""

    def leaderless(answer: MetadataResponse) -> None:
        for topic in answer.topics:
            topic.partitions[1].leader_id = -1

    tps = [TopicPartition(wide_topic, number) for number in range(4)]
    async with Proxy(bootstrap, lambda one: Pass(leaderless if one.key == ApiKey.METADATA else None)) as proxy:
        cluster = cluster_of(proxy, default_api_timeout_ms=1_000)
        try:
            with pytest.raises(SomeFailed) as failed:
                await list_offsets(cluster, dict.fromkeys(tps, EARLIEST))
        finally:
            await cluster.close()
    assert {tp: one.offset for tp, one in failed.value.results.items()} == {tps[0]: 0, tps[2]: 0, tps[3]: 0}
    assert {tp: type(error) for tp, error in failed.value.errors.items()} == {tps[1]: NotLeaderOrFollower}


async def test_what_a_leader_says_nothing_of_is_not_done(bootstrap: str, wide_topic: str) -> None:
    def without(answer: DeleteRecordsResponse) -> None:
        for topic in answer.topics:
            topic.partitions = [one for one in topic.partitions if one.partition_index != 1]

    tps = [TopicPartition(wide_topic, number) for number in range(2)]
    async with Proxy(bootstrap) as proxy:
        proxy.rule = lambda one: Pass(
            without if one.key == ApiKey.DELETE_RECORDS and proxy.count(ApiKey.DELETE_RECORDS) < 2 else None
        )
        cluster = cluster_of(proxy)
        try:
            assert await delete_records(cluster, dict.fromkeys(tps, 0), 1) == dict.fromkeys(tps, 0)
        finally:
            await cluster.close()
        assert proxy.count(ApiKey.DELETE_RECORDS) == 2


async def test_what_befell_all_is_raised_itself(bootstrap: str, wide_topic: str) -> None:
    async with Proxy(bootstrap) as proxy:
        cluster = cluster_of(proxy)
        try:
            with pytest.raises(UnsupportedVersion):
                await ask_leaders(cluster, [TopicPartition(wide_topic, number) for number in range(2)], too_new)
        finally:
            await cluster.close()


async def too_new(*_: object) -> None:
    raise UnsupportedVersion("too new for this broker")


async def test_a_group_whose_coordinator_is_away_hides_nothing_of_the_others(bootstrap: str, topic: str) -> None:
    away, there = f"{topic}-away", f"{topic}-there"

    def not_available(answer: FindCoordinatorResponse) -> None:
        for one in answer.coordinators:
            if one.key == away:
                one.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE

    async with Proxy(
        bootstrap, lambda one: Pass(not_available if one.key == ApiKey.FIND_COORDINATOR else None)
    ) as proxy:
        cluster = cluster_of(proxy)

        async def ask(_: int, groups: Sequence[str], results: dict[str, str], __: object) -> None:
            results |= {group: "done" for group in groups if group != f"{topic}-left-out" or results}

        try:
            with pytest.raises(SomeFailed) as failed:
                await ask_coordinators(cluster, [away, there], ask, 1_000)
            assert failed.value.results == {there: "done"}
            assert {key: type(error) for key, error in failed.value.errors.items()} == {away: CoordinatorNotAvailable}
            # What an answer leaves out is asked for again.
            assert await ask_coordinators(cluster, [there, f"{topic}-left-out"], ask) == {
                there: "done",
                f"{topic}-left-out": "done",
            }
        finally:
            await cluster.close()


@pytest.mark.parametrize("who", ["reads", "writes"])
async def test_a_partition_that_lost_its_leader_is_asked_for_less_and_less(
    bootstrap: str, topic: str, who: str
) -> None:
    """Though its place is known, and its records wait: it may be away for hours."""
    tp = TopicPartition(topic, 0)

    def leaderless(answer: MetadataResponse) -> None:
        for one in answer.topics:
            one.partitions[0].leader_id, one.partitions[0].error_code = -1, ErrorCode.LEADER_NOT_AVAILABLE

    async with (
        Proxy(bootstrap) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, linger_ms=0) as producer,
        Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        client: Producer | Consumer = producer
        await producer.send_and_wait(topic, b"x")
        if who == "reads":
            client = consumer
            consumer.assign([tp])
            assert len(await consumer.poll()) == 1
        proxy.rule = lambda one: Pass(leaderless if one.key == ApiKey.METADATA else None)
        await client.cluster.updated()
        sent = await producer.send(topic, b"y") if who == "writes" else None
        asked = proxy.count(ApiKey.METADATA)
        if who == "reads":
            consumer.seek(tp, 0)
            assert await consumer.poll(timeout_ms=2_500) == []
        else:
            await asyncio.sleep(2.5)
        assert 1 <= proxy.count(ApiKey.METADATA) - asked <= 10
        proxy.rule = lambda _: Pass()
        if sent is not None:
            assert (await sent).offset == 1
        else:
            assert len(await consumer.poll()) == 1
