"""Members that join, stay, are taken out and leave: what each is told, and what is written."""

from __future__ import annotations

import pytest
from tests.groups.consumer.room import GROUP, Consumer, Room, settle

from ottla.groups.consumer.heartbeat import FIRST_EPOCH
from ottla.groups.consumer.states import MemberState
from ottla.metadata.updates import MetadataUpdate
from ottla.model import Epoch, ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def request(**fields: object) -> ConsumerGroupHeartbeatRequest:
    whole = {
        "group_id": GROUP,
        "member_id": "m",
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**{**whole, **fields})  # type: ignore[arg-type]


# The first member.


def test_the_first_member_gets_everything() -> None:
    room = Room()
    topic = room.topic("t", 3)
    answer = room.beat(request())
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", FIRST_EPOCH)
    assert answer.heartbeat_interval_ms == 5000
    assert answer.assignment is not None
    assert [(one.topic_id, one.partitions) for one in answer.assignment.topic_partitions] == [(topic, [0, 1, 2])]
    assert room.group.state_name == "Stable"


def test_a_group_that_wants_nothing_begins_an_epoch_earlier() -> None:
    room = Room()
    room.topic("t", 3)
    first = room.beat(request(subscribed_topic_names=[]))
    second = room.beat(request(member_id="n", subscribed_topic_names=[]))
    assert (first.member_epoch, second.member_epoch, room.group.epoch) == (FIRST_EPOCH - 1, FIRST_EPOCH - 1, 1)
    assert room.beat(request(member_id="o")).member_epoch == FIRST_EPOCH


def test_a_decision_is_one_write() -> None:
    room = Room()
    room.topic("t", 3)
    room.beat(request())
    # The member, the epoch, the target, its epoch, and what the member has.
    assert room.journal.writes == [5]


def test_a_heartbeat_without_news_writes_nothing() -> None:
    room = Room()
    room.topic("t", 3)
    room.beat(request())
    answer = room.beat(ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=2))
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)
    assert len(room.journal.writes) == 1


def test_who_says_everything_is_told_everything() -> None:
    room = Room()
    topic = room.topic("t", 1)
    room.beat(request())
    owned = [TopicPartitions(topic_id=topic, partitions=[0])]
    answer = room.beat(request(member_epoch=2, topic_partitions=owned))
    assert answer.assignment is not None


def test_a_topic_that_comes_later_is_handed_out() -> None:
    room = Room()
    member = Consumer(room, "a", ["later"])
    member.beat()
    assert (member.epoch, member.partitions) == (2, [])
    room.topic("later", 2)
    member.beat()
    assert (member.epoch, member.partitions) == (3, [0, 1])


def test_a_topic_that_is_deleted_is_taken_away() -> None:
    room = Room()
    room.topic("t", 2)
    room.topic("u", 1)
    member = Consumer(room, "a", ["t", "u"])
    member.beat()
    room.delete_topic("t")
    settle([member])
    assert (member.epoch, member.partitions) == (3, [0])


def test_a_change_that_is_not_ours_changes_nothing() -> None:
    room = Room()
    room.topic("t", 2)
    member = Consumer(room, "a")
    member.beat()
    room.topic("other", 2)
    member.beat()
    assert member.epoch == FIRST_EPOCH
    assert len(room.journal.writes) == 1


def test_an_empty_subscription_is_a_member_with_nothing() -> None:
    room = Room()
    room.topic("t", 2)
    one, other = Consumer(room, "a", []), Consumer(room, "b")
    settle([one, other])
    assert (one.partitions, other.partitions) == ([], [0, 1])


# Reconciliation.


def test_a_partition_is_given_on_only_after_it_was_given_up() -> None:
    room = Room()
    room.topic("t", 2)
    slow, new = Consumer(room, "a"), Consumer(room, "b")
    slow.beat()
    slow.revokes_at_once = False
    new.beat()
    assert room.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert (new.epoch, new.partitions) == (3, [])
    slow.beat()
    assert room.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert (slow.epoch, slow.last.assignment is not None) == (2, True)
    for _ in range(3):
        new.beat()
        slow.beat()
        room.check()
        assert (new.partitions, slow.epoch) == ([], 2)
    slow.revoke()
    slow.beat()
    assert slow.epoch == 3
    new.beat()
    assert sorted(slow.partitions + new.partitions) == [0, 1]
    assert room.group.state_name == "Stable"


def test_the_others_never_stop() -> None:
    """Three members; a fourth comes: each keeps what it keeps, in every moment."""
    room = Room()
    room.topic("t", 12)
    three = [Consumer(room, name) for name in "abc"]
    settle(three)
    before = {one.name: set(one.owned) for one in three}
    fourth = Consumer(room, "d")
    for _ in range(4):
        fourth.beat()
        for one in three:
            one.beat()
            assert len(before[one.name] & one.owned) >= 3
    assert sorted(len(one.owned) for one in [*three, fourth]) == [3, 3, 3, 3]


def test_a_new_target_meets_a_member_that_is_still_giving_up() -> None:
    room = Room()
    room.topic("t", 4)
    slow, gone = Consumer(room, "a"), Consumer(room, "b")
    slow.beat()
    slow.revokes_at_once = False
    gone.beat()
    slow.beat()
    assert gone.leave() == ErrorCode.NONE
    slow.beat()
    # It has not said that it gave anything up. It has to, before it gets it again.
    assert room.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    slow.revoke()
    settle([slow])
    assert slow.partitions == [0, 1, 2, 3]


def test_a_subscription_that_shrinks_gives_partitions_back_at_once() -> None:
    room = Room()
    room.topic("t", 2)
    room.topic("u", 2)
    one, other = Consumer(room, "a", ["t", "u"]), Consumer(room, "b", ["t", "u"])
    settle([one, other])
    one.topics = ["t"]
    one.beat()
    settle([one, other])
    assert {topic for topic, _ in one.owned} <= {room.metadata.topics["t"].id}
    assert len(one.owned | other.owned) == 4


# Epochs.


def test_an_epoch_ahead_is_fenced() -> None:
    room = Room()
    room.topic("t", 1)
    room.beat(request())
    assert room.beat(request(member_epoch=3)).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_the_epoch_before_is_taken_from_a_member_that_missed_an_answer() -> None:
    room = Room()
    topic = room.topic("t", 1)
    room.beat(request())
    room.topic("t", 2)
    owned = [TopicPartitions(topic_id=topic, partitions=[0])]
    assert room.beat(request(member_epoch=2, topic_partitions=owned)).member_epoch == 3
    again = room.beat(request(member_epoch=2, topic_partitions=owned))
    assert (again.error_code, again.member_epoch) == (0, 3)
    assert again.assignment is not None
    assert again.assignment.topic_partitions[0].partitions == [0, 1]


def test_the_epoch_before_is_fenced_with_partitions_of_others() -> None:
    room = Room()
    topic = room.topic("t", 1)
    room.beat(request())
    room.topic("t", 2)
    room.beat(request(member_epoch=2))
    foreign = [TopicPartitions(topic_id=topic, partitions=[7])]
    assert room.beat(request(member_epoch=2, topic_partitions=foreign)).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    silent = request(member_epoch=2, topic_partitions=None)
    assert room.beat(silent).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_an_older_epoch_is_fenced() -> None:
    room = Room()
    topic = room.topic("t", 1)
    room.beat(request())
    for count in (2, 3):
        room.topic("t", count)
        room.beat(request(member_epoch=count, topic_partitions=[TopicPartitions(topic_id=topic, partitions=[0])]))
    assert room.beat(request(member_epoch=2)).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again_with_all_that_it_had() -> None:
    room = Room()
    room.topic("t", 2)
    member = Consumer(room, "a")
    member.beat()
    member.epoch = 7
    assert member.beat() == ErrorCode.FENCED_MEMBER_EPOCH
    assert member.beat() == ErrorCode.NONE
    assert (member.epoch, member.partitions) == (2, [0, 1])


def test_a_state_of_the_future_is_fenced_until_the_member_has_nothing() -> None:
    room = Room()
    topic = room.topic("t", 1)
    room.beat(request())
    for number, record in enumerate(room.journal.records):
        if record.key[:2] == b"\0\x08" and record.value is not None:
            room.journal.records[number] = record._replace(value=record.value[:10] + b"\x4d" + record.value[11:])
    room.restart()
    assert room.group.members["m"].state is MemberState.UNKNOWN
    owned = [TopicPartitions(topic_id=topic, partitions=[0])]
    assert room.beat(request(member_epoch=2, topic_partitions=owned)).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert room.beat(request(member_epoch=2)).error_code == ErrorCode.NONE
    assert room.group.members["m"].state is MemberState.STABLE


# Leaving and falling silent.


def test_leaving_gives_all_to_the_others() -> None:
    room = Room()
    room.topic("t", 4)
    one, other = Consumer(room, "a"), Consumer(room, "b")
    settle([one, other])
    assert other.leave() == ErrorCode.NONE
    assert (other.last.member_id, other.last.member_epoch) == ("b", -1)
    settle([one])
    assert one.partitions == [0, 1, 2, 3]


def test_the_last_one_leaves_an_empty_group() -> None:
    room = Room()
    room.topic("t", 1)
    member = Consumer(room, "a")
    member.beat()
    member.leave()
    assert room.group.state_name == "Empty"
    assert not len(room.shard.timers)
    assert room.shard.groups[GROUP].check_delete() == ErrorCode.NONE


def test_a_groups_own_settings_come_before_the_brokers() -> None:
    room = Room()
    own = {"consumer.session.timeout.ms": "60000", "consumer.heartbeat.interval.ms": "7000"}
    assert room.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), group_configs={GROUP: own}))
    room.topic("t", 1)
    member = Consumer(room, "m")
    member.beat()
    assert member.last.heartbeat_interval_ms == 7_000
    room.advance(59_999)
    assert room.group.members
    room.restart()
    room.advance(59_999)
    assert room.group.members
    # Without them the broker's hold, from the next heartbeat on.
    member.beat()
    assert room.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), group_configs={GROUP: {}}))
    member.beat()
    room.advance(45_000)
    assert not room.group.members


def test_a_heartbeat_that_cannot_be_written_keeps_its_member() -> None:
    """As in Kafka: the member is there, and the offsets topic has too few replicas for a while."""
    room = Room(group_consumer_session_timeout_ms="45000")
    room.topic("t", 2)
    member = Consumer(room, "m")
    assert member.beat() == ErrorCode.NONE
    room.topic("u", 2)
    member.topics = ("t", "u")
    room.journal.refuses_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    for _ in range(5):
        room.advance(20_000)
        assert member.beat() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    room.journal.refuses_with = ErrorCode.NONE
    room.advance(20_000)
    assert member.beat() == ErrorCode.NONE
    # One that could not join is nobody.
    room.journal.refuses_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert Consumer(room, "new").beat() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    room.journal.refuses_with = ErrorCode.NONE
    room.advance(60_000)
    assert not room.group.members


def test_a_silent_member_is_taken_out_after_its_session() -> None:
    room = Room(group_consumer_session_timeout_ms="45000")
    room.topic("t", 2)
    one, silent = Consumer(room, "a"), Consumer(room, "b")
    settle([one, silent])
    for _ in range(9):
        room.advance(4_990)
        one.beat()
    assert set(room.group.members) == {"a", "b"}
    room.advance(100)
    assert set(room.group.members) == {"a"}
    settle([one])
    assert one.partitions == [0, 1]
    assert silent.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_is_taken_out_after_its_rebalance_time() -> None:
    room = Room()
    room.topic("t", 2)
    slow, new = Consumer(room, "a", rebalance_ms=20_000), Consumer(room, "b")
    slow.beat()
    slow.revokes_at_once = False
    new.beat()
    slow.beat()
    for _ in range(3):
        room.advance(5_000)
        slow.beat()
        new.beat()
    assert set(room.group.members) == {"a", "b"}
    room.advance(5_000)
    assert set(room.group.members) == {"b"}
    settle([new])
    assert new.partitions == [0, 1]


def test_giving_up_in_time_takes_the_timer_back() -> None:
    room = Room()
    room.topic("t", 2)
    slow, new = Consumer(room, "a", rebalance_ms=20_000), Consumer(room, "b")
    slow.beat()
    new.beat()
    settle([slow, new])
    for _ in range(10):
        room.advance(5_000)
        settle([slow, new])
    assert set(room.group.members) == {"a", "b"}


def test_a_timer_whose_write_is_refused_is_tried_again() -> None:
    room = Room()
    room.topic("t", 1)
    Consumer(room, "a").beat()
    room.journal.refuses_with = ErrorCode.NOT_ENOUGH_REPLICAS
    room.advance(60_000)
    assert set(room.group.members) == {"a"}
    room.journal.refuses_with = ErrorCode.NONE
    room.advance(1_000)
    assert not room.group.members


def test_nothing_is_kept_of_members_whose_coming_could_not_be_written() -> None:
    room = Room()
    room.topic("t", 1)
    Consumer(room, "a").beat()
    room.journal.refuses_with = ErrorCode.NOT_ENOUGH_REPLICAS
    for number in range(20):
        assert Consumer(room, f"new-{number}").beat() == ErrorCode.NOT_ENOUGH_REPLICAS
    assert set(room.group.heard) == {"a"}


# What is refused.


@pytest.mark.parametrize(
    ("fields", "version", "error"),
    [
        ({"member_id": ""}, 1, ErrorCode.INVALID_REQUEST),
        ({"member_id": " ", "member_epoch": 3}, 0, ErrorCode.INVALID_REQUEST),
        ({"member_id": "", "member_epoch": -1}, 0, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, 1, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, 1, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, 1, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, 1, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, 1, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": [TopicPartitions(partitions=[1])]}, 1, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, 1, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, 1, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3, "instance_id": "i"}, 1, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, 1, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "a("}, 1, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": r"(a)\1"}, 1, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 1}, 1, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, 1, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"group_id": "g" * 65_000}, 1, ErrorCode.INVALID_GROUP_ID),
        ({"member_id": "m" * 33_000}, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused(fields: dict[str, object], version: int, error: ErrorCode) -> None:
    room = Room()
    room.topic("t", 1)
    answer = room.beat(request(**fields), version)
    assert answer.error_code == error
    assert answer.error_message
    assert not room.journal.records
    assert not room.shard.groups


def test_version_0_is_given_an_id() -> None:
    room = Room()
    room.topic("t", 1)
    answer = room.beat(request(member_id=""), 0)
    assert answer.error_code == 0
    assert answer.member_id
    assert set(room.group.members) == {answer.member_id}


def test_nobody_knows_the_member() -> None:
    room = Room()
    room.topic("t", 1)
    room.beat(request())
    assert room.beat(request(member_id="x", member_epoch=1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert room.beat(request(member_id="x", member_epoch=-1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert room.beat(request(instance_id="i", member_epoch=1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_nobody_else() -> None:
    room = Room(group_consumer_max_size="2")
    room.topic("t", 1)
    one, other, third = (Consumer(room, name) for name in "abc")
    settle([one, other])
    assert third.beat() == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert one.beat() == ErrorCode.NONE
    other.leave()
    assert third.beat() == ErrorCode.NONE


def test_a_write_that_is_refused_changes_nothing() -> None:
    room = Room()
    room.topic("t", 2)
    member = Consumer(room, "a")
    member.beat()
    room.topic("t", 3)
    room.journal.refuses_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert member.beat() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (room.group.epoch, member.partitions) == (2, [0, 1])
    room.journal.refuses_with = ErrorCode.NONE
    assert member.beat() == ErrorCode.NONE
    assert (room.group.epoch, member.partitions) == (3, [0, 1, 2])


def test_the_answer_waits_for_the_commit() -> None:
    room = Room()
    room.topic("t", 1)
    room.journal.holds = True
    answers: list[ConsumerGroupHeartbeatResponse] = []
    room.shard.consumer_group_heartbeat(room.caller(), request(), answers.append)
    # One without news tells of what is not committed yet: it waits as well.
    room.shard.consumer_group_heartbeat(room.caller(), request(member_epoch=2), answers.append)
    assert answers == []
    room.journal.settle()
    assert [answer.error_code for answer in answers] == [0, 0]


def test_a_commit_that_fails_is_told() -> None:
    room = Room()
    room.topic("t", 1)
    room.journal.holds = True
    answers: list[ConsumerGroupHeartbeatResponse] = []
    room.shard.consumer_group_heartbeat(room.caller(), request(), answers.append)
    room.journal.settle(ErrorCode.NOT_COORDINATOR)
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]


# Assignors.


def test_the_assignor_that_most_ask_for() -> None:
    room = Room()
    room.topic("t", 4)
    room.topic("u", 2)
    wants = ["t", "u"]
    members = [Consumer(room, name, wants, assignor="range") for name in "ab"]
    settle([*members, Consumer(room, "c", [])])
    t, u = room.metadata.topics["t"].id, room.metadata.topics["u"].id
    assert room.describe().assignor_name == "range"
    assert members[0].owned == {(t, 0), (t, 1), (u, 0)}
    assert members[1].owned == {(t, 2), (t, 3), (u, 1)}


def test_settings_name_the_assignors() -> None:
    room = Room(group_consumer_assignors="org.apache.kafka.coordinator.group.assignor.RangeAssignor")
    room.topic("t", 1)
    assert room.beat(request(server_assignor="uniform")).error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert room.beat(request()).error_code == 0
    assert room.describe().assignor_name == "range"


# Describing.


def test_a_group_is_described() -> None:
    room = Room()
    room.topic("t", 2)
    one, other = Consumer(room, "a"), Consumer(room, "b", instance="i")
    one.beat()
    one.revokes_at_once = False
    other.beat()
    one.beat()
    described = room.describe()
    assert (described.error_code, described.group_state) == (0, "Reconciling")
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (3, 3, "uniform")
    first, second = described.members
    assert (first.member_id, first.member_epoch, first.instance_id, first.member_type) == ("a", 2, None, 1)
    assert (second.member_id, second.member_epoch, second.instance_id) == ("b", 3, "i")
    assert (first.client_id, first.client_host, first.subscribed_topic_names) == ("client", "/127.0.0.1", ["t"])
    has = {one.member_id: [entry.partitions for entry in one.assignment.topic_partitions] for one in described.members}
    should = [
        partition
        for member in described.members
        for entry in member.target_assignment.topic_partitions
        for partition in entry.partitions
    ]
    assert has["b"] == []
    assert sorted(should) == [0, 1]
    assert first.assignment.topic_partitions[0].topic_name == "t"


def test_a_group_that_is_not_there() -> None:
    assert Room().describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
