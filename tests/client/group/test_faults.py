"""Coordinators that move, load, forget and answer nonsense: what members do then, by a proxy before a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla import testing
from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import (
    AssignorFailed,
    CommitFailed,
    GroupAuthorizationFailed,
    GroupMaxSizeReached,
    RebalanceInProgress,
    RequestTimedOut,
)
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.protocol.generated.heartbeat import HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupResponse
from ottla.protocol.generated.offset_commit import OffsetCommitResponse
from ottla.protocol.generated.offset_fetch import OffsetFetchResponse
from ottla.protocol.generated.sync_group import SyncGroupResponse
from tests.client.group.conftest import PROPERTIES
from tests.client.group.members import Member, close, poll_on, shares, until, write
from tests.client.proxy import Action, Cut, Pass, Proxy, Reply, Request, Silence


class Script:
    """Passes everything on but what it was told to do instead, once each, by API."""

    def __init__(self) -> None:
        self.planned: dict[int, list[Action]] = {}

    def plan(self, key: ApiKey, *actions: Action) -> None:
        self.planned.setdefault(key, []).extend(actions)

    def __call__(self, request: Request) -> Action:
        planned = self.planned.get(request.key)
        return planned.pop(0) if planned else Pass()

    def done(self) -> bool:
        return not any(self.planned.values())


def changed(change: Callable[[Any], None]) -> Pass:
    return Pass(change)


def found_by(group: str, code: ErrorCode) -> Reply:
    row = Coordinator(key=group, node_id=-1, host="", port=-1, error_code=code)
    return Reply(FindCoordinatorResponse(coordinators=[row]))


def commit_error(code: ErrorCode) -> Pass:
    def change(answer: OffsetCommitResponse) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                one.error_code = code

    return changed(change)


def fetch_error(code: ErrorCode, *, of_partitions: bool) -> Pass:
    def change(answer: OffsetFetchResponse) -> None:
        for group in answer.groups:
            if not of_partitions:
                group.error_code = code
                group.topics = []
            for topic in group.topics:
                for one in topic.partitions:
                    one.error_code = code

    return changed(change)


async def test_a_coordinator_that_is_not_there_yet(bootstrap: str, topic: str, group: str) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        script.plan(
            ApiKey.FIND_COORDINATOR,
            found_by(group, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            Reply(FindCoordinatorResponse()),
            found_by("of another group", ErrorCode.GROUP_AUTHORIZATION_FAILED),
            Cut(),
            found_by(group, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        )
        member = Member(proxy.bootstrap, group).subscribe(topic)
        await until(shares(1, member), member)
        assert script.done()
        await close(member)


async def test_a_group_that_one_may_not_join(bootstrap: str, topic: str, group: str) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        script.plan(ApiKey.FIND_COORDINATOR, found_by(group, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        script.plan(ApiKey.JOIN_GROUP, Reply(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)))
        member = Member(proxy.bootstrap, group).subscribe(topic)
        with pytest.raises(GroupAuthorizationFailed):
            await poll_on(member)
        with pytest.raises(GroupMaxSizeReached):
            await poll_on(member)
        await until(shares(1, member), member)  # whoever polls on tries again
        await close(member)


@pytest.mark.parametrize(
    "action",
    [
        Reply(JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)),
        Reply(JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)),
        Reply(JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)),
        Cut(),
        Cut(forwarded=True, answer_bytes=9),
    ],
    ids=["moved", "loading", "unknown", "cut-before", "cut-behind"],
)
async def test_a_join_that_fails_is_tried_again(bootstrap: str, topic: str, group: str, action: Action) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        # The second JoinGroup: the first only asks for a member id.
        script.plan(ApiKey.JOIN_GROUP, Pass(), action)
        member = Member(proxy.bootstrap, group, session_timeout_ms=1000).subscribe(topic)
        await until(shares(1, member), member)
        assert script.done()
        assert member.events == [("assigned", [0])]
        await close(member)


@pytest.mark.parametrize(
    "action",
    [
        Reply(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)),
        Reply(SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION)),
        Reply(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)),
        Reply(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)),
        Cut(),
        Cut(forwarded=True),
    ],
    ids=["rebalance", "generation", "unknown", "moved", "cut-before", "cut-behind"],
)
async def test_a_sync_that_fails_has_the_member_join_again(
    bootstrap: str, topic: str, group: str, action: Action
) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        script.plan(ApiKey.SYNC_GROUP, action)
        member = Member(proxy.bootstrap, group, session_timeout_ms=1000).subscribe(topic)
        await until(shares(1, member), member)
        assert script.done()
        await close(member)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_member_that_is_put_out_has_lost_what_it_had(
    bootstrap: str, topic: str, group: str, strategy: str, code: ErrorCode
) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, partition_assignment_strategy=strategy, session_timeout_ms=1000)
        member.subscribe(topic)
        await until(shares(1, member), member)
        script.plan(ApiKey.HEARTBEAT, Reply(HeartbeatResponse(error_code=code)))
        await until(lambda: len(member.events) == 3, member)
        assert member.events[1:] == [("lost", [0]), ("assigned", [0])]
        await close(member)


async def test_heartbeats_that_fail_in_passing(bootstrap: str, topic: str, group: str) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, session_timeout_ms=30_000).subscribe(topic)
        await until(shares(1, member), member)
        script.plan(
            ApiKey.HEARTBEAT,
            Reply(HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)),
            Reply(HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)),
            Cut(),
            Pass(),
        )
        looked_up = proxy.count(ApiKey.FIND_COORDINATOR)
        await until(script.done, member)
        await until(lambda: proxy.count(ApiKey.FIND_COORDINATOR) > looked_up, member)
        assert member.events == [("assigned", [0])]
        await close(member)


async def test_a_coordinator_that_is_silent_is_looked_for_within_the_session(
    bootstrap: str, topic: str, group: str
) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, session_timeout_ms=300, fetch_max_wait_ms=20).subscribe(topic)
        await until(shares(1, member), member)
        script.plan(ApiKey.HEARTBEAT, Silence())
        looked_up = proxy.count(ApiKey.FIND_COORDINATOR)
        await until(lambda: proxy.count(ApiKey.FIND_COORDINATOR) > looked_up, member)
        await until(shares(1, member), member)
        await close(member)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT],
)
async def test_a_commit_that_fails_in_passing_is_tried_again(
    bootstrap: str, topic: str, group: str, code: ErrorCode
) -> None:
    tp = TopicPartition(topic, 0)
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, enable_auto_commit=False).subscribe(topic)
        await until(shares(1, member), member)
        script.plan(ApiKey.OFFSET_COMMIT, commit_error(code), Cut(), commit_error(code))
        await member.consumer.commit({tp: 0})
        assert await member.consumer.committed([tp]) == {tp: CommittedOffset(0)}
        assert script.done()
        await close(member)


def refused_in_passing(seen: asyncio.Event) -> Pass:
    def change(answer: OffsetCommitResponse) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                one.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        seen.set()

    return changed(change)


Held = Callable[[asyncio.Event], Action]


@pytest.mark.parametrize("waits", [True, False], ids=["commit", "commit_async"])
@pytest.mark.parametrize(
    ("newer", "found"),
    [
        (lambda _: Pass(), 6),
        (lambda end: Pass(until=end), 6),
        (lambda end: Pass(commit_error(ErrorCode.OFFSET_METADATA_TOO_LARGE).change, end), 5),
    ],
    ids=["done", "under way", "refused"],
)
async def test_a_commit_that_is_tried_again_undoes_no_newer_one(
    bootstrap: str, wide_topic: str, group: str, newer: Held, found: int, *, waits: bool
) -> None:
    both, other = TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 1)
    script, seen, end, known = Script(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    outcomes: list[BaseException | None] = []

    def told(_: object, error: BaseException | None) -> None:
        outcomes.append(error)
        known.set()

    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, enable_auto_commit=False).subscribe(wide_topic)
        await until(shares(4, member), member)
        consumer = member.consumer
        script.plan(ApiKey.OFFSET_COMMIT, refused_in_passing(seen), newer(end))
        first = asyncio.create_task(consumer.commit({both: 5, other: 5}))
        await seen.wait()
        if waits:
            second = asyncio.create_task(consumer.commit({both: 6}))
            second.add_done_callback(lambda done: told(None, done.exception()))
        else:
            consumer.commit_async({both: 6}, told)
        if newer(end) != Pass():
            # The first one's pause is over; its next attempt waits for what becomes of the second.
            await asyncio.sleep(0.2)
            assert not first.done()
            end.set()
        await first
        await known.wait()
        assert (outcomes == [None]) == (found == 6)
        assert await consumer.committed([both, other]) == {both: CommittedOffset(found), other: CommittedOffset(5)}
        # What is asked for now is the newest, be it less.
        await consumer.commit({both: 2})
        assert await consumer.committed([both]) == {both: CommittedOffset(2)}
        assert script.done()
        await close(member)


async def test_a_newer_commit_that_nobody_waits_for_any_more_holds_up_none(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = TopicPartition(topic, 0)
    script, seen, end = Script(), asyncio.Event(), asyncio.Event()
    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, enable_auto_commit=False).subscribe(topic)
        await until(shares(1, member), member)
        script.plan(ApiKey.OFFSET_COMMIT, refused_in_passing(seen), Pass(until=end))
        first = asyncio.create_task(member.consumer.commit({tp: 5}))
        await seen.wait()
        with pytest.raises(RequestTimedOut):
            await member.consumer.commit({tp: 6}, timeout_ms=200)
        end.set()
        await first
        assert await member.consumer.committed([tp]) == {tp: CommittedOffset(5)}
        await close(member)


async def test_commits_of_another_generation(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        member = Member(proxy.bootstrap, group, enable_auto_commit=False, session_timeout_ms=1000).subscribe(topic)
        await until(shares(1, member), member)
        script.plan(ApiKey.OFFSET_COMMIT, commit_error(ErrorCode.REBALANCE_IN_PROGRESS))
        with pytest.raises(RebalanceInProgress, match="poll, then commit again"):
            await member.consumer.commit({tp: 0})
        await until(lambda: len(member.events) == 3, member)
        assert member.events[1:] == [("revoked", [0]), ("assigned", [0])]
        script.plan(ApiKey.OFFSET_COMMIT, commit_error(ErrorCode.ILLEGAL_GENERATION))
        with pytest.raises(CommitFailed, match="has rebalanced without this member"):
            await member.consumer.commit({tp: 0})
        with pytest.raises(CommitFailed):  # it knows, and asks nobody
            await member.consumer.commit({tp: 0})
        await until(lambda: len(member.events) == 5, member)
        assert member.events[3:] == [("lost", [0]), ("assigned", [0])]
        await member.consumer.commit({tp: 0})
        await close(member)


@pytest.mark.parametrize(
    "action",
    [
        fetch_error(ErrorCode.UNSTABLE_OFFSET_COMMIT, of_partitions=True),
        fetch_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, of_partitions=False),
        fetch_error(ErrorCode.NOT_COORDINATOR, of_partitions=False),
        fetch_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, of_partitions=True),
        changed(lambda answer: [group.topics.clear() for group in answer.groups]),
        Cut(),
    ],
    ids=["unstable", "loading", "moved", "unknown", "not-answered", "cut"],
)
async def test_offsets_that_are_not_known_yet_are_asked_for_again(
    bootstrap: str, topic: str, group: str, action: Action
) -> None:
    await write(bootstrap, topic, [b"0", b"1", b"2"])
    tp = TopicPartition(topic, 0)
    first = Member(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    await until(shares(1, first), first)
    await first.consumer.commit({tp: 2})
    await close(first)
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        script.plan(ApiKey.OFFSET_FETCH, action, action)
        member = Member(proxy.bootstrap, group).subscribe(topic)
        await until(lambda: bool(member.records), member)
        assert member.values == [b"2"]
        assert script.done()
        await close(member)


async def test_offsets_that_one_may_not_read(bootstrap: str, topic: str, group: str) -> None:
    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        script.plan(ApiKey.OFFSET_FETCH, fetch_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, of_partitions=False))
        member = Member(proxy.bootstrap, group).subscribe(topic)
        with pytest.raises(GroupAuthorizationFailed):
            await poll_on(member)
        await write(bootstrap, topic, [b"x"])
        await until(lambda: member.values == [b"x"], member)
        await close(member)


async def test_a_member_whose_wish_cannot_be_read_gets_nothing(bootstrap: str, topic: str, group: str) -> None:
    """The leader gives the others theirs: a broken client must not stop its group."""
    broken = b"\xff\xff garbage"

    def spoil(answer: JoinGroupResponse) -> None:
        for one in answer.members:
            if one.member_id.startswith("broken"):
                one.metadata = broken

    async with Proxy(bootstrap, lambda one: Pass(spoil) if one.key == ApiKey.JOIN_GROUP else Pass()) as proxy:
        healthy = Member(proxy.bootstrap, group, "healthy").subscribe(topic)
        await until(shares(1, healthy), healthy)
        other = Member(proxy.bootstrap, group, "broken").subscribe(topic)
        await until(lambda: other.events == [("assigned", [])] and healthy.has == [0], healthy, other)
        await close(healthy, other)


async def test_an_assignment_that_cannot_be_read(bootstrap: str, topic: str, group: str) -> None:
    def spoil(answer: SyncGroupResponse) -> None:
        answer.assignment = b"\x00"

    script = Script()
    async with Proxy(bootstrap, script) as proxy:
        script.plan(ApiKey.SYNC_GROUP, Pass(spoil))
        member = Member(proxy.bootstrap, group).subscribe(topic)
        with pytest.raises(AssignorFailed, match="assigned what cannot be read"):
            await poll_on(member)
        await until(shares(1, member), member)
        await close(member)


async def test_closing_while_nobody_answers(bootstrap: str, topic: str, group: str) -> None:
    """A member that is told to close ends, though its coordinator has gone."""
    proxy = Proxy(bootstrap)
    async with proxy:
        member = Member(proxy.bootstrap, group, default_api_timeout_ms=1_500).subscribe(topic)
        await until(shares(1, member), member)
        proxy.rule = lambda one: Silence() if one.key in {ApiKey.OFFSET_COMMIT, ApiKey.LEAVE_GROUP} else Pass()
        await close(member)
        assert member.events[-1] == ("revoked", [0])


async def test_a_coordinator_that_restarts_knows_its_group(new_name: str, group: str) -> None:
    """Of Ottla: members go on with what they have, and offsets are where they were."""
    tp = TopicPartition(new_name, 0)
    async with testing.async_broker(properties=PROPERTIES) as broker:
        await broker.create_topic(new_name, 2)
        first, second = (Member(broker.bootstrap, group).subscribe(new_name) for _ in range(2))
        await until(shares(2, first, second), first, second)
        holder = first if 0 in first.has else second
        generation = first.consumer.group_metadata().generation
        await holder.consumer.commit({tp: (0, "before")})
        events = (list(first.events), list(second.events))
        await broker.restart()
        await write(broker.bootstrap, new_name, [b"%d" % n for n in range(10)], 2)
        await until(lambda: len(first.records) + len(second.records) == 10, first, second)
        await holder.consumer.commit({tp: (3, "behind")})
        assert await holder.consumer.committed([tp]) == {tp: CommittedOffset(3, "behind")}
        assert (first.events, second.events) == events
        assert first.consumer.group_metadata().generation == generation
        await close(first, second)
