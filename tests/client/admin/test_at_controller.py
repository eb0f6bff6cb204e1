"""What the controller says of each topic: of some later, of some nothing at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.client.proxy import Action, Pass, Proxy, Reply, Request
from tests.client.short_times import having

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ElectionKind, NewTopic
from ottla.client.errors import BadAnswer, KafkaError, SomeFailed, ThrottlingQuotaExceeded
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.protocol.generated.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from ottla.protocol.generated.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.protocol.generated.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from ottla.protocol.generated.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from ottla.protocol.generated.metadata import MetadataResponse, MetadataResponseBroker
from ottla.protocol.message import Message

THROTTLE_MS = 300
PAIR = ("one", "two")


async def create(admin: Admin) -> object:
    return sorted(await admin.create_topics([NewTopic(name, 1, 1) for name in PAIR]))


async def delete(admin: Admin) -> object:
    return await admin.delete_topics(PAIR)


async def grow(admin: Admin) -> object:
    return await admin.create_partitions(dict.fromkeys(PAIR, 2))


def created(codes: dict[str, int]) -> Message:
    topics = [CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    return CreateTopicsResponse(throttle_time_ms=pause(codes), topics=topics)


def deleted(codes: dict[str, int]) -> Message:
    responses = [DeletableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    return DeleteTopicsResponse(throttle_time_ms=pause(codes), responses=responses)


def grown(codes: dict[str, int]) -> Message:
    results = [CreatePartitionsTopicResult(name=name, error_code=code) for name, code in codes.items()]
    return CreatePartitionsResponse(throttle_time_ms=pause(codes), results=results)


def pause(codes: dict[str, int]) -> int:
    return THROTTLE_MS if ErrorCode.THROTTLING_QUOTA_EXCEEDED in codes.values() else 0


Change = Callable[[Admin], Awaitable[object]]
Said = Callable[[dict[str, int]], Message]

CHANGES = pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        (ApiKey.CREATE_TOPICS, create, created),
        (ApiKey.DELETE_TOPICS, delete, deleted),
        (ApiKey.CREATE_PARTITIONS, grow, grown),
    ],
)


def names_of(request: Request) -> list[str]:
    found = request.decoded()
    return [one.name for one in found.topics]


def answering(key: ApiKey, answer: Callable[[list[str], int], Message]) -> Callable[[Request], Action]:
    """The controller's answers to this, from the names that are asked for and how often it was asked before."""
    times = 0

    def rule(request: Request) -> Action:
        nonlocal times
        if request.key != key:
            return Pass()
        times += 1
        return Reply(answer(names_of(request), times - 1))

    return rule


@CHANGES
async def test_what_a_quota_holds_up_is_asked_again_alone(
    bootstrap: str, key: ApiKey, change: Change, said: Said
) -> None:
    heard: list[tuple[list[str], float]] = []

    def answer(names: list[str], times: int) -> Message:
        heard.append((names, asyncio.get_running_loop().time()))
        late = ErrorCode.THROTTLING_QUOTA_EXCEEDED if not times else ErrorCode.NONE
        return said({name: late if name == "two" else ErrorCode.NONE for name in names})

    async with (
        Proxy(bootstrap, answering(key, answer)) as proxy,
        Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=5) as admin,
    ):
        assert await change(admin) in (None, list(PAIR))
    assert [names for names, _ in heard] == [["one", "two"], ["two"]]
    assert heard[1][1] - heard[0][1] >= THROTTLE_MS / 1000 - 0.01


@CHANGES
async def test_a_quota_that_lets_nothing_through_in_time(
    bootstrap: str, key: ApiKey, change: Change, said: Said
) -> None:
    def answer(names: list[str], times: int) -> Message:
        held_up = ErrorCode.THROTTLING_QUOTA_EXCEEDED if times else ErrorCode.NONE
        return said({name: held_up if name == "two" else ErrorCode.NONE for name in names})

    async with (
        Proxy(bootstrap, answering(key, answer)) as proxy,
        Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=5) as admin,
    ):
        await change(admin)  # so that the controller is known, and reached, before time is short
        with having(admin, default_api_timeout_ms=3_000), pytest.raises(SomeFailed) as caught:
            await change(admin)
    assert list(caught.value.results) == ["one"]
    assert {name: type(error) for name, error in caught.value.errors.items()} == {"two": ThrottlingQuotaExceeded}


@CHANGES
async def test_a_topic_of_which_nothing_is_said(bootstrap: str, key: ApiKey, change: Change, said: Said) -> None:
    rule = answering(key, lambda *_: said({"one": ErrorCode.NONE}))
    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        with pytest.raises(SomeFailed) as caught:
            await change(admin)
    assert list(caught.value.results) == ["one"]
    assert isinstance(caught.value.errors["two"], BadAnswer)
    assert "says nothing of it" in str(caught.value.errors["two"])


async def test_a_partition_that_is_to_move_of_which_nothing_is_said(bootstrap: str) -> None:
    one, two = (TopicPartition("one", number) for number in range(2))

    def rule(request: Request) -> Action:
        if request.key != ApiKey.ALTER_PARTITION_REASSIGNMENTS:
            return Pass()
        answered = ReassignableTopicResponse(name="one", partitions=[ReassignablePartitionResponse(partition_index=0)])
        return Reply(AlterPartitionReassignmentsResponse(responses=[answered]))

    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        with pytest.raises(SomeFailed) as caught:
            await admin.alter_partition_reassignments({one: [1], two: [1]})
    assert list(caught.value.results) == [one]
    assert "one-1: the answer says nothing of it" in str(caught.value.errors[two])


async def test_a_partition_whose_election_is_not_said(bootstrap: str) -> None:
    one, two = (TopicPartition("one", number) for number in range(2))

    def rule(request: Request) -> Action:
        if request.key != ApiKey.ELECT_LEADERS:
            return Pass()
        answered = ReplicaElectionResult(topic="one", partition_result=[PartitionResult(partition_id=0)])
        return Reply(ElectLeadersResponse(replica_election_results=[answered]))

    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        assert await admin.elect_leaders(ElectionKind.PREFERRED) == {one: None}
        results = await admin.elect_leaders(ElectionKind.PREFERRED, [one, two])
    assert results[one] is None
    assert "one-1: the answer says nothing of it" in str(results[two])


async def test_a_description_without_the_topic(bootstrap: str) -> None:
    def rule(request: Request) -> Action:
        if request.key != ApiKey.METADATA:
            return Pass()
        host, port = proxy.bootstrap.split(":")
        return Reply(MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=host, port=int(port))]))

    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        with pytest.raises(KafkaError) as caught:
            await admin.describe_topic("one")
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
