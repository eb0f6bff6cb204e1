"""Conversations in the newer protocol: epochs, assignments that move member by member, and members of both kinds."""

from __future__ import annotations

from typing import Any, Final

from ottla.protocol.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.generated.delete_groups import DeleteGroupsRequest
from tests.interop.group_scenarios import Scenario, alone, describe, heartbeat, join, leave, subscription, sync
from tests.interop.group_scenarios import enter as enter_classic
from tests.interop.group_scenarios_offsets import commit, delete_offsets, fetch, look
from tests.interop.group_wire import Conversation

#: Members choose their ids themselves; in the text they stand as they are.
A, B, C = "member-a-0000000000000", "member-b-0000000000000", "member-c-0000000000000"
LONG_MS = 60_000
LEAVES, LEAVES_FOR_A_WHILE = -1, -2


def beat(
    talk: Conversation,
    member: str,
    epoch: int,
    *,
    topics: list[str] | None = None,
    regex: str | None = None,
    owned: list[int] | None = None,
    instance: str | None = None,
    rack: str | None = None,
    assignor: str | None = None,
    rebalance_ms: int = -1,
    group: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=talk.group if group is None else group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=topics,
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=None
        if owned is None
        else ([TopicPartitions(topic_id=talk.topic_id, partitions=owned)] if owned else []),
    )


def enter(talk: Conversation, peer: str, member: str, **settings: Any) -> Any:
    """A member's first heartbeat."""
    wanted = {"topics": [talk.topic], "owned": [], "rebalance_ms": LONG_MS, **settings}
    return talk.ask(peer, "enters", beat(talk, member, 0, **wanted), 1)


def show(talk: Conversation, what: str = "the group", version: int = 1) -> Any:
    return talk.ask("onlooker", what, ConsumerGroupDescribeRequest(group_ids=[talk.group]), version)


def one_member(talk: Conversation) -> None:
    show(talk, "before")
    told = enter(talk, "a", A)
    talk.ask("a", "has taken it", beat(talk, A, told.member_epoch, owned=[0, 1]), 1)
    talk.ask("a", "says nothing new", beat(talk, A, told.member_epoch), 1)
    talk.ask("a", "heartbeats, version 0", beat(talk, A, told.member_epoch), 0)
    for version in (0, 1):
        show(talk, f"the group {version}", version)
    describe(talk, "the group by the older API")
    full = beat(talk, A, told.member_epoch, topics=[talk.topic], owned=[0, 1], rebalance_ms=LONG_MS)
    talk.ask("a", "says everything again", full, 1)
    talk.ask("a", "leaves", beat(talk, A, LEAVES), 1)
    talk.ask("a", "heartbeats after that", beat(talk, A, told.member_epoch), 1)
    show(talk, "after")


def partitions_move(talk: Conversation) -> None:
    """b gets a partition only when a has given it up; nothing else stops."""
    first = enter(talk, "a", A).member_epoch
    talk.ask("a", "has taken both", beat(talk, A, first, owned=[0, 1]), 1)
    second = enter(talk, "b", B).member_epoch
    talk.ask("b", "waits", beat(talk, B, second, owned=[]), 1)
    shown = show(talk, "while one is to be given up")
    kept = [
        partition
        for member in shown.groups[0].members
        if member.member_id == A
        for topic in member.target_assignment.topic_partitions
        for partition in topic.partitions
    ]
    talk.ask("a", "is told to give one up", beat(talk, A, first, owned=[0, 1]), 1)
    talk.ask("a", "has not yet", beat(talk, A, first), 1)
    show(talk, "while it has not")
    talk.ask("b", "still waits", beat(talk, B, second), 1)
    talk.ask("a", "has given it up", beat(talk, A, first, owned=kept), 1)
    talk.ask("b", "gets it", beat(talk, B, second, owned=[]), 1)
    talk.ask("a", "of the epoch before", beat(talk, A, first, owned=kept), 1)
    show(talk, "at the end")
    talk.ask("a", "leaves", beat(talk, A, LEAVES), 1)
    talk.ask("b", "gets the other", beat(talk, B, second), 1)
    show(talk, "without a")


def slow_to_give_up(talk: Conversation) -> None:
    """A member that does not give up what it must within the rebalance time-out is put out."""
    first = enter(talk, "a", A, rebalance_ms=600).member_epoch
    talk.ask("a", "has taken both", beat(talk, A, first, owned=[0, 1]), 1)
    second = enter(talk, "b", B).member_epoch
    talk.ask("a", "is told to give one up", beat(talk, A, first, owned=[0, 1]), 1)
    talk.repeat_until(
        "b", "gets both", beat(talk, B, second), 1, lambda told: told.assignment is not None and len(parts(told)) == 2
    )
    talk.ask("a", "heartbeats", beat(talk, A, first), 1)


def parts(told: Any) -> list[int]:
    return [partition for topic in told.assignment.topic_partitions for partition in topic.partitions]


def wrong_heartbeats(talk: Conversation) -> None:
    topics = [talk.topic]
    talk.ask("a", "of no group", beat(talk, A, 0, topics=topics, owned=[], rebalance_ms=1000, group=""), 1)
    talk.ask("a", "without an id", beat(talk, "", 0, topics=topics, owned=[], rebalance_ms=1000), 1)
    talk.ask("a", "of an epoch below all", beat(talk, A, -3), 1)
    talk.ask("a", "in a group that is not", beat(talk, A, 1), 1)
    talk.ask("a", "leaves what is not", beat(talk, A, LEAVES), 1)
    talk.ask("a", "enters with partitions", beat(talk, A, 0, topics=topics, owned=[0], rebalance_ms=1000), 1)
    talk.ask("a", "enters without saying what it owns", beat(talk, A, 0, topics=topics, rebalance_ms=1000), 1)
    talk.ask("a", "enters without a time-out", beat(talk, A, 0, topics=topics, owned=[]), 1)
    talk.ask("a", "enters without a subscription", beat(talk, A, 0, owned=[], rebalance_ms=1000), 1)
    talk.ask("a", "enters with an empty rack", beat(talk, A, 0, topics=topics, owned=[], rebalance_ms=1, rack=""), 1)
    empty_instance = beat(talk, A, 0, topics=topics, owned=[], rebalance_ms=1000, instance="")
    talk.ask("a", "enters with an empty instance", empty_instance, 1)
    unknown_assignor = beat(talk, A, 0, topics=topics, owned=[], rebalance_ms=1000, assignor="none")
    talk.ask("a", "enters with an unknown assignor", unknown_assignor, 1)
    talk.ask("a", "enters with a bad pattern", beat(talk, A, 0, regex="a[", owned=[], rebalance_ms=1000), 1)
    talk.ask("a", "leaves for a while without an instance", beat(talk, A, LEAVES_FOR_A_WHILE), 1)
    epoch = enter(talk, "a", A).member_epoch
    talk.ask("a", "of a later epoch", beat(talk, A, 99), 1)
    talk.ask("b", "as nobody", beat(talk, B, 1), 1)
    talk.ask("a", "with an empty subscription", beat(talk, A, epoch, topics=[]), 1)
    show(talk)


def epochs_fence(talk: Conversation) -> None:
    first = enter(talk, "a", A).member_epoch
    enter(talk, "b", B)
    moved = talk.ask("a", "gives one up", beat(talk, A, first, owned=[0, 1]), 1)
    kept = parts(moved)
    after = talk.ask("a", "has given it up", beat(talk, A, first, owned=kept), 1).member_epoch
    talk.ask("a", "with what it kept, an epoch too low", beat(talk, A, first, owned=kept), 1)
    talk.ask("a", "with more than that, an epoch too low", beat(talk, A, first, owned=[0, 1]), 1)
    enter(talk, "c", C)
    after = talk.ask("a", "follows", beat(talk, A, after, owned=kept), 1).member_epoch
    talk.ask("a", "two epochs too low", beat(talk, A, after - 2, owned=kept), 1)
    talk.ask("a", "enters once more", beat(talk, A, 0, topics=[talk.topic], owned=[], rebalance_ms=LONG_MS), 1)
    show(talk)


def commits_by_epoch(talk: Conversation) -> None:
    epoch = enter(talk, "a", A).member_epoch
    for version in (8, 9, 10):
        talk.ask("a", f"commits {version}", commit(talk, {0: (version, "")}, member=A, generation=epoch), version)
        late = commit(talk, {0: (1, "")}, member=A, generation=epoch - 1)
        talk.ask("a", f"of an earlier epoch {version}", late, version)
        early = commit(talk, {0: (1, "")}, member=A, generation=epoch + 1)
        talk.ask("a", f"of a later epoch {version}", early, version)
        talk.ask("a", f"as nobody {version}", commit(talk, {0: (1, "")}, member=B, generation=epoch), version)
        talk.ask("b", f"from outside {version}", commit(talk, {0: (1, "")}), version)
    look(talk)
    for version in (9, 10):
        talk.ask("a", f"fetches {version}", fetch(talk, [0], member=A, epoch=epoch), version)
        talk.ask("a", f"fetches, of another epoch {version}", fetch(talk, [0], member=A, epoch=epoch + 1), version)
        talk.ask("a", f"fetches as nobody {version}", fetch(talk, [0], member=B, epoch=epoch), version)
    talk.ask("onlooker", "deletes the topic's", delete_offsets(talk, talk.topic, 0), 0)
    talk.ask("onlooker", "deletes the group", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    talk.ask("a", "leaves", beat(talk, A, LEAVES), 1)
    show(talk)
    talk.ask("b", "commits from outside", commit(talk, {0: (55, "")}), 9)
    look(talk)
    talk.ask("onlooker", "deletes the empty group", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    show(talk)


def static_members(talk: Conversation) -> None:
    """It leaves for a while, and comes back under another id to what it had; nobody may take its place meanwhile."""
    epoch = enter(talk, "a", A, instance="one").member_epoch
    talk.ask("a", "has taken both", beat(talk, A, epoch, owned=[0, 1], instance="one"), 1)
    enter(talk, "b", B, instance="one")
    talk.ask("a", "leaves for a while", beat(talk, A, LEAVES_FOR_A_WHILE, instance="one"), 1)
    show(talk, "while it is away")
    again = enter(talk, "b", B, instance="one").member_epoch
    talk.ask("a", "heartbeats", beat(talk, A, epoch, instance="one"), 1)
    talk.ask("b", "heartbeats", beat(talk, B, again, instance="one", owned=[0, 1]), 1)
    talk.ask("c", "of an instance that is not", beat(talk, C, 1, instance="two"), 1)
    show(talk, "when it is back")
    talk.ask("b", "leaves for good", beat(talk, B, LEAVES, instance="one"), 1)
    show(talk, "without it")


def subscriptions(talk: Conversation) -> None:
    """By names, by a pattern, by both; a change begins an epoch."""
    epoch = enter(talk, "a", A, topics=["no-such-topic"]).member_epoch
    show(talk, "of a topic that is not")
    epoch = talk.ask("a", "subscribes to a topic", beat(talk, A, epoch, topics=[talk.topic]), 1).member_epoch
    talk.ask("a", "has taken it", beat(talk, A, epoch, owned=[0, 1]), 1)
    told = talk.ask("a", "asks for another assignor", beat(talk, A, epoch, assignor="range"), 1)
    show(talk, "by range")
    talk.ask("a", "heartbeats", beat(talk, A, told.member_epoch), 1)


def by_pattern(talk: Conversation) -> None:
    """Looked up at once or a moment later: Kafka answers the first heartbeat before it has."""
    wanted = {"topics": None, "regex": f"{talk.topic}|zzz.*", "owned": [], "rebalance_ms": LONG_MS}
    first = talk.peer("a").ask(beat(talk, A, 0, **wanted), 1)

    def assigned(told: Any) -> bool:
        return told.error_code != 0 or bool(told.assignment is not None and parts(told))

    talk.repeat_until("a", "gets what matches", beat(talk, A, first.member_epoch, **wanted), 1, assigned)
    show(talk, "by a pattern")


def wrong_kind(talk: Conversation) -> None:
    """A group of the one kind asked as the other."""
    mine = alone(talk, protocols=[("range", b"\0\0")])
    show(talk, "a classic group")
    talk.ask("b", "heartbeats there", beat(talk, B, 1), 1)
    enter(talk, "b", B)
    talk.ask("a", "leaves", leave(talk, (mine, None)), 5)
    enter(talk, "b", B)
    talk.ask("a", "heartbeats as a classic member", heartbeat(talk, B, 1), 4)
    talk.ask("a", "syncs as one", sync(talk, "nobody", 1), 5)
    talk.ask("a", "joins with unreadable metadata", join(talk, protocols=[("range", b"\xff")]), 9)
    talk.ask("a", "joins as another type", join(talk, protocol_type="connect"), 9)
    describe(talk)
    show(talk)


def assignment(topic: str, *partitions: int) -> bytes:
    """What a leader of the first version assigns."""
    numbers = b"".join(partition.to_bytes(4, "big") for partition in partitions)
    named = len(topic).to_bytes(2, "big") + topic.encode()
    return b"\0\0\0\0\0\1" + named + len(partitions).to_bytes(4, "big") + numbers + b"\xff\xff\xff\xff"


def from_classic_and_back(talk: Conversation) -> None:
    """A classic group becomes a consumer group when a member of those enters, and classic when the last one left."""
    settings: Any = {"protocols": [("range", subscription(talk.topic))]}
    mine = enter_classic(talk, "a", **settings)
    talk.answer("a", "enters")
    talk.ask("a", "assigns", sync(talk, mine, 1, {mine: assignment(talk.topic, 0, 1)}), 5)
    second = enter(talk, "b", B).member_epoch
    show(talk, "with members of both kinds")
    describe(talk, "the same by the older API")
    talk.ask("a", "hears of it", heartbeat(talk, mine, 1), 4)
    rejoined = talk.ask("a", "enters again", join(talk, mine, **settings), 9)
    talk.ask("a", "syncs", sync(talk, mine, rejoined.generation_id), 5)
    talk.ask("a", "heartbeats", heartbeat(talk, mine, rejoined.generation_id), 4)
    talk.ask("a", "commits", commit(talk, {0: (3, "")}, member=mine, generation=rejoined.generation_id), 9)
    talk.ask("b", "heartbeats", beat(talk, B, second, owned=[]), 1)
    talk.ask("b", "leaves", beat(talk, B, LEAVES), 1)
    describe(talk, "classic again")
    show(talk, "not a consumer group any more")
    talk.ask("a", "heartbeats", heartbeat(talk, mine, rejoined.generation_id), 4)


CONSUMER: Final[dict[str, Scenario]] = {
    "the newer protocol: one member": one_member,
    "the newer protocol: partitions move": partitions_move,
    "the newer protocol: slow to give up": slow_to_give_up,
    "the newer protocol: wrong heartbeats": wrong_heartbeats,
    "the newer protocol: epochs fence": epochs_fence,
    "the newer protocol: commits": commits_by_epoch,
    "the newer protocol: static members": static_members,
    "the newer protocol: subscriptions": subscriptions,
    "the newer protocol: by pattern": by_pattern,
    "the newer protocol: wrong kind": wrong_kind,
    "the newer protocol: from classic and back": from_classic_and_back,
}
