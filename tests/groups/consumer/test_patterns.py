"""Subscriptions by regular expression."""

from __future__ import annotations

import pytest
from tests.groups.consumer.room import Consumer, Room, settle

from ottla.coordinators.expressions import EXPRESSION_LENGTH_MAX, PROGRAM_SIZE_MAX
from ottla.groups.consumer.decision import RequestRefused
from ottla.groups.consumer.heartbeat import FIRST_EPOCH
from ottla.groups.consumer.patterns import (
    EXPRESSIONS_OF_A_GROUP_MAX,
    REMEMBERED_MAX,
    MatchedTopics,
    TopicPatterns,
)
from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.steps import Steps, at_once


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


def test_topics_that_the_member_may_not_describe_are_left_out() -> None:
    """Whose heartbeat has it looked up, as in Kafka."""
    room = Room()
    for name in ("x1", "x2", "secret"):
        room.topic(name, 1)
    room.may_describe = lambda name: name != "secret"
    member = Consumer(room, "a", None, regex=".*")
    settle([member])
    assert names(room, member) == {"x1", "x2"}
    assert room.group.regexes[".*"].topics == {"x1", "x2"}
    epoch = member.epoch
    settle([member])
    assert member.epoch == epoch
    room.topic("x3", 1)
    settle([member])
    assert names(room, member) == {"x1", "x2", "x3"}


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


# What an expression may cost.

#: Short, and about as slow as RE2 gets: no two states of it are alike, so that each character looks at all of them.
SLOW = "((((a?){9}){9}){9})b"


def steps_of(steps: Steps[None]) -> int:
    return sum(1 for _ in steps)


@pytest.mark.parametrize(
    "pattern",
    [
        "x" * (EXPRESSION_LENGTH_MAX + 1),
        "(.?){1000}(.?){1000}(.?){1000}",
        "((((((((a?){9}){9}){9})?b?){9})))",
        ".{0,1000}" * 100,
        r"(?i)\pL" * 100,
        r"\pL" * 1_000,
        "(" + "[a-z]?" * 600 + "){9}",
        "\u00e9" * 3_000,
    ],
)
def test_what_would_be_costly_is_no_expression(pattern: str) -> None:
    patterns = TopicPatterns(Room().metadata)
    with pytest.raises(RequestRefused) as refused:
        patterns.check(pattern)
    assert refused.value.error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert steps_of(patterns.resolve(pattern)) == 0
    assert patterns.is_refused(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "|".join(f"orders-{number}" for number in range(300)),
        r"[^\pL]+",
        r"(?i)ORDERS-\p{Nd}+",
        "\u00e9?orders-1",
        ".{0,249}",
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    room = Room()
    room.topic("orders-1", 1)
    room.topic("1", 1)
    patterns = TopicPatterns(room.metadata)
    patterns.check(pattern)
    at_once(patterns.resolve(pattern))
    known = patterns.known(pattern)
    assert known is not None
    assert known.topics


def test_a_slow_expression_is_matched_in_steps() -> None:
    room = Room()
    for number in range(20):
        room.topic("a" * 200 + str(number), 1)
    patterns = TopicPatterns(room.metadata)
    slow, quick = steps_of(patterns.resolve(SLOW)), steps_of(patterns.resolve("a+0"))
    assert slow > 20 * 20
    assert quick <= 20
    assert patterns.known("a+0") == MatchedTopics(frozenset({"a" * 200 + "0"}), patterns.names_version)


def test_a_new_topic_is_matched_alone() -> None:
    room = Room()
    for number in range(20):
        room.topic("a" * 200 + str(number), 1)
    patterns = TopicPatterns(room.metadata)
    all_names = steps_of(patterns.resolve(SLOW))
    assert steps_of(patterns.resolve(SLOW)) == 0
    for number in range(3):
        room.topic("a" * 200 + f"x{number}", 1)
        room.topic(f"b{number}", 1)
        _ = patterns.names_version
    assert 0 < steps_of(patterns.resolve(SLOW)) < all_names / 4
    room.delete_topic("a" * 200 + "x1")
    assert steps_of(patterns.resolve(SLOW)) == 0


def test_many_who_wait_for_one_expression_share_its_steps() -> None:
    room = Room()
    for number in range(20):
        room.topic("a" * 200 + str(number), 1)
    patterns = TopicPatterns(room.metadata)
    alone = steps_of(TopicPatterns(room.metadata).resolve(SLOW))
    waiting = [patterns.resolve(SLOW) for _ in range(5)]
    steps = 0
    while waiting:
        waiting = [each for each in waiting if next(each, "ended") is None]
        steps += len(waiting)
    assert steps <= alone
    assert patterns.known(SLOW) is not None


def test_who_stops_waiting_leaves_the_rest_to_others() -> None:
    room = Room()
    for number in range(20):
        room.topic("a" * 200 + str(number), 1)
    patterns = TopicPatterns(room.metadata)
    first = patterns.resolve(SLOW)
    for _ in range(5):
        next(first)
    first.close()
    assert patterns.known(SLOW) is None
    at_once(patterns.resolve(SLOW))
    assert patterns.known(SLOW) is not None


def test_topics_that_come_while_names_are_matched() -> None:
    room = Room()
    for number in range(5):
        room.topic("a" * 200 + str(number), 1)
    patterns = TopicPatterns(room.metadata)
    under_way = patterns.resolve(f"{SLOW}|a+9")
    next(under_way)
    room.topic("aa9", 1)
    at_once(under_way)
    at_once(patterns.resolve(f"{SLOW}|a+9"))
    assert patterns.known(f"{SLOW}|a+9") == MatchedTopics(frozenset({"aa9"}), patterns.names_version)


def test_what_is_not_known_yet_is_found_by_a_later_heartbeat() -> None:
    """As in Kafka, which looks for the topics while the heartbeat is answered."""
    room = Room()
    room.topic("x1", 1)
    member = Consumer(room, "a", None, regex="x.*")
    assert room.beat_unprepared(member.request()).error_code == ErrorCode.NONE
    settle([member])
    assert names(room, member) == {"x1"}
    room.topic("x2", 1)
    epoch = member.epoch
    assert room.beat_unprepared(member.request()).member_epoch == epoch
    settle([member])
    assert names(room, member) == {"x1", "x2"}


def test_a_group_has_no_more_expressions_than_it_may() -> None:
    room = Room()
    room.topic("x", 1)
    members = [Consumer(room, f"m{number}", None, regex=f"x{number}?") for number in range(EXPRESSIONS_OF_A_GROUP_MAX)]
    settle(members)
    one_more = Consumer(room, "more", None, regex="x+")
    assert one_more.beat() == ErrorCode.INVALID_REGULAR_EXPRESSION
    one_more.regex = "x0?"
    assert one_more.beat() == ErrorCode.NONE
    members[1].leave()
    other = Consumer(room, "other", None, regex="x+")
    assert other.beat() == ErrorCode.NONE


def test_expressions_that_were_not_used_for_longest_are_forgotten() -> None:
    room = Room()
    room.topic("x", 1)
    patterns = TopicPatterns(room.metadata)
    for number in range(REMEMBERED_MAX + 1):
        at_once(patterns.resolve(f"x{number}?"))
    assert patterns.known("x0?") is None
    assert patterns.known("x1?") is not None


def test_the_largest_program_that_is_taken() -> None:
    patterns = TopicPatterns(Room().metadata)
    patterns.check("(a?){1000}" * (PROGRAM_SIZE_MAX // 2_000 - 1))
    with pytest.raises(RequestRefused):
        patterns.check("((a?b?)?){1000}")
