"""Conversations about static members: who has an instance id finds its place again under a new member id."""

from __future__ import annotations

import struct
from typing import Final

from ottla.protocol.generated.join_group import JoinGroupRequest
from tests.interop.group_scenarios import (
    Scenario,
    alone,
    describe,
    enter,
    heartbeat,
    join,
    leave,
    subscription,
    sync,
)
from tests.interop.group_wire import Conversation


def enter_static(talk: Conversation, peer: str, instance: str) -> str:
    """The first member, which needs no second step."""
    told = talk.ask(peer, "enters", join(talk, instance=instance), 9)
    member_id: str = told.member_id
    talk.ask(peer, "assigns", sync(talk, member_id, 1, {member_id: b"all"}, instance=instance), 5)
    return member_id


def restarted_alone(talk: Conversation) -> None:
    """The leader comes back: it keeps assignment and generation, and is told to leave the assignment as it is."""
    old = enter_static(talk, "a", "one")
    new = talk.ask("a", "is back", join(talk, instance="one"), 9).member_id
    talk.ask("a", "syncs", sync(talk, new, 1, instance="one"), 5)
    talk.ask("a", "heartbeats", heartbeat(talk, new, 1, "one"), 4)
    talk.ask("a", "heartbeats as before", heartbeat(talk, old, 1, "one"), 4)
    talk.ask("a", "heartbeats as before, without its instance", heartbeat(talk, old, 1), 4)
    describe(talk)
    again = talk.ask("a", "is back, in an older version", join(talk, instance="one"), 8).member_id
    talk.ask("a", "assigns anew", sync(talk, again, 1, {again: b"anew"}, instance="one"), 5)
    describe(talk)


def follower_restarted(talk: Conversation) -> None:
    first = enter_static(talk, "a", "one")
    talk.send("b", join(talk, instance="two"), 9)
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "enters again", join(talk, first, instance="one"), 9)
    second = talk.answer("b", "enters").member_id
    talk.send("b", sync(talk, second, 2, instance="two"), 5)
    talk.ask("a", "assigns", sync(talk, first, 2, {first: b"1", second: b"2"}, instance="one"), 5)
    talk.answer("b", "is assigned")
    back = talk.ask("b", "is back", join(talk, instance="two"), 9).member_id
    talk.ask("b", "syncs", sync(talk, back, 2, instance="two"), 5)
    talk.ask("a", "heartbeats", heartbeat(talk, first, 2, "one"), 4)
    describe(talk)
    other = join(talk, instance="two", protocols=[("range", subscription("other"))])
    talk.ask("b", "is back with another subscription, which begins no rebalance", other, 9)
    describe(talk)
    alien = join(talk, instance="two", protocols=[("other", subscription())])
    talk.ask("b", "is back with another protocol", alien, 9)


def fenced(talk: Conversation) -> None:
    """Two members with one instance id: the later one has it, and the earlier one is told so everywhere."""
    old = enter_static(talk, "a", "one")
    new = talk.ask("b", "enters as the same instance", join(talk, instance="one"), 9).member_id
    talk.ask("a", "heartbeats", heartbeat(talk, old, 1, "one"), 4)
    talk.ask("a", "syncs", sync(talk, old, 1, instance="one"), 5)
    talk.ask("a", "enters again", join(talk, old, instance="one"), 9)
    talk.ask("a", "leaves", leave(talk, (old, "one")), 5)
    talk.ask("a", "of an instance that is not there", heartbeat(talk, old, 1, "three"), 4)
    talk.ask("a", "leaves as an instance that is not there", leave(talk, (new, "three"), ("", "three")), 5)
    talk.ask("b", "heartbeats", heartbeat(talk, new, 1, "one"), 4)
    talk.ask("b", "is put out by its instance alone", leave(talk, ("", "one")), 5)
    talk.ask("b", "heartbeats", heartbeat(talk, new, 1, "one"), 4)
    describe(talk)


def fenced_while_waiting(talk: Conversation) -> None:
    """A static member waits in its join when another comes under its instance id."""
    first = alone(talk)
    talk.send("b", join(talk, instance="one"), 9)
    talk.wait_for_state("PreparingRebalance", 2)
    talk.send("c", join(talk, instance="one"), 9)
    talk.answer("b", "is fenced")
    talk.ask("a", "enters again", join(talk, first), 9)
    talk.answer("c", "enters")
    describe(talk)


def several_leave(talk: Conversation) -> None:
    first = enter_static(talk, "a", "one")
    second = enter(talk, "b")
    talk.wait_for_state("PreparingRebalance", 2)
    talk.ask("a", "enters again", join(talk, first, instance="one"), 9)
    talk.answer("b", "enters")
    talk.ask("a", "assigns", sync(talk, first, 2, {}, instance="one"), 5)
    talk.ask("c", "puts both out", leave(talk, ("", "one"), (second, None), (second, None)), 5)
    describe(talk)


def compact(raw: bytes) -> bytes:
    """A compact string of any length."""
    length, out = len(raw) + 1, bytearray()
    while length > 0x7F:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(out) + bytes([length]) + raw


def overlong_group_id(talk: Conversation) -> None:
    """65,000 characters are more than any version's string may have, though a compact length could say it."""
    request = JoinGroupRequest(group_id="g", session_timeout_ms=30_000, protocol_type="consumer")
    body = compact(b"g" * 65_000) + request.encode(9)[2:]
    talk.peer("a").send_raw(11, 9, struct.pack(">h", 1) + b"a\0", body)
    talk.answer("a", "joins under 65,000 characters")
    talk.ask("a", "heartbeats", heartbeat(talk, "nobody", 1), 4)


def long_group_id(talk: Conversation) -> None:
    """What a string can carry is a group like any other."""
    talk.group += "g" * 32_000
    talk.call(talk.group, "long group")
    mine = alone(talk)
    talk.ask("a", "heartbeats", heartbeat(talk, mine, 1), 4)
    talk.ask("a", "leaves", leave(talk, (mine, None)), 5)
    describe(talk)


STATIC: Final[dict[str, Scenario]] = {
    "a static member is restarted": restarted_alone,
    "a static follower is restarted": follower_restarted,
    "two members with one instance id": fenced,
    "two members with one instance id, one waits": fenced_while_waiting,
    "several leave": several_leave,
    "a group id of 65,000 characters": overlong_group_id,
    "a group id of 32,000 characters": long_group_id,
}
