"""Conversations about committed offsets: who may commit, what is refused, and what is found afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.protocol.generated.delete_groups import DeleteGroupsRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.list_groups import ListGroupsRequest
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.interop.group_scenarios import Scenario, alone, describe, enter, join, leave, subscription, sync
from tests.interop.group_wire import Conversation

Offsets = dict[int, tuple[int, str | None]]
NO_TOPIC_ID = b"\0" * 16
UNKNOWN_TOPIC_ID = b"nobody's topic i"


def commit(
    talk: Conversation,
    offsets: Offsets,
    *,
    member: str = "",
    generation: int = -1,
    topic: str | None = None,
    topic_id: bytes | None = None,
    instance: str | None = None,
    group: str | None = None,
) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_leader_epoch=0, committed_metadata=metadata
        )
        for partition, (offset, metadata) in offsets.items()
    ]
    named = OffsetCommitRequestTopic(
        name=talk.topic if topic is None else topic,
        topic_id=talk.topic_id if topic_id is None else topic_id,
        partitions=partitions,
    )
    return OffsetCommitRequest(
        group_id=talk.group if group is None else group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[named],
    )


def fetch(
    talk: Conversation,
    partitions: Sequence[int] | None,
    *,
    topic: str | None = None,
    topic_id: bytes | None = None,
    member: str | None = None,
    epoch: int = -1,
    stable: bool = False,
) -> OffsetFetchRequest:
    """From version 8 on; None asks for all that there is."""
    topics = None
    if partitions is not None:
        named = talk.topic if topic is None else topic
        identified = talk.topic_id if topic_id is None else topic_id
        topics = [OffsetFetchRequestTopics(name=named, topic_id=identified, partition_indexes=list(partitions))]
    group = OffsetFetchRequestGroup(group_id=talk.group, member_id=member, member_epoch=epoch, topics=topics)
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def look(talk: Conversation) -> Any:
    return talk.ask("onlooker", "all offsets", fetch(talk, None), 9)


def all_commit_versions(talk: Conversation) -> None:
    for version in range(2, 11):
        talk.ask("a", f"commits {version}", commit(talk, {0: (100 + version, f"v{version}"), 1: (7, None)}), version)
        look(talk)
    describe(talk)


def all_fetch_versions(talk: Conversation) -> None:
    talk.ask("a", "commits", commit(talk, {1: (42, "here")}), 9)
    for version in range(1, 8):
        named = OffsetFetchRequestTopic(name=talk.topic, partition_indexes=[0, 1, 5])
        unknown = OffsetFetchRequestTopic(name="no-such-topic", partition_indexes=[0])
        some = OffsetFetchRequest(group_id=talk.group, topics=[named, unknown])
        talk.ask("a", f"fetches some {version}", some, version)
        if version >= 2:
            talk.ask("a", f"fetches all {version}", OffsetFetchRequest(group_id=talk.group, topics=None), version)
    for version in range(8, 11):
        talk.ask("a", f"fetches some {version}", fetch(talk, [0, 1, 5]), version)
        talk.ask("a", f"fetches all {version}", fetch(talk, None), version)
        wrong = fetch(talk, [0], topic="no-such-topic", topic_id=UNKNOWN_TOPIC_ID)
        talk.ask("a", f"fetches what is not {version}", wrong, version)
        talk.ask("a", f"fetches the stable ones {version}", fetch(talk, [1], stable=True), version)
    talk.ask("a", "fetches by no id", fetch(talk, [0], topic_id=NO_TOPIC_ID), 10)


def several_groups(talk: Conversation) -> None:
    talk.ask("a", "commits", commit(talk, {0: (1, "")}), 9)
    known = fetch(talk, [0]).groups[0]
    unknown = OffsetFetchRequestGroup(group_id="no-such-group", topics=None)
    empty = OffsetFetchRequestGroup(group_id="", topics=None)
    talk.ask("a", "fetches of three groups", OffsetFetchRequest(groups=[known, unknown, empty]), 9)


def refused(talk: Conversation) -> None:
    """Each partition has its own answer; what is right beside what is wrong is committed."""
    mixed: Offsets = {0: (1, "x" * 4096), 1: (2, "x" * 4097), 2: (3, ""), -1: (3, "")}
    for version in (2, 9, 10):
        talk.ask("a", f"commits {version}", commit(talk, mixed), version)
    talk.ask("a", "to an unknown topic", commit(talk, {0: (1, "")}, topic="no-such-topic"), 9)
    talk.ask("a", "to an unknown topic's id", commit(talk, {0: (1, "")}, topic_id=UNKNOWN_TOPIC_ID), 10)
    talk.ask("a", "to no topic's id", commit(talk, {0: (1, "")}, topic_id=NO_TOPIC_ID), 10)
    talk.ask("a", "to a topic without a name", commit(talk, {0: (1, "")}, topic=""), 9)
    talk.ask("a", "a negative offset", commit(talk, {0: (-1, ""), 1: (-7, "")}), 9)
    talk.ask("a", "nothing", commit(talk, {}), 9)
    talk.ask("a", "without a group", commit(talk, {0: (1, "")}, group=""), 9)
    look(talk)


def by_members(talk: Conversation) -> None:
    one: Offsets = {0: (1, "")}
    for version in (8, 9, 10):
        stranger = commit(talk, one, member="nobody", generation=1)
        talk.ask("a", f"in a group that is not {version}", stranger, version)
    mine = alone(talk)
    talk.ask("a", "commits", commit(talk, one, member=mine, generation=1), 9)
    talk.ask("a", "by id", commit(talk, one, member=mine, generation=1), 10)
    talk.ask("a", "in the last generation", commit(talk, one, member=mine, generation=0), 9)
    talk.ask("a", "in the next generation", commit(talk, one, member=mine, generation=2), 9)
    talk.ask("a", "without a generation", commit(talk, one, member=mine), 9)
    talk.ask("b", "without membership", commit(talk, one), 9)
    talk.ask("b", "as nobody", commit(talk, one, member="nobody", generation=1), 9)
    talk.ask("b", "as an instance that is not", commit(talk, one, member=mine, generation=1, instance="none"), 9)
    enter(talk, "b")
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "while a rebalance begins", commit(talk, {0: (2, "")}, member=mine, generation=1), 9)
    talk.ask("a", "enters again", join(talk, mine), 9)
    second = talk.answer("b", "enters").member_id
    talk.ask("a", "before the assignment", commit(talk, {0: (3, "")}, member=mine, generation=2), 9)
    talk.ask("a", "before that, of the last one", commit(talk, {0: (3, "")}, member=mine, generation=1), 9)
    talk.ask("a", "assigns", sync(talk, mine, 2, {mine: b"1", second: b"2"}), 5)
    talk.ask("a", "after it, of the last one", commit(talk, {0: (4, "")}, member=mine, generation=1), 9)
    talk.ask("a", "after it", commit(talk, {1: (4, "")}, member=mine, generation=2), 9)
    look(talk)
    talk.ask("a", "leaves with b", leave(talk, (mine, None), (second, None)), 5)
    talk.ask("a", "after it left", commit(talk, {1: (5, "")}, member=mine, generation=2), 9)
    talk.ask("a", "from outside", commit(talk, {1: (6, "")}), 9)
    look(talk)


def fenced_instances(talk: Conversation) -> None:
    old = alone_as(talk, "a")
    new = talk.ask("b", "enters as the same instance", join(talk, instance="one"), 9).member_id
    talk.ask("a", "commits", commit(talk, {0: (1, "")}, member=old, generation=1, instance="one"), 9)
    talk.ask("b", "commits", commit(talk, {0: (2, "")}, member=new, generation=1, instance="one"), 9)
    look(talk)


def alone_as(talk: Conversation, peer: str) -> str:
    member_id: str = talk.ask(peer, "enters", join(talk, instance="one"), 9).member_id
    talk.ask(peer, "assigns", sync(talk, member_id, 1, {member_id: b""}, instance="one"), 5)
    return member_id


def delete_offsets(talk: Conversation, topic: str, *partitions: int, group: str | None = None) -> OffsetDeleteRequest:
    chosen = [OffsetDeleteRequestPartition(partition_index=partition) for partition in partitions]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=chosen)]
    return OffsetDeleteRequest(group_id=talk.group if group is None else group, topics=topics)


def deleted_offsets(talk: Conversation) -> None:
    talk.ask("a", "of a group that is not", delete_offsets(talk, talk.topic, 0), 0)
    talk.ask("a", "of no group", delete_offsets(talk, talk.topic, 0, group=""), 0)
    talk.ask("a", "commits", commit(talk, {0: (1, ""), 1: (2, "")}), 9)
    talk.ask("a", "of one partition, and of some that are not", delete_offsets(talk, talk.topic, 0, 0, 9), 0)
    talk.ask("a", "of a topic that is not", delete_offsets(talk, "no-such-topic", 0), 0)
    look(talk)
    mine = alone(talk, protocols=[("range", subscription(talk.topic))])
    talk.ask("a", "of a topic that is subscribed to", delete_offsets(talk, talk.topic, 1), 0)
    talk.ask("a", "leaves", leave(talk, (mine, None)), 5)
    talk.ask("a", "of the topic again", delete_offsets(talk, talk.topic, 1), 0)
    look(talk)


def deleted_groups(talk: Conversation) -> None:
    both = DeleteGroupsRequest(groups_names=[talk.group, "no-such-group"])
    talk.ask("onlooker", "deletes what is not", both, 2)
    mine = alone(talk)
    talk.ask("a", "commits", commit(talk, {0: (1, "")}, member=mine, generation=1), 9)
    talk.ask("onlooker", "deletes while a is there", DeleteGroupsRequest(groups_names=[talk.group]), 0)
    talk.ask("a", "leaves", leave(talk, (mine, None)), 5)
    for version in range(3):
        talk.ask("onlooker", f"deletes {version}", DeleteGroupsRequest(groups_names=[talk.group]), version)
        look(talk)
        describe(talk)
        talk.ask("a", "commits again", commit(talk, {0: (1, "")}), 9)
    talk.ask("onlooker", "deletes the simple group", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    look(talk)


def listed(talk: Conversation) -> None:
    """Of all groups of the broker, ours: by state and by type."""

    def ask(what: str, states: list[str], types: list[str], version: int = 5) -> None:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answer = talk.peer("onlooker").ask(request, version)
        answer.groups = [group for group in answer.groups if group.group_id == talk.group]
        talk.note(f"{what}: {talk._written(answer)}")

    def ask_all(when: str) -> None:
        ask(f"{when}, any", [], [])
        ask(f"{when}, empty", ["Empty"], [])
        ask(f"{when}, stable in another case", ["sTABLE"], [])
        ask(f"{when}, stable, version 4", ["Stable"], [], 4)
        ask(f"{when}, no such state", ["Nowhere"], [])
        ask(f"{when}, classic", [], ["Classic"])
        ask(f"{when}, consumer", [], ["consumer"])
        ask(f"{when}, no such type", [], ["nothing"])

    ask_all("before")
    talk.ask("a", "commits", commit(talk, {0: (1, "")}), 9)
    ask_all("simple")
    alone(talk)
    ask_all("with a member")


def coordinators(talk: Conversation) -> None:
    for version in range(7):
        # Transactions and share groups are other subjects.
        for kind in (0, 7) if version else (0,):
            if version < 4:
                request = FindCoordinatorRequest(key=talk.group, key_type=kind)
            else:
                request = FindCoordinatorRequest(coordinator_keys=[talk.group], key_type=kind)
            talk.ask("a", f"finds {version}, kind {kind}", request, version)
    talk.ask("a", "of nothing", FindCoordinatorRequest(coordinator_keys=[]), 6)
    talk.ask("a", "of no name", FindCoordinatorRequest(coordinator_keys=["", talk.group]), 6)
    talk.ask("a", "of no name, alone", FindCoordinatorRequest(key=""), 3)


OFFSETS: Final[dict[str, Scenario]] = {
    "commits of each version": all_commit_versions,
    "fetches of each version": all_fetch_versions,
    "offsets of several groups": several_groups,
    "refused commits": refused,
    "commits by members": by_members,
    "commits by two members with one instance id": fenced_instances,
    "deleted offsets": deleted_offsets,
    "deleted groups": deleted_groups,
    "listed groups": listed,
    "coordinators": coordinators,
}
