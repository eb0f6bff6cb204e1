"""Members with a name of their own: they go and come back under another id, and find what they had."""

from __future__ import annotations

from tests.groups.consumer.room import Consumer, Room, settle

from ottla.groups.consumer.member import AWAY
from ottla.model import ErrorCode


def two(room: Room) -> tuple[Consumer, Consumer]:
    one, other = Consumer(room, "a1", instance="A"), Consumer(room, "b1", instance="B")
    settle([one, other])
    return one, other


def test_an_instance_comes_back_to_what_it_had() -> None:
    room = Room()
    room.topic("t", 4)
    one, other = two(room)
    had, epoch = set(one.owned), room.group.epoch
    assert one.leave(AWAY) == ErrorCode.NONE
    assert (one.last.member_id, one.last.member_epoch) == ("a1", AWAY)
    settle([other])
    assert len(other.owned) == 2
    again = Consumer(room, "a2", instance="A")
    assert again.beat() == ErrorCode.NONE
    room.check()
    assert again.owned == had
    assert room.group.epoch == epoch
    assert set(room.group.members) == {"a2", "b1"}
    assert room.group.static_members == {"A": "a2", "B": "b1"}


def test_what_was_kept_for_it_survives_a_restart() -> None:
    room = Room()
    room.topic("t", 4)
    one, other = two(room)
    had = set(one.owned)
    one.leave(AWAY)
    room.restart()
    again = Consumer(room, "a2", instance="A")
    settle([again, other])
    assert again.owned == had


def test_an_instance_that_stays_away_loses_its_place() -> None:
    room = Room()
    room.topic("t", 4)
    one, other = two(room)
    one.leave(AWAY)
    for _ in range(9):
        room.advance(5_000)
        other.beat()
    room.advance(100)
    settle([other])
    assert other.partitions == [0, 1, 2, 3]
    assert room.group.static_members == {"B": "b1"}


def test_an_instance_that_has_not_left_is_not_given_away() -> None:
    room = Room()
    room.topic("t", 2)
    two(room)
    assert Consumer(room, "a2", instance="A").beat() == ErrorCode.UNRELEASED_INSTANCE_ID
    assert set(room.group.members) == {"a1", "b1"}


def test_the_one_before_is_fenced() -> None:
    room = Room()
    room.topic("t", 2)
    one, _ = two(room)
    epoch = one.epoch
    one.leave(AWAY)
    Consumer(room, "a2", instance="A").beat()
    one.epoch = epoch
    assert one.beat() == ErrorCode.FENCED_INSTANCE_ID
    assert one.leave() == ErrorCode.FENCED_INSTANCE_ID
    assert one.leave(AWAY) == ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_that_nobody_has() -> None:
    room = Room()
    room.topic("t", 2)
    two(room)
    unknown = Consumer(room, "c", instance="C")
    unknown.epoch = 1
    assert unknown.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert unknown.leave(AWAY) == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_for_good_gives_all_away() -> None:
    room = Room()
    room.topic("t", 4)
    one, other = two(room)
    one.leave()
    settle([other])
    assert other.partitions == [0, 1, 2, 3]


def test_it_may_come_back_with_another_wish() -> None:
    room = Room()
    room.topic("t", 2)
    room.topic("u", 2)
    one, other = two(room)
    one.leave(AWAY)
    again = Consumer(room, "a2", ["u"], instance="A")
    settle([again, other])
    room.check()
    assert {topic for topic, _ in again.owned} == {room.metadata.topics["u"].id}
    assert len(other.owned) == 2


def test_what_it_was_asked_back_is_free_when_it_goes() -> None:
    room = Room()
    room.topic("t", 2)
    one = Consumer(room, "a1", instance="A")
    one.beat()
    one.revokes_at_once = False
    new = Consumer(room, "b")
    new.beat()
    one.beat()
    one.leave(AWAY)
    settle([new])
    assert len(new.owned) == 1
    again = Consumer(room, "a2", instance="A")
    settle([new, again])
    room.check()
    assert len(again.owned) == 1


def test_the_same_id_comes_back() -> None:
    room = Room()
    room.topic("t", 2)
    one, other = two(room)
    had = set(one.owned)
    one.leave(AWAY)
    assert one.beat() == ErrorCode.NONE
    settle([one, other])
    assert one.owned == had
