"""Conversations with a coordinator of classic groups, told step by step, and what Apache Kafka answered to each.

    OTTLA_INTEROP_TARGET=kafka python -m tests.interop.group_answers    writes group-answers.txt anew

Each function is one conversation; its requests are the same bytes for every broker, save for the ids it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol.apis import api
from ottla.protocol.generated.describe_groups import DescribeGroupsRequest
from ottla.protocol.generated.heartbeat import HeartbeatRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.generated.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.generated.list_groups import ListGroupsRequest
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.interop.group_wire import Conversation

Scenario = Callable[[Conversation], None]

JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST = 11, 12, 13, 14, 15, 16

Protocols = list[tuple[str, bytes]]
#: Nobody is put out while a conversation goes on, unless it is about that.
LONG_MS = 60_000
#: Of a rebalance or a session that is to run out, though who is to join or to sync before does so in time on a machine
#: with other work.
SLOW_MS = 2_500


def subscription(*topics: str) -> bytes:
    """What a consumer of the first version sends as its protocol's metadata."""
    named = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + named + b"\xff\xff\xff\xff"


def join(
    talk: Conversation,
    member_id: str = "",
    *,
    protocols: Protocols | None = None,
    instance: str | None = None,
    group: str | None = None,
    protocol_type: str = "consumer",
    session_ms: int = LONG_MS,
    rebalance_ms: int = LONG_MS,
) -> JoinGroupRequest:
    offered = [("range", subscription("nothing"))] if protocols is None else protocols
    return JoinGroupRequest(
        group_id=talk.group if group is None else group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offered],
    )


def sync(
    talk: Conversation,
    member_id: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    *,
    instance: str | None = None,
    named: tuple[str | None, str | None] = ("consumer", "range"),
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=talk.group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=named[0],
        protocol_name=named[1],
        assignments=[
            SyncGroupRequestAssignment(member_id=to, assignment=what) for to, what in (assignments or {}).items()
        ],
    )


def heartbeat(talk: Conversation, member_id: str, generation: int, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=talk.group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )


def leave(talk: Conversation, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    identities = [MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members]
    return LeaveGroupRequest(group_id=talk.group, members=identities)


def describe(talk: Conversation, what: str = "the group") -> Any:
    return talk.ask("onlooker", what, DescribeGroupsRequest(groups=[talk.group]), 6)


def enter(talk: Conversation, peer: str, version: int = 9, **settings: Any) -> str:
    """A dynamic member's two steps into the group; the answer to the second one may be long in coming."""
    told = talk.ask(peer, "asks for an id", join(talk, **settings), version)
    member_id: str = told.member_id
    talk.send(peer, join(talk, member_id, **settings), version)
    return member_id


def alone(talk: Conversation, peer: str = "a", **settings: Any) -> str:
    """The first member of a stable group in generation 1."""
    member_id = enter(talk, peer, **settings)
    talk.answer(peer, "enters")
    talk.ask(peer, "assigns", sync(talk, member_id, 1, {member_id: b"all"}, instance=settings.get("instance")), 5)
    return member_id


def two(talk: Conversation) -> tuple[str, str]:
    """A stable group of a, its leader, and b, in generation 2."""
    first = alone(talk)
    second = enter(talk, "b")
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "hears of it", heartbeat(talk, first, 1), 4)
    talk.ask("a", "enters again", join(talk, first), 9)
    talk.answer("b", "enters")
    talk.send("b", sync(talk, second, 2), 5)
    talk.ask("a", "assigns", sync(talk, first, 2, {first: b"one", second: b"two"}), 5)
    talk.answer("b", "is assigned")
    return first, second


# Conversations


def life_of_a_member(version: int) -> Scenario:
    """Through join, sync, heartbeat, a look, and leave, in each API's version of this number, or its nearest."""

    def at(key: int) -> int:
        return max(api(key).min, min(version, api(key).max))

    def tell(talk: Conversation) -> None:
        instance = "instance" if at(JOIN) >= 5 and version % 2 else None
        answer = talk.ask("a", f"joins {at(JOIN)}", join(talk, instance=instance), at(JOIN))
        if not answer.generation_id > 0:
            answer = talk.ask("a", "joins again", join(talk, answer.member_id, instance=instance), at(JOIN))
        mine, generation = answer.member_id, answer.generation_id
        of_sync = instance if at(SYNC) >= 3 else None
        talk.ask("a", f"syncs {at(SYNC)}", sync(talk, mine, generation, {mine: b"all"}, instance=of_sync), at(SYNC))
        of_heartbeat = instance if at(HEARTBEAT) >= 3 else None
        talk.ask("a", "heartbeats", heartbeat(talk, mine, generation, of_heartbeat), at(HEARTBEAT))
        talk.ask("onlooker", f"looks {at(DESCRIBE)}", DescribeGroupsRequest(groups=[talk.group]), at(DESCRIBE))
        listed = talk.peer("onlooker").ask(ListGroupsRequest(), at(LIST))
        listed.groups = [group for group in listed.groups if group.group_id == talk.group]
        talk.note(f"listed {at(LIST)}: {talk._written(listed)}")
        going = (
            LeaveGroupRequest(group_id=talk.group, member_id=mine) if at(LEAVE) < 3 else leave(talk, (mine, instance))
        )
        talk.ask("a", f"leaves {at(LEAVE)}", going, at(LEAVE))
        talk.ask("a", "heartbeats after that", heartbeat(talk, mine, generation, of_heartbeat), at(HEARTBEAT))
        describe(talk)

    return tell


def second_member_joins(talk: Conversation) -> None:
    first, second = two(talk)
    describe(talk)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 2), 4)
    talk.ask("b", "heartbeats", heartbeat(talk, second, 2), 4)
    talk.ask("b", "heartbeats with the last generation", heartbeat(talk, second, 1), 4)
    talk.ask("b", "heartbeats with the next generation", heartbeat(talk, second, 3), 4)


def leader_leaves(talk: Conversation) -> None:
    first, second = two(talk)
    talk.ask("a", "leaves", leave(talk, (first, None)), 5)
    talk.ask("b", "heartbeats", heartbeat(talk, second, 2), 4)
    talk.ask("b", "enters again", join(talk, second), 9)
    talk.ask("b", "assigns to one who left too", sync(talk, second, 3, {second: b"all", first: b"none"}), 5)
    describe(talk)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 2), 4)
    talk.ask("a", "syncs", sync(talk, first, 3), 5)
    talk.ask("a", "leaves again", leave(talk, (first, None)), 5)


def member_joins_again(talk: Conversation) -> None:
    """Unchanged, a follower gets its generation back; the leader, or a changed offer, begins another."""
    first, second = two(talk)
    talk.ask("b", "enters again, unchanged", join(talk, second), 9)
    talk.ask("b", "syncs again", sync(talk, second, 2), 5)
    talk.send("b", join(talk, second, protocols=[("range", subscription("changed"))]), 9)
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 2), 4)
    talk.ask("a", "enters again", join(talk, first), 9)
    talk.answer("b", "enters again, changed")
    talk.send("b", sync(talk, second, 3), 5)
    talk.ask("a", "assigns", sync(talk, first, 3, {first: b"1"}), 5)
    talk.answer("b", "is assigned nothing")
    talk.send("a", join(talk, first), 9)
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("b", "enters again, since the leader did", join(talk, second), 9)
    talk.answer("a", "enters again, unchanged")


def vote_for_a_protocol(talk: Conversation) -> None:
    """What all can speak, by the order of the members' preferences."""
    offers: dict[str, Protocols] = {
        "a": [("x", subscription("a")), ("y", subscription("b")), ("z", subscription("c"))],
        "b": [("y", subscription()), ("x", subscription())],
        "c": [("y", subscription()), ("x", subscription()), ("q", subscription())],
    }
    first = alone(talk, protocols=offers["a"])
    ids = {"a": first}
    for name in ("b", "c"):
        ids[name] = enter(talk, name, protocols=offers[name])
        talk.wait_for_state("PreparingRebalance", len(ids))
    talk.ask("a", "enters again", join(talk, first, protocols=offers["a"]), 9)
    talk.answer("b", "enters")
    talk.answer("c", "enters")
    talk.ask("d", "offers what not all have", join(talk, protocols=[("z", b"")]), 9)
    talk.ask("d", "offers nothing", join(talk, protocols=[]), 9)
    talk.ask("d", "is of another type", join(talk, protocol_type="connect", protocols=offers["a"]), 9)
    wrong_name = sync(talk, ids["b"], 2, named=("consumer", "x"))
    talk.ask("b", "syncs by another protocol", wrong_name, 5)
    wrong_type = sync(talk, ids["b"], 2, named=("connect", "y"))
    talk.ask("b", "syncs by another type", wrong_type, 5)
    talk.ask("b", "syncs without naming any", sync(talk, ids["b"], 2, named=(None, None)), 5)
    right = sync(talk, first, 2, {ids["c"]: b"3"}, named=("consumer", "y"))
    talk.ask("a", "assigns by the right one", right, 5)
    describe(talk)


def wrong_questions(talk: Conversation) -> None:
    talk.ask("a", "of a group that is not", heartbeat(talk, "nobody", 1), 4)
    talk.ask("a", "syncs there", sync(talk, "nobody", 1), 5)
    talk.ask("a", "leaves there", leave(talk, ("nobody", None), ("", "static")), 5)
    describe(talk)
    talk.ask("onlooker", "the group, older", DescribeGroupsRequest(groups=[talk.group]), 5)
    talk.ask("a", "joins without a name for the group", join(talk, group=""), 9)
    talk.ask("a", "with an id of its own making", join(talk, "made-up"), 9)
    talk.ask("a", "with too short a session", join(talk, session_ms=1), 9)
    talk.ask("a", "with too long a session", join(talk, session_ms=2**31 - 1), 9)
    talk.ask("a", "without protocols", join(talk, protocols=[]), 9)
    talk.ask("a", "without a type", join(talk, protocol_type=""), 9)
    mine = alone(talk)
    talk.ask("b", "with an id of its own making", join(talk, "made-up"), 9)
    talk.ask("b", "heartbeats as nobody", heartbeat(talk, "nobody", 1), 4)
    talk.ask("b", "syncs as nobody", sync(talk, "nobody", 1), 5)
    talk.ask("b", "leaves as nobody, and as a", leave(talk, ("nobody", None), ("", "static"), (mine, None)), 5)
    describe(talk)


def unreadable_metadata(talk: Conversation) -> None:
    """Nobody but the leader reads it, so the group works; Kafka only notes that it knows no topics of the member."""
    mine = alone(talk, protocols=[("range", b"\xff\xff\xff\xff")])
    talk.ask("a", "heartbeats", heartbeat(talk, mine, 1), 4)
    describe(talk)


def assignment_while_another_joins(talk: Conversation) -> None:
    """The leader's assignment comes when the group is already in its next round."""
    first = enter(talk, "a")
    talk.answer("a", "enters")
    second = enter(talk, "b")
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "assigns too late", sync(talk, first, 1, {first: b"all"}), 5)
    talk.ask("a", "enters again", join(talk, first), 9)
    talk.answer("b", "enters")
    talk.send("b", sync(talk, second, 2), 5)
    talk.ask("a", "assigns", sync(talk, first, 2, {second: b"all"}), 5)
    talk.answer("b", "is assigned")


def member_that_never_syncs(talk: Conversation) -> None:
    """It is put out when the rebalance time-out has passed, and the others go on."""
    first = alone(talk, rebalance_ms=SLOW_MS)
    enter(talk, "b", rebalance_ms=SLOW_MS)
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "enters again", join(talk, first, rebalance_ms=SLOW_MS), 9)
    talk.answer("b", "enters")
    talk.send("a", sync(talk, first, 2, {first: b"all"}), 5)
    talk.answer("a", "assigns")
    talk.wait_for_state("PreparingRebalance", 1)
    talk.ask("a", "hears of it", heartbeat(talk, first, 2), 4)
    talk.ask("a", "enters again", join(talk, first, rebalance_ms=SLOW_MS), 9)
    talk.ask("a", "assigns", sync(talk, first, 3, {first: b"all"}), 5)
    describe(talk)


def leader_that_never_syncs(talk: Conversation) -> None:
    first = alone(talk, rebalance_ms=SLOW_MS)
    second = enter(talk, "b", rebalance_ms=SLOW_MS)
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "enters again", join(talk, first, rebalance_ms=SLOW_MS), 9)
    talk.answer("b", "enters")
    talk.ask("b", "waits for its assignment", sync(talk, second, 2), 5)
    talk.ask("b", "enters again", join(talk, second, rebalance_ms=SLOW_MS), 9)
    talk.ask("b", "assigns", sync(talk, second, 3, {second: b"all"}), 5)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 2), 4)
    describe(talk)


def member_that_never_joins_again(talk: Conversation) -> None:
    first = alone(talk, rebalance_ms=SLOW_MS)
    second = enter(talk, "b", rebalance_ms=SLOW_MS)
    talk.answer("b", "enters when a was waited for long enough")
    talk.ask("b", "assigns", sync(talk, second, 2, {second: b"all"}), 5)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 1), 4)
    describe(talk)


def member_that_falls_silent(talk: Conversation) -> None:
    first = alone(talk, session_ms=SLOW_MS)
    talk.wait_for_state("Empty", 0)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 1), 4)
    describe(talk)


def id_that_is_never_used(talk: Conversation) -> None:
    """Who asked for an id and does not come in time may not use it any more."""
    told = talk.ask("a", "asks for an id", join(talk, session_ms=700), 9)
    alone(talk, "b")
    talk.ask("b", "leaves for the one who waits outside", leave(talk, (told.member_id, None)), 5)
    talk.ask("a", "enters", join(talk, told.member_id, session_ms=700), 9)
    describe(talk)


CLASSIC: Final[dict[str, Scenario]] = {
    **{f"the life of a member, version {version}": life_of_a_member(version) for version in range(10)},
    "a second member joins": second_member_joins,
    "the leader leaves": leader_leaves,
    "a member joins again": member_joins_again,
    "members vote for a protocol": vote_for_a_protocol,
    "wrong questions": wrong_questions,
    "unreadable metadata": unreadable_metadata,
    "an assignment while another joins": assignment_while_another_joins,
    "a member that never syncs": member_that_never_syncs,
    "a leader that never syncs": leader_that_never_syncs,
    "a member that never joins again": member_that_never_joins_again,
    "a member that falls silent": member_that_falls_silent,
    "an id that is never used": id_that_is_never_used,
}
