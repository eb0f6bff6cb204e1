"""Subscriptions by regular expression."""

from __future__ import annotations

from tests.groups.consumer.room import Consumer, Room, settle

from ottla.groups.consumer.heartbeat import FIRST_EPOCH
from ottla.model import OFFSETS_TOPIC, ErrorCode


def names(room: Room, consumer: Consumer) -> set[str | None]:
    return {room.metadata.topic_name(topic) for topic, _ in consumer.owned}


def test_an_expression_matches_whole_names() -> None:
    room = Room()
    for name in ("orders", "orders-eu", "no-orders", "other"):
        room.topic(name, 1)
    member = Consumer(room, "a", None, regex="orders.*")
    settle([member])
    assert names(room, member) == {"orders", "orders-eu"}
    assert room.group.regexes["orders.*"].topics == {"orders", "orders-eu"}


def test_internal_topics_are_left_out() -> None:
    room = Room()
    room.topic(OFFSETS_TOPIC, 1)
    room.topic("t", 1)
    member = Consumer(room, "a", None, regex=".*")
    settle([member])
    assert names(room, member) == {"t"}


def test_topics_come_and_go() -> None:
    room = Room()
    room.topic("x1", 1)
    member = Consumer(room, "a", None, regex="x[0-9]")
    settle([member])
    room.topic("x2", 2)
    room.topic("y", 1)
    settle([member])
    assert names(room, member) == {"x1", "x2"}
    assert member.epoch == FIRST_EPOCH + 1
    room.delete_topic("x1")
    settle([member])
    assert names(room, member) == {"x2"}
    room.topic("x2", 3)
    settle([member])
    assert member.partitions == [0, 1, 2]


def test_a_topic_that_does_not_match_changes_nothing() -> None:
    room = Room()
    room.topic("x1", 1)
    member = Consumer(room, "a", None, regex="x[0-9]")
    settle([member])
    before = len(room.journal.records)
    room.topic("y", 1)
    settle([member])
    assert len(room.journal.records) == before


def test_names_and_an_expression_add_up() -> None:
    room = Room()
    for name in ("x", "y", "z"):
        room.topic(name, 1)
    member = Consumer(room, "a", ["z"], regex="x|y")
    settle([member])
    assert names(room, member) == {"x", "y", "z"}


def test_members_with_different_expressions() -> None:
    room = Room()
    for name in ("x1", "x2", "y1", "y2"):
        room.topic(name, 1)
    one, other = Consumer(room, "a", None, regex="x.*|y1"), Consumer(room, "b", None, regex="y.*")
    settle([one, other])
    assert names(room, one) | names(room, other) == {"x1", "x2", "y1", "y2"}
    assert names(room, one) >= {"x1", "x2"}
    assert "y2" in names(room, other)


def test_the_last_subscriber_takes_its_expression_along() -> None:
    room = Room()
    room.topic("x", 1)
    one, other = Consumer(room, "a", None, regex="x"), Consumer(room, "b", None, regex="x.?")
    settle([one, other])
    assert set(room.group.regexes) == {"x", "x.?"}
    other.leave()
    assert set(room.group.regexes) == {"x"}
    one.regex, one.topics = "", ["x"]
    settle([one])
    assert not room.group.regexes
    assert names(room, one) == {"x"}


def test_a_changed_expression() -> None:
    room = Room()
    room.topic("x", 1)
    room.topic("y", 1)
    one, other = Consumer(room, "a", None, regex="x"), Consumer(room, "b", None, regex="y")
    settle([one, other])
    one.regex = "y"
    settle([one, other])
    assert set(room.group.regexes) == {"y"}
    assert sorted(len(each.owned) for each in (one, other)) == [0, 1]


def test_what_is_no_expression_is_refused_and_the_member_stays_as_it_was() -> None:
    room = Room()
    room.topic("x", 1)
    one = Consumer(room, "a", None, regex="x")
    settle([one])
    one.regex = "x("
    assert one.beat() == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "x(" in (one.last.error_message or "")
    assert room.group.members["a"].topic_regex == "x"


def test_expressions_survive_a_restart_and_catch_up() -> None:
    room = Room()
    room.topic("x1", 1)
    member = Consumer(room, "a", None, regex="x.*")
    settle([member])
    room.topic("x2", 1)
    room.restart()
    settle([member])
    assert names(room, member) == {"x1", "x2"}


def test_an_expression_that_would_take_others_forever() -> None:
    """RE2 answers in linear time; a backtracking matcher would not come back."""
    room = Room()
    room.topic("a" * 200, 1)
    member = Consumer(room, "a", None, regex="(a*)*b")
    settle([member])
    assert member.owned == set()


def test_an_expression_that_needs_too_much_memory_is_refused() -> None:
    room = Room()
    member = Consumer(room, "a", None, regex="((a{100}){100}){100}")
    assert member.beat() == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_refused_write_loses_no_topic() -> None:
    room = Room()
    room.topic("x1", 1)
    member = Consumer(room, "a", None, regex="x.*")
    settle([member])
    room.topic("x2", 1)
    room.journal.refuses_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert member.beat() == ErrorCode.NOT_ENOUGH_REPLICAS
    room.journal.refuses_with = ErrorCode.NONE
    settle([member])
    assert names(room, member) == {"x1", "x2"}
