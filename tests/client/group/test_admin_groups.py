"""Admin's groups: listed, described, their offsets seen and moved, and what becomes of it while coordinators move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from ottla.client.admin.admin import Admin
from ottla.client.admin.group_lag import group_lags
from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import KafkaError, SomeFailed, UnsupportedVersion
from ottla.client.producing.producer import Producer
from ottla.client.sync import Admin as SyncAdmin
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.generated.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.protocol.generated.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from tests.client.conftest import make_topic
from tests.client.group.members import Member, until
from tests.client.proxy import Action, Pass, Proxy, Reply, Request
from tests.client.reading import eventually
from tests.client.short_times import having


async def code_of(work: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await work
    return caught.value.code


async def test_a_group_without_members_has_offsets_that_admin_moves(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    first, second = TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 1)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        assert await admin.list_group_offsets(group) == {}
        await admin.alter_group_offsets(group, {first: 5, second: CommittedOffset(7, "by hand", 0)})
        assert await admin.list_group_offsets(group) == {
            first: CommittedOffset(5),
            second: CommittedOffset(7, "by hand", 0),
        }
        assert await admin.list_group_offsets(group, [second, TopicPartition(wide_topic, 2)]) == {
            second: CommittedOffset(7, "by hand", 0)
        }
        await admin.alter_group_offsets(group, {first: 3})
        assert (await admin.list_group_offsets(group, require_stable=True))[first].offset == 3
        await admin.delete_group_offsets(group, [second])
        assert list(await admin.list_group_offsets(group)) == [first]
        described = await admin.describe_group(group)
        assert (described.state, described.type, described.members) == ("Empty", "classic", ())
        assert not described.is_active
        await admin.delete_group(group)
        assert await admin.list_group_offsets(group) == {}
        assert await code_of(admin.describe_group(group)) == ErrorCode.GROUP_ID_NOT_FOUND


async def test_several_groups_at_once(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    groups = [f"{group}-{number}" for number in range(20)]
    async with Admin(bootstrap_servers=bootstrap) as admin:
        for number, name in enumerate(groups):
            await admin.alter_group_offsets(name, {tp: number})
        found = await admin.list_groups_offsets(groups)
        assert {name: one[tp].offset for name, one in found.items()} == {name: n for n, name in enumerate(groups)}
        assert list(await admin.describe_groups(groups)) == groups
        listed = [one for one in await admin.list_groups() if one.group_id.startswith(group)]
        assert [one.group_id for one in listed] == sorted(groups)
        assert {(one.state, one.type, one.protocol_type) for one in listed} == {("Empty", "classic", "")}
        with pytest.raises(SomeFailed) as caught:
            await admin.delete_groups([*groups, f"{group}-none"])
        assert {name: error.code for name, error in caught.value.errors.items()} == {
            f"{group}-none": ErrorCode.GROUP_ID_NOT_FOUND
        }
        assert set(caught.value.results) == set(groups)


async def test_members_of_a_classic_group(bootstrap: str, wide_topic: str, group: str) -> None:
    async with (
        Member(bootstrap, group, "one").subscribe(wide_topic).consumer as one,
        Member(bootstrap, group, "two", group_instance_id="fixed").subscribe(wide_topic).consumer as two,
        Admin(bootstrap_servers=bootstrap) as admin,
    ):

        async def are_shared() -> bool:
            await asyncio.gather(one.poll(timeout_ms=20), two.poll(timeout_ms=20))
            return [len(each.assignment()) for each in (one, two)] == [2, 2]

        await eventually(are_shared)
        described = await admin.describe_group(group)
        assert (described.state, described.type, described.protocol_type) == ("Stable", "classic", "consumer")
        assert described.assignor == "range"
        assert described.is_active
        assert described.coordinator == (await admin.describe_cluster()).brokers[0]
        by_client = {member.client_id: member for member in described.members}
        assert {name: member.instance_id for name, member in by_client.items()} == {"one": None, "two": "fixed"}
        assert list(by_client["one"].assignment) == sorted(one.assignment())
        assert list(by_client["two"].assignment) == sorted(two.assignment())
        assert all("127.0.0.1" in member.host and member.topics == (wide_topic,) for member in described.members)
        assert all((member.epoch, member.target, member.upgraded) == (None, None, None) for member in described.members)
        tp = TopicPartition(wide_topic, 0)
        assert await code_of(admin.delete_group(group)) == ErrorCode.NON_EMPTY_GROUP
        assert await code_of(admin.alter_group_offsets(group, {tp: 0})) == ErrorCode.UNKNOWN_MEMBER_ID
        assert await code_of(admin.delete_group_offsets(group, [tp])) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    async with Admin(bootstrap_servers=bootstrap) as admin:
        # A static member that leaves is expected back: only once it is not may the group be empty.
        (listed,) = [one for one in await admin.list_groups(types=["classic"]) if one.group_id == group]
        assert listed.protocol_type == "consumer"


async def test_members_of_a_newer_group(bootstrap: str, wide_topic: str, group: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer", "client.id": "newer"}
    consumer = ConfluentConsumer({**settings, "group.instance.id": "fixed", "client.rack": "attic"})
    try:
        consumer.subscribe([wide_topic])

        def poll_until_assigned() -> None:
            while len(consumer.assignment()) < 4:
                consumer.poll(0.02)

        await asyncio.to_thread(poll_until_assigned)
        async with Admin(bootstrap_servers=bootstrap) as admin:

            async def is_stable() -> bool:
                await asyncio.to_thread(consumer.poll, 0.02)
                return (await admin.describe_group(group)).state == "Stable"

            await eventually(is_stable)
            described = await admin.describe_group(group)
            assert (described.type, described.protocol_type, described.assignor) == ("consumer", "consumer", "uniform")
            assert described.epoch is not None
            assert described.epoch == described.assignment_epoch
            (member,) = described.members
            assert (member.client_id, member.instance_id, member.rack) == ("newer", "fixed", "attic")
            assert (member.epoch, member.upgraded, member.topics) == (described.epoch, True, (wide_topic,))
            assert member.assignment == member.target == tuple(TopicPartition(wide_topic, n) for n in range(4))
            listed = await admin.list_groups(types=["consumer"])
            assert [one.protocol_type for one in listed if one.group_id == group] == ["consumer"]
    finally:
        consumer.close()


async def test_how_far_a_group_lies_behind(bootstrap: str, wide_topic: str, group: str) -> None:
    topic = f"{wide_topic}-gone"
    await make_topic(bootstrap, topic)
    async with Producer(bootstrap_servers=bootstrap) as producer, Admin(bootstrap_servers=bootstrap) as admin:
        for number in range(10):
            await producer.send_and_wait(wide_topic, b"x", partition=number % 2)
        await admin.alter_group_offsets(group, {TopicPartition(wide_topic, 0): 2, TopicPartition(topic, 0): 0})
        member = Member(bootstrap, group, fetch_min_bytes=1000, enable_auto_commit=False)
        async with member.consumer:
            member.subscribe(wide_topic)
            await until(lambda: len(member.has) == 4, member)
            groups = {group: await admin.describe_group(group)}
            committed = await admin.list_groups_offsets([group])
            await admin.delete_topic(topic)

            async def is_gone() -> bool:
                return topic not in await admin.list_topics()

            await eventually(is_gone)
            lags = (await group_lags(admin.cluster, groups, committed))[group]
    assert [(one.partition, one.end, one.lag, one.member is not None) for one in lags] == sorted(
        [
            (TopicPartition(topic, 0), None, None, False),
            (TopicPartition(wide_topic, 0), 5, 3, True),
            (TopicPartition(wide_topic, 1), 5, None, True),
            (TopicPartition(wide_topic, 2), 0, None, True),
            (TopicPartition(wide_topic, 3), 0, None, True),
        ]
    )


async def test_what_cannot_be_altered_is_told_by_partition(bootstrap: str, topic: str, group: str) -> None:
    there, nowhere = TopicPartition(topic, 0), TopicPartition(f"{topic}-none", 0)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(SomeFailed) as caught:
            await admin.alter_group_offsets(group, {there: 1, nowhere: 1})
        assert {tp: error.code for tp, error in caught.value.errors.items()} == {
            nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        assert list(await admin.list_group_offsets(group)) == [there]
        assert await code_of(admin.delete_group_offsets(f"{group}-none", [there])) == ErrorCode.GROUP_ID_NOT_FOUND
        await admin.alter_group_offsets(group, {})
        assert await admin.describe_groups([]) == {}
        assert await admin.list_groups_offsets({group: [nowhere]}) == {group: {}}
        with pytest.raises(ValueError, match="groups must be a list of names"):
            await admin.describe_groups(group)


def test_without_await(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    with SyncAdmin(bootstrap_servers=bootstrap) as admin:
        admin.alter_group_offsets(group, {tp: 4})
        assert admin.list_group_offsets(group)[tp].offset == 4
        assert admin.list_groups_offsets([group])[group][tp].offset == 4
        assert group in [one.group_id for one in admin.list_groups()]
        assert admin.describe_group(group).state == "Empty"
        assert admin.describe_groups([group])[group].group_id == group
        admin.delete_group_offsets(group, [tp])
        admin.alter_group_offsets(group, {tp: 4})
        admin.delete_group(group)


# Coordinators that move, and brokers that are older


def failing(key: int, times: int, answer: Callable[[Request], Any]) -> Callable[[Request], Action]:
    """The first requests of this API are answered so; the broker hears of the later ones."""
    left = times

    def rule(request: Request) -> Action:
        nonlocal left
        if request.key != key or left == 0:
            return Pass()
        left -= 1
        return Reply(answer(request))

    return rule


def unfound(code: ErrorCode) -> Callable[[Request], FindCoordinatorResponse]:
    def answer(request: Request) -> FindCoordinatorResponse:
        keys = request.decoded().coordinator_keys
        found = [Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code) for key in keys]
        return FindCoordinatorResponse(coordinators=found)

    return answer


def refused(code: ErrorCode) -> Callable[[Request], OffsetFetchResponse]:
    def answer(request: Request) -> OffsetFetchResponse:
        groups = request.decoded().groups
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=one.group_id, topics=[], error_code=code) for one in groups]
        )

    return answer


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        (ApiKey.FIND_COORDINATOR, unfound(ErrorCode.COORDINATOR_NOT_AVAILABLE)),
        (ApiKey.OFFSET_FETCH, refused(ErrorCode.NOT_COORDINATOR)),
        (ApiKey.OFFSET_FETCH, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)),
    ],
)
async def test_a_coordinator_that_moves_is_looked_up_again(
    bootstrap: str, topic: str, group: str, key: int, answer: Callable[[Request], Any]
) -> None:
    tp = TopicPartition(topic, 0)
    async with Proxy(bootstrap) as proxy, Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=1) as admin:
        await admin.alter_group_offsets(group, {tp: 1})
        proxy.rule = failing(key, 2, answer)
        before = proxy.count(ApiKey.FIND_COORDINATOR)
        assert (await admin.list_group_offsets(group))[tp].offset == 1
        assert proxy.count(ApiKey.FIND_COORDINATOR) - before == 3


async def test_a_coordinator_that_stays_away_ends_with_its_error(bootstrap: str, group: str) -> None:
    async with Proxy(bootstrap) as proxy, Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=1) as admin:
        assert await admin.list_group_offsets(group) == {}  # the coordinator is there before time is short
        proxy.rule = failing(ApiKey.OFFSET_FETCH, 10_000, refused(ErrorCode.NOT_COORDINATOR))
        with having(admin, default_api_timeout_ms=1_500):
            assert await code_of(admin.list_group_offsets(group)) == ErrorCode.NOT_COORDINATOR


async def test_other_errors_of_a_coordinator_are_final(bootstrap: str, group: str) -> None:
    rule = failing(ApiKey.OFFSET_FETCH, 1, refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        assert await code_of(admin.list_group_offsets(group)) == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert proxy.count(ApiKey.OFFSET_FETCH) == 1


def older(**ranges: tuple[int, int]) -> Callable[[Request], Action]:
    """A broker that serves no newer versions of these APIs, and not the newer groups at all."""

    def change(answer: ApiVersionsResponse) -> None:
        named = {ApiKey[name]: bounds for name, bounds in ranges.items()}
        answer.api_keys = [
            ApiVersion(
                api_key=one.api_key,
                min_version=named.get(one.api_key, (one.min_version, 0))[0],
                max_version=named.get(one.api_key, (0, one.max_version))[1],
            )
            for one in answer.api_keys
            if one.api_key != ApiKey.CONSUMER_GROUP_DESCRIBE
        ]

    return lambda request: Pass(change if request.key == ApiKey.API_VERSIONS else None)


async def test_a_broker_of_years_ago(bootstrap: str, wide_topic: str, group: str) -> None:
    rule = older(
        FIND_COORDINATOR=(0, 2),
        OFFSET_FETCH=(1, 5),
        OFFSET_COMMIT=(2, 5),
        DESCRIBE_GROUPS=(0, 4),
        LIST_GROUPS=(0, 2),
        DELETE_GROUPS=(0, 1),
    )
    tp, groups = TopicPartition(wide_topic, 3), [f"{group}-a", f"{group}-b"]
    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        for name in groups:
            await admin.alter_group_offsets(name, {tp: 9})
        found = await admin.list_groups_offsets(groups)
        assert {name: one[tp].offset for name, one in found.items()} == dict.fromkeys(groups, 9)
        assert (await admin.list_group_offsets(groups[0], [tp]))[tp].offset == 9
        listed = [one for one in await admin.list_groups() if one.group_id in groups]
        assert [(one.group_id, one.state, one.type) for one in listed] == [(name, None, None) for name in groups]
        described = await admin.describe_groups(groups)
        assert [one.state for one in described.values()] == ["Empty", "Empty"]
        with pytest.raises(UnsupportedVersion):
            await admin.list_groups(states=["Empty"])
        with pytest.raises(UnsupportedVersion):
            await admin.list_group_offsets(group, require_stable=True)
        await admin.delete_groups(groups)
        assert await code_of(admin.describe_group(groups[0])) == ErrorCode.GROUP_ID_NOT_FOUND
    used = {request.key: request.version for request in proxy.requests}
    assert (used[ApiKey.FIND_COORDINATOR], used[ApiKey.OFFSET_FETCH], used[ApiKey.DESCRIBE_GROUPS]) == (2, 5, 4)
