"""Groups that live: members come, go, crash and sleep, topics grow, and the partitions are shared all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.group.assignors import Assignor, Topics
from ottla.client.consuming.group.wire import Assignment, Subscription, encode_subscription
from ottla.client.errors import (
    AssignorFailed,
    BadArgument,
    CommitFailed,
    FencedInstanceId,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidTopic,
)
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.join_group import JoinGroupResponseMember
from ottla.protocol.generated.metadata import MetadataResponse
from tests.client.conftest import make_topic
from tests.client.group.members import QUICK, Member, close, poll_on, shares, until, write
from tests.client.proxy import Action, Pass, Proxy, Request

EVERYTHING = ("range", "roundrobin", "sticky", "cooperative-sticky")


@pytest.mark.parametrize("strategy", EVERYTHING)
async def test_members_come_and_go(bootstrap: str, wide_topic: str, group: str, strategy: str) -> None:
    first, second, third = (
        Member(bootstrap, group, name, partition_assignment_strategy=strategy) for name in ("a", "b", "c")
    )
    first.subscribe(wide_topic)
    await until(shares(4, first), first)
    second.subscribe(wide_topic)
    await until(shares(4, first, second), first, second)
    third.subscribe(wide_topic)
    await until(shares(4, first, second, third), first, second, third)
    await write(bootstrap, wide_topic, [b"%d" % n for n in range(40)], 4)
    await until(lambda: len(first.values + second.values + third.values) == 40, first, second, third)
    assert sorted(first.values + second.values + third.values) == sorted(b"%d" % n for n in range(40))
    await close(second)
    assert second.events[-1][0] == "revoked"
    await until(shares(4, first, third), first, third)
    await close(first)
    await until(shares(4, third), third)
    await close(third)
    assert "lost" not in {what for member in (first, second, third) for what, _ in member.events}


async def test_a_member_that_crashes_is_missed_after_its_session(bootstrap: str, wide_topic: str, group: str) -> None:
    first = Member(bootstrap, group).subscribe(wide_topic)
    second = Member(bootstrap, group, session_timeout_ms=500).subscribe(wide_topic)
    await until(shares(4, first, second), first, second)
    await second.vanish()
    await until(shares(4, first), first)
    await close(first)
    await second.consumer.close()


async def test_a_member_that_sleeps_too_long_leaves_and_cannot_commit(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    await write(bootstrap, wide_topic, [b"x"] * 8, 4)
    first = Member(bootstrap, group, enable_auto_commit=False).subscribe(wide_topic)
    sleeper = Member(bootstrap, group, enable_auto_commit=False, max_poll_interval_ms=400)
    await until(shares(4, first), first)
    sleeper.subscribe(wide_topic)
    await until(lambda: shares(4, first, sleeper)() and bool(sleeper.records), first, sleeper)
    # Its heartbeats go on, but it does not poll: the others get what it had.
    await until(shares(4, first), first)
    with pytest.raises(CommitFailed, match=r"more than max\.poll\.interval\.ms \(400 ms\).*raise max\.poll\.int"):
        await sleeper.consumer.commit()
    told: list[object] = []
    sleeper.consumer.commit_async(on_committed=lambda _, error: told.append(error))
    # It comes back with its next poll.
    had = sleeper.has
    await until(shares(4, first, sleeper), first, sleeper)
    assert ("lost", had) in [(what, sorted(partitions)) for what, partitions in sleeper.events]
    assert isinstance(told[0], CommitFailed)
    # It polls meanwhile: the answer may take longer than it may be away.
    committing = asyncio.ensure_future(sleeper.consumer.commit())
    await until(committing.done, sleeper)
    await committing
    await close(first, sleeper)


async def test_whoever_polls_often_enough_stays(bootstrap: str, topic: str, group: str) -> None:
    """Iterating is polling: a record that is taken is a sign of life."""
    await write(bootstrap, topic, [b"%d" % n for n in range(20)])
    member = Member(bootstrap, group, max_poll_interval_ms=2_000).subscribe(topic)
    seen = 0
    async for _ in member.consumer:
        seen += 1
        if seen == 20:
            break
        await asyncio.sleep(0.12)  # all of them together take longer than the interval
    assert [what for what, _ in member.events] == ["assigned"]
    await close(member)


async def test_a_pattern_finds_topics_and_new_ones(bootstrap: str, new_name: str, group: str) -> None:
    await make_topic(bootstrap, f"{new_name}-a")
    await make_topic(bootstrap, f"other-{new_name}-a")
    member = Member(bootstrap, group).subscribe(pattern=f"{new_name}-[ab]")
    await until(lambda: member.has == [0], member)
    assert member.consumer.subscription() == [f"{new_name}-a"]
    await make_topic(bootstrap, f"{new_name}-b", 2)
    await until(lambda: member.has == [0, 0, 1], member)
    assert member.consumer.subscription() == [f"{new_name}-a", f"{new_name}-b"]
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.delete_topic(f"{new_name}-a")
    await until(lambda: member.has == [0, 1], member)
    await close(member)


async def test_more_partitions_are_noticed_by_the_leader(bootstrap: str, topic: str, group: str) -> None:
    first = Member(bootstrap, group).subscribe(topic)
    await until(shares(1, first), first)
    second = Member(bootstrap, group).subscribe(topic)
    await until(lambda: ("assigned", []) in first.events + second.events, first, second)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_partitions({topic: 4})
    await until(shares(4, first, second), first, second)
    await close(first, second)


async def test_a_topic_that_comes_later(bootstrap: str, new_name: str, group: str) -> None:
    member = Member(bootstrap, group, allow_auto_create_topics=False).subscribe(new_name)
    await until(lambda: member.events == [("assigned", [])], member)
    await make_topic(bootstrap, new_name, 2)
    await until(shares(2, member), member)
    await close(member)


async def test_a_partition_that_stays_is_never_revoked(bootstrap: str, wide_topic: str, group: str) -> None:
    first = Member(bootstrap, group, partition_assignment_strategy="cooperative-sticky").subscribe(wide_topic)
    await until(shares(4, first), first)
    second = Member(bootstrap, group, partition_assignment_strategy="cooperative-sticky").subscribe(wide_topic)
    await until(shares(4, first, second), first, second)
    revoked = [numbers for what, numbers in first.events if what == "revoked"]
    assert len(revoked) == 1
    assert sorted(revoked[0]) == second.has
    assert not {*revoked[0], *first.has} - set(range(4))
    await close(second)
    await until(shares(4, first), first)
    assert [numbers for what, numbers in first.events if what == "revoked"] == revoked
    await close(first)


async def test_a_partition_that_stays_is_read_during_the_rebalance(bootstrap: str, wide_topic: str, group: str) -> None:
    """One member comes and does not poll on: the group waits for it, and the other goes on with what it has."""
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    first = Member(bootstrap, group, **settings).subscribe(wide_topic)
    slow = Member(bootstrap, group, **settings).subscribe(wide_topic)
    await until(shares(4, first, slow), first, slow)
    third = Member(bootstrap, group, **settings).subscribe(wide_topic)
    events, before = len(slow.events), len(first.events)
    kept = first.has
    await third.poll()  # begins to join; as long as `slow` does not poll, nobody can
    await write(bootstrap, wide_topic, [b"%d" % n for n in range(8)], 4)
    wanted = {b"%d" % n for n in range(8) if n % 4 in kept}
    await until(lambda: set(first.values) >= wanted, first, third)
    await first.consumer.commit()  # is taken while the rebalance is under way
    assert first.has == kept
    assert (len(slow.events), len(first.events)) == (events, before)
    await until(shares(4, first, slow, third), first, slow, third)
    await close(first, slow, third)


async def test_an_eager_member_gives_up_all_before_it_joins(bootstrap: str, wide_topic: str, group: str) -> None:
    first = Member(bootstrap, group, partition_assignment_strategy="sticky").subscribe(wide_topic)
    await until(shares(4, first), first)
    second = Member(bootstrap, group, partition_assignment_strategy="sticky").subscribe(wide_topic)
    await until(shares(4, first, second), first, second)
    assert first.events[1] == ("revoked", [0, 1, 2, 3])
    kept = set(first.has)
    await close(second)
    await until(shares(4, first), first)
    assert kept <= set(first.has)
    await close(first)


class FirstTakesAll(Assignor):
    """By the member's own word: whose user data is smallest has everything."""

    name = "first-takes-all"

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank
        self.heard: list[tuple[Assignment, int]] = []

    def user_data(self, topics: frozenset[str]) -> bytes:
        return b"%d" % self.rank

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        first = min(members, key=lambda member: members[member].user_data or b"")
        return {first: [tp for topic in sorted(members[first].topics) for tp in topics.partitions(topic)]}

    def assigned(self, assignment: Assignment, generation: int) -> None:
        self.heard.append((assignment, generation))


async def test_an_assignor_of_ones_own(bootstrap: str, wide_topic: str, group: str) -> None:
    late = FirstTakesAll(2)
    first = Member(bootstrap, group, partition_assignment_strategy=[late]).subscribe(wide_topic)
    await until(shares(4, first), first)
    second = Member(bootstrap, group, partition_assignment_strategy=FirstTakesAll).subscribe(wide_topic)
    await until(lambda: second.has == [0, 1, 2, 3] and not first.has, first, second)
    assert late.heard[0][0].partitions == tuple(TopicPartition(wide_topic, n) for n in range(4))
    # The second has its share perhaps before the first has asked for its own.
    await until(lambda: late.heard[-1][0].partitions == (), first, second)
    await close(first, second)


class Broken(Assignor):
    name = "broken"

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        raise ZeroDivisionError("of its own")


class TwoOwners(Assignor):
    name = "two-owners"

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        return {member: topics.partitions(topic) for member, one in members.items() for topic in one.topics}


async def test_an_assignor_that_raises_is_told_and_holds_up_nobody(bootstrap: str, topic: str, group: str) -> None:
    member = Member(bootstrap, group, partition_assignment_strategy=[Broken]).subscribe(topic)
    with pytest.raises(AssignorFailed, match="broken raised ZeroDivisionError: of its own"):
        await poll_on(member)
    await close(member)
    healthy = Member(bootstrap, group).subscribe(topic)
    await until(shares(1, healthy), healthy)
    await close(healthy)


async def test_topics_of_a_group_are_wanted_as_long_as_its_leader_gives_them_out(
    bootstrap: str, topic: str, group: str
) -> None:
    """Also where it could not: the next generation may have another leader, or other topics."""
    member = Member(bootstrap, group).subscribe(topic)
    await until(shares(1, member), member)
    own = member.consumer._group
    assert own is not None
    metadata = encode_subscription(Subscription(topics=("another",)))
    with pytest.raises(AssignorFailed):
        await own._leading.assign(Broken(), [JoinGroupResponseMember(member_id="other", metadata=metadata)])
    assert "another" in member.consumer.cluster.wanted
    own._leading.end()
    own._want_topics()
    assert member.consumer.cluster.wanted == [topic]
    await close(member)


async def test_an_assignor_that_gives_a_partition_to_two_members(bootstrap: str, topic: str, group: str) -> None:
    members = [Member(bootstrap, group, partition_assignment_strategy=[TwoOwners]).subscribe(topic) for _ in range(2)]
    with pytest.raises(ExceptionGroup) as caught:
        await until(lambda: False, *members)
    assert caught.group_contains(AssignorFailed, match="two-owners gave .*-0 to .* and to ")
    await close(*members)


async def test_members_without_a_common_assignor(bootstrap: str, topic: str, group: str) -> None:
    first = Member(bootstrap, group, partition_assignment_strategy="range").subscribe(topic)
    await until(shares(1, first), first)
    second = Member(bootstrap, group, partition_assignment_strategy="roundrobin").subscribe(topic)
    with pytest.raises(InconsistentGroupProtocol):
        await poll_on(second)
    await until(shares(1, first), first)
    await close(first, second)


async def test_a_static_member_comes_back_to_its_partitions(bootstrap: str, wide_topic: str, group: str) -> None:
    first = Member(bootstrap, group, group_instance_id="one").subscribe(wide_topic)
    second = Member(bootstrap, group, group_instance_id="two").subscribe(wide_topic)
    await until(shares(4, first, second), first, second)
    had, events = second.has, len(first.events)
    generation = first.consumer.group_metadata().generation
    await close(second)  # does not leave
    again = Member(bootstrap, group, group_instance_id="two").subscribe(wide_topic)
    await until(shares(4, first, again), first, again)
    assert again.has == had
    assert len(first.events) == events
    assert again.consumer.group_metadata().generation == generation
    await close(first, again)


async def test_of_two_members_with_one_instance_id_the_older_is_fenced(bootstrap: str, topic: str, group: str) -> None:
    first = Member(bootstrap, group, group_instance_id="one").subscribe(topic)
    await until(shares(1, first), first)
    second = Member(bootstrap, group, group_instance_id="one").subscribe(topic)
    await until(shares(1, second), second)
    with pytest.raises(FencedInstanceId):
        await poll_on(first)
    assert first.events[-1] == ("lost", [0])
    with pytest.raises(FencedInstanceId):
        await first.poll()
    await until(shares(1, second), second)
    await close(first, second)


async def test_another_subscription_and_none(bootstrap: str, topic: str, group: str) -> None:
    wide_topic = f"{topic}-wide"
    await make_topic(bootstrap, wide_topic, 4)
    member = Member(bootstrap, group).subscribe(topic)
    await until(shares(1, member), member)
    member.subscribe(topic, wide_topic)
    await until(lambda: len(member.has) == 5, member)
    member.subscribe(wide_topic)
    await until(shares(4, member), member)
    assert member.consumer.subscription() == [wide_topic]
    await member.consumer.unsubscribe()
    assert (member.has, member.consumer.subscription()) == ([], [])
    assert member.events[-1] == ("revoked", [0, 1, 2, 3])
    member.consumer.assign([TopicPartition(topic, 0)])
    await write(bootstrap, topic, [b"by hand"])
    await until(lambda: member.values == [b"by hand"], member)
    await close(member)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_nothing_more_comes_of_a_topic_that_is_not_subscribed_to_any_more(
    bootstrap: str, topic: str, group: str, strategy: str
) -> None:
    """Though it lies ready, and the group has not heard of it yet; what was not given out is not committed."""
    other = f"{topic}-other"
    await make_topic(bootstrap, other, 1)
    await write(bootstrap, topic, [b"%d" % number for number in range(30)])
    await write(bootstrap, other, [b"other"] * 3)
    tp = TopicPartition(topic, 0)
    settings = {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    async with Consumer(settings, partition_assignment_strategy=strategy) as consumer:
        consumer.subscribe([topic])
        found: list[bytes] = []
        async for record in consumer:
            found.append(record.value)
            if len(found) == 10:
                consumer.subscribe(pattern=f"{topic}-.*")
                consumer.subscribe([topic])  # what comes back is read on
            if len(found) == 20:
                consumer.subscribe([other])
            if len(found) == 23:
                break
        assert found == [b"%d" % number for number in range(20)] + [b"other"] * 3
        committed = (await consumer.committed([tp]))[tp]
        assert committed is not None
        assert committed.offset == 20


async def test_what_is_assigned_behind_a_pattern_is_created_by_reading_it(
    bootstrap: str, new_name: str, group: str
) -> None:
    """A pattern creates nothing, but only as long as it is subscribed to."""
    settings = {**QUICK, "bootstrap_servers": bootstrap, "group_id": group}
    async with Consumer(settings) as consumer, asyncio.timeout(60):
        consumer.subscribe(pattern=f"no-{new_name}")
        await consumer.poll(timeout_ms=20)
        await consumer.unsubscribe()
        consumer.assign([(new_name, 0)])
        assert await consumer.position(TopicPartition(new_name, 0)) == 0


async def test_a_broker_that_knows_nobody_yet_says_nothing_of_topics(bootstrap: str, topic: str, group: str) -> None:
    """As one that has just started. A pattern is matched again after minutes only."""
    rounds: list[None] = []

    def nobody(answer: MetadataResponse) -> None:
        answer.brokers, answer.topics = [], []

    def rule(request: Request) -> Action:
        if request.key != ApiKey.METADATA or request.decoded().topics is not None:
            return Pass()
        rounds.append(None)
        return Pass(nobody if len(rounds) == 1 else None)

    async with Proxy(bootstrap, rule) as proxy, asyncio.timeout(60):
        member = Member(proxy.bootstrap, group, metadata_max_age_ms=300_000).subscribe(pattern=topic)
        await until(shares(1, member), member)
        assert member.events == [("assigned", [0])]
        await close(member)


async def test_what_a_cooperative_member_does_not_want_any_more(bootstrap: str, topic: str, group: str) -> None:
    wide_topic = f"{topic}-wide"
    await make_topic(bootstrap, wide_topic, 4)
    member = Member(bootstrap, group, partition_assignment_strategy="cooperative-sticky").subscribe(topic, wide_topic)
    await until(lambda: len(member.has) == 5, member)
    member.subscribe(wide_topic)
    await until(shares(4, member), member)
    assert member.events[1] == ("revoked", [0])
    await close(member)


async def test_what_a_listener_raises_is_told_by_poll_and_the_rebalance_goes_on(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    class Raising:
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            raise ZeroDivisionError("of the listener")

    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        consumer.subscribe([wide_topic], listener=Raising())
        with pytest.raises(ZeroDivisionError, match="of the listener"):
            await consumer.poll()
        await consumer.poll(timeout_ms=0)
        assert len(consumer.assignment()) == 4


async def test_a_poll_that_is_cancelled_in_a_call_back(bootstrap: str, topic: str, group: str) -> None:
    """The call-back runs to its end, and the next poll waits for that."""
    began, may_end = asyncio.Event(), asyncio.Event()
    ended: list[int] = []

    class Slow:
        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            began.set()
            await may_end.wait()
            ended.append(len(partitions))

    await write(bootstrap, topic, [b"x"])
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        consumer.subscribe([topic], listener=Slow())
        poll = asyncio.create_task(consumer.poll())
        await began.wait()
        poll.cancel()
        await asyncio.wait([poll])
        assert poll.cancelled()
        asyncio.get_running_loop().call_later(0.02, may_end.set)
        records = await consumer.poll()
        assert ended == [1]
        assert [record.value for record in records] == [b"x"]


async def test_a_call_back_must_not_poll(bootstrap: str, topic: str, group: str) -> None:
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:

        class Polling:
            async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
                await consumer.poll()

        consumer.subscribe([topic], listener=Polling())
        with pytest.raises(ValueError, match="must not poll"):
            await consumer.poll()


async def test_what_cannot_be_subscribed(bootstrap: str, topic: str, group: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        with pytest.raises(InvalidGroupId, match=r"subscribe needs a group: give group\.id"):
            consumer.subscribe([topic])
        with pytest.raises(InvalidGroupId):
            await consumer.commit()
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        for arguments in ({}, {"topics": []}, {"topics": [topic], "pattern": "x"}):
            with pytest.raises(BadArgument, match="subscribe takes"):
                consumer.subscribe(**arguments)  # type: ignore[arg-type]
        with pytest.raises(BadArgument, match=r"topics\[0\] must be a str, not bytes"):
            consumer.subscribe([b"x"])  # type: ignore[list-item]
        consumer.subscribe(topic)
        with pytest.raises(ValueError, match="unsubscribe first"):
            consumer.assign([TopicPartition(topic, 0)])
        await consumer.unsubscribe()
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ValueError, match="unsubscribe first"):
            consumer.subscribe([topic])
        await consumer.unsubscribe()
        consumer.subscribe(["bad/name"])
        with pytest.raises(InvalidTopic):
            await consumer.poll(timeout_ms=60_000)


async def test_pause_and_resume_of_a_members_partitions(bootstrap: str, wide_topic: str, group: str) -> None:
    await write(bootstrap, wide_topic, [b"%d" % n for n in range(8)], 4)
    member = Member(bootstrap, group).subscribe(wide_topic)
    one = TopicPartition(wide_topic, 1)

    class Pausing(Member):
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            self.consumer.pause(one)

    pausing = Pausing(bootstrap, f"{group}-2").subscribe(wide_topic)
    await until(lambda: len(member.values) == 8, member)
    await until(lambda: len(pausing.values) == 6, pausing)
    assert pausing.consumer.paused() == [one]
    pausing.consumer.resume(one)
    await until(lambda: len(pausing.values) == 8, pausing)
    assert pausing.values[-2:] == [b"1", b"5"]
    await close(member, pausing)
