"""Members that are closed in the midst of something, misused, or kept from everything: what becomes of them and of the
group, and that nothing of them stays behind."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ottla.client import sync
from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.group.assignors import RangeAssignor
from ottla.client.consuming.group.wire import Assignment
from ottla.client.errors import AssignorFailed, ClientClosed, CommitFailed
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.group.members import QUICK, Member, close, poll_on, shares, until, write
from tests.client.proxy import Action, Pass, Proxy, Request, Silence
from tests.client.short_times import having
from tests.garbage import are_gone

#: Longer than a test may take: whoever waits for a session to end does not pass.
NEVER_MS = 1_200_000


def silent(*keys: ApiKey) -> Callable[[Request], Action]:
    return lambda one: Silence() if one.key in keys else Pass()


async def so(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)


async def turns() -> None:
    """Of the event loop: what was cancelled has ended after some."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_member_that_is_closed_while_it_joins_holds_up_nobody(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    first = Member(bootstrap, group, session_timeout_ms=NEVER_MS).subscribe(wide_topic)
    await until(shares(4, first), first)
    async with Proxy(bootstrap) as proxy:
        second = Member(proxy.bootstrap, group, session_timeout_ms=NEVER_MS).subscribe(wide_topic)
        # It waits in JoinGroup for the first one, which does not poll.
        await until(lambda: proxy.count(ApiKey.JOIN_GROUP) == 2, second)
        await close(second)
    await until(lambda: len(first.events) == 3, first)
    assert first.events == [("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]
    await close(first)


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
async def test_a_leader_that_ends_while_it_shares_out_waits_for_nobody(
    bootstrap: str, wide_topic: str, group: str, end: str
) -> None:
    """Its last commit is refused until the partitions are shared out, which nobody does any more."""
    async with Proxy(bootstrap) as proxy:
        leader = Member(proxy.bootstrap, group, partition_assignment_strategy="cooperative-sticky")
        leader.subscribe(wide_topic)
        await write(bootstrap, wide_topic, [b"one"])
        await until(lambda: len(leader.records) == 1, leader)
        shared_out = proxy.count(ApiKey.SYNC_GROUP)
        proxy.rule = silent(ApiKey.SYNC_GROUP)
        leader.consumer.subscribe(pattern=f"{wide_topic}.*", listener=leader)
        await until(lambda: proxy.count(ApiKey.SYNC_GROUP) > shared_out, leader)
        async with asyncio.timeout(10):
            await getattr(leader.consumer, end)()
        assert leader.events[-1][0] == "revoked"
        await close(leader)


@pytest.mark.parametrize("what", ["nothing", "find", "join", "sync", "heartbeat", "commit", "leave", "fetch-offsets"])
@pytest.mark.parametrize("how", [{}, {"pattern": True}], ids=["topics", "pattern"])
async def test_nothing_is_left_behind(bootstrap: str, topic: str, group: str, what: str, how: dict[str, bool]) -> None:
    """Whatever is unanswered when a member is closed: no task goes on, and its memory is free."""
    silences = {
        "nothing": (),
        "find": (ApiKey.FIND_COORDINATOR,),
        "join": (ApiKey.JOIN_GROUP,),
        "sync": (ApiKey.SYNC_GROUP,),
        "heartbeat": (ApiKey.HEARTBEAT,),
        "commit": (ApiKey.OFFSET_COMMIT,),
        "leave": (ApiKey.LEAVE_GROUP,),
        "fetch-offsets": (ApiKey.OFFSET_FETCH,),
    }[what]
    await write(bootstrap, topic, [b"x"])
    async with Proxy(bootstrap, silent(*silences)) as proxy:
        before = asyncio.all_tasks()
        consumer = Consumer({**QUICK, "bootstrap_servers": proxy.bootstrap, "group_id": group})
        if how:
            consumer.subscribe(pattern=f"{topic}.*")
        else:
            consumer.subscribe([topic])
        reached = {ApiKey.FETCH} if not silences or what in {"leave", "commit"} else set(silences)
        while not any(proxy.count(key) for key in reached):
            await consumer.poll(timeout_ms=10)
        with having(consumer, default_api_timeout_ms=100, request_timeout_ms=100):
            if consumer.assignment():
                consumer.commit_async()
            await consumer.close()
        await turns()
        # Those of the proxy serve connections, and are named after what they do.
        left = [task for task in asyncio.all_tasks() - before if "Proxy" not in repr(task.get_coro())]
        assert left == []
    gone = weakref.ref(consumer)
    del consumer
    assert are_gone([gone])


async def test_whoever_waits_for_a_commit_hears_that_the_consumer_is_closed(
    bootstrap: str, topic: str, group: str
) -> None:
    """As an error: a task that nobody cancelled must not end as if somebody had."""
    tp = TopicPartition(topic, 0)
    async with Proxy(bootstrap, silent(ApiKey.FIND_COORDINATOR)) as proxy:
        consumer = Consumer({**QUICK, "bootstrap_servers": proxy.bootstrap, "group_id": group})
        consumer.assign([tp])
        waiting = [
            asyncio.create_task(work)
            for work in (consumer.commit({tp: 1}), consumer.committed([tp]), consumer.position(tp), consumer.poll())
        ]
        await so(lambda: proxy.count(ApiKey.FIND_COORDINATOR) > 0)
        await consumer.close()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in done] == [ClientClosed] * 4


async def test_a_loop_that_is_blocked_for_longer_than_a_session(bootstrap: str, topic: str, group: str) -> None:
    """No heartbeat goes out: the group has gone on, and the member learns that before it can commit."""
    await write(bootstrap, topic, [b"x"])
    blocked = Member(bootstrap, group, session_timeout_ms=1_500, enable_auto_commit=False).subscribe(topic)
    await until(lambda: bool(blocked.records), blocked)
    events, records = len(blocked.events), len(blocked.records)
    with sync.Admin(bootstrap_servers=bootstrap) as admin:
        while admin.describe_group(group).members:  # the loop is blocked meanwhile: that is what is tested
            pass
    with pytest.raises(CommitFailed, match="has rebalanced without this member"):
        await blocked.consumer.commit()
    with having(blocked.consumer, session_timeout_ms=NEVER_MS):  # it joins for good
        await until(lambda: len(blocked.events) == events + 2, blocked)
        assert blocked.events[-3:] == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
        await until(lambda: len(blocked.records) == records + 1, blocked)  # read again
        await blocked.consumer.commit()
    assert await blocked.consumer.committed([TopicPartition(topic, 0)]) == {
        TopicPartition(topic, 0): CommittedOffset(1, "", 0)
    }
    await close(blocked)


async def test_two_polls_at_once(bootstrap: str, topic: str, group: str) -> None:
    """The second one is told, the first one goes on; a question for a position may wait beside it."""
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        consumer.subscribe([topic])
        first = asyncio.create_task(consumer.poll())
        await asyncio.sleep(0)
        for _ in range(2):
            with pytest.raises(ValueError, match="another poll of this consumer is under way"):
                await consumer.poll(timeout_ms=0)
        with pytest.raises(ValueError, match="another poll"):
            await anext(aiter(consumer))
        await so(lambda: bool(consumer.assignment()))
        assert await consumer.position(TopicPartition(topic, 0)) == 0
        await write(bootstrap, topic, [b"x"])
        assert [record.value for record in await first] == [b"x"]
        await consumer.poll(timeout_ms=0)


@pytest.mark.parametrize("what", ["on_assigned", "on_revoked"])
async def test_a_listener_that_closes_its_consumer(bootstrap: str, topic: str, group: str, what: str) -> None:
    """The poll that told it of the partitions ends as any other does whose consumer is closed."""

    class Closing(Member):
        async def close_in(self, told: str) -> None:
            if told == what:
                await self.consumer.close()

        def on_assigned(self, partitions: Sequence[TopicPartition]) -> Any:
            super().on_assigned(partitions)
            return self.close_in("on_assigned")

        def on_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
            super().on_revoked(partitions)
            return self.close_in("on_revoked")

    other = Member(bootstrap, group, session_timeout_ms=NEVER_MS)
    member = Closing(bootstrap, group, session_timeout_ms=NEVER_MS).subscribe(topic)
    if what == "on_revoked":
        await until(shares(1, member), member)
        other.subscribe(topic)
    waiting = asyncio.create_task(member.consumer.poll())
    await until(waiting.done, *([other] if what == "on_revoked" else []))
    with pytest.raises(ClientClosed):
        await waiting
    other.subscribe(topic)
    await until(shares(1, other), other)
    assert member.events.count(("assigned", [0])) == 1
    await close(other)


async def test_an_end_that_was_cancelled_in_a_call_back_has_not_been(bootstrap: str, topic: str, group: str) -> None:
    """What the call-back lets go of comes back with the polls behind it: nobody else would read it."""
    began, may_end = asyncio.Event(), asyncio.Event()

    class Slow(Member):
        def on_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
            super().on_revoked(partitions)
            began.set()
            return may_end.wait()

    member = Slow(bootstrap, group, session_timeout_ms=NEVER_MS).subscribe(topic)
    await until(shares(1, member), member)
    ending = asyncio.create_task(member.consumer.unsubscribe())
    await began.wait()
    ending.cancel()
    await asyncio.wait([ending])
    assert ending.cancelled()
    may_end.set()
    await write(bootstrap, topic, [b"x"])
    async with asyncio.timeout(60):
        await until(lambda: member.values == [b"x"], member)
    assert member.events == [("assigned", [0]), ("revoked", [0]), ("assigned", [0])]
    await close(member)


async def test_a_poll_for_nothing(bootstrap: str, topic: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ValueError, match="max_records must be from 1 to 2147483647, not 0"):
            await consumer.poll(max_records=0)


async def test_what_a_listener_raises_when_partitions_go(bootstrap: str, wide_topic: str, group: str) -> None:
    """It is told by `poll` and by `close`; the partitions have gone all the same."""

    class Raising(Member):
        def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            super().on_revoked(partitions)
            raise ZeroDivisionError("of the listener")

    first = Raising(bootstrap, group, session_timeout_ms=NEVER_MS).subscribe(wide_topic)
    second = Member(bootstrap, group, session_timeout_ms=NEVER_MS)
    await until(shares(4, first), first)
    second.subscribe(wide_topic)
    with pytest.raises(ExceptionGroup) as caught:
        await until(shares(4, first, second), first, second)
    assert caught.group_contains(ZeroDivisionError, match="of the listener")
    await until(shares(4, first, second), first, second)
    with pytest.raises(ZeroDivisionError, match="of the listener"):
        await first.consumer.close()
    await until(shares(4, second), second)
    await close(second)


async def test_what_a_call_back_of_a_commit_raises(bootstrap: str, topic: str, group: str) -> None:
    """The loop's own handler hears of it, at once; the consumer goes on."""
    heard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    member = Member(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    await until(shares(1, member), member)

    def raising(*_: object) -> None:
        raise ZeroDivisionError

    member.consumer.commit_async({TopicPartition(topic, 0): 0}, raising)
    await until(lambda: bool(heard), member)
    assert isinstance(heard[0]["exception"], ZeroDivisionError)
    await member.consumer.commit({TopicPartition(topic, 0): 0})
    await close(member)


class Forgetful(RangeAssignor):
    """Fails once where it is told what the member got."""

    def __init__(self) -> None:
        self.told = 0

    def assigned(self, assignment: Assignment, generation: int) -> None:
        self.told += 1
        if self.told == 1:
            raise ZeroDivisionError("of the assignor")


async def test_an_assignor_that_raises_when_it_is_told(bootstrap: str, topic: str, group: str) -> None:
    """The partitions are there all the same: nobody else would read them."""
    await write(bootstrap, topic, [b"x"])
    member = Member(bootstrap, group, partition_assignment_strategy=Forgetful()).subscribe(topic)
    with pytest.raises(ZeroDivisionError, match="of the assignor"):
        await poll_on(member)
    assert member.events == [("assigned", [0])]
    await until(lambda: member.values == [b"x"], member)
    await close(member)


class Speechless(RangeAssignor):
    def user_data(self, topics: frozenset[str]) -> bytes | None:
        raise ZeroDivisionError("of the assignor")


async def test_an_assignor_that_cannot_say_what_it_wants(bootstrap: str, topic: str, group: str) -> None:
    """Its member cannot join, says so, and leaves the others alone."""
    other = Member(bootstrap, group, session_timeout_ms=NEVER_MS).subscribe(topic)
    await until(shares(1, other), other)
    member = Member(bootstrap, group, partition_assignment_strategy=Speechless()).subscribe(topic)
    for _ in range(2):
        with pytest.raises(AssignorFailed, match="assignor range raised ZeroDivisionError: of the assignor"):
            await poll_on(member)
    await close(member)
    await other.poll()
    assert other.events == [("assigned", [0])]
    await close(other)
