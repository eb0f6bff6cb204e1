"""Whatever clients ask in whatever order, with whatever in it: nothing raises, each request is answered once, and from
what was written another coordinator knows the same.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.groups.world import Answer, World, subscription
from tests.searches import seeds

from ottla import logs
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.state import Reply
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.generated.heartbeat import HeartbeatRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.generated.leave_group import LeaveGroupRequest, MemberIdentity
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
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.steps import at_once

REQUESTS = 200
GROUPS, TOPICS = ("g", "h"), ("t", "u")
NUMBERS = (-3, -2, -1, 0, 1, 1, 2, 2, 3, 4, 2**31 - 1, -(2**31))
TIMES = (-(2**63), -1, -1, 0, 1_000, 2**63 - 1)


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16))


def with_topics(world: World) -> World:
    broker = BrokerId(1)
    states = [
        PartitionState(
            topic=name,
            topic_id=topic_id(name),
            partition=number,
            leader=broker,
            controller_epoch=Epoch(1),
            partition_epoch=0,
            leader_epoch=Epoch(0),
            replicas=(broker,),
            isr=(broker,),
        )
        for name in TOPICS
        for number in range(3)
    ]
    assert world.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=states))
    return world


class Clients:
    """They say anything, but mostly something that could be meant seriously."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.answers: list[Answer[Any]] = []
        self._members = ["", "nobody"]
        self._requests: list[Callable[[Reply[Any]], None]] = [
            self._join,
            self._join,
            self._sync,
            self._heartbeat,
            self._leave,
            self._commit,
            self._commit,
            self._fetch,
            self._delete_offsets,
            self._consumer_heartbeat,
            self._consumer_heartbeat,
            self._consumer_heartbeat,
            self._administer,
        ]

    def ask(self) -> None:
        answer: Answer[Any] = Answer()
        self.answers.append(answer)
        self.random.choice(self._requests)(answer)
        if answer.came and (member := getattr(answer.value, "member_id", "")):
            self._members.append(member)

    # What they say.

    def _group(self) -> str:
        return self.random.choice(GROUPS)

    def _member(self) -> str:
        return self.random.choice(self._members[:2] + self._members[-6:])

    def _instance(self) -> str | None:
        return self.random.choice([None, None, None, "one", "two", ""])

    def _number(self) -> int:
        return self.random.choice(NUMBERS)

    def _subscription(self) -> bytes:
        return self.random.choice(
            [b"", b"\0", b"\xff" * 9, subscription("t"), subscription("t"), subscription("t", "u")]
        )

    # Requests.

    def _join(self, reply: Reply[Any]) -> None:
        random = self.random
        names = random.sample(["range", "range", "sticky", ""], random.randint(0, 3))
        request = JoinGroupRequest(
            group_id=self._group(),
            session_timeout_ms=random.choice([10_000, 10_000, 10_000, 0, -1, 2**31 - 1]),
            rebalance_timeout_ms=random.choice([60_000, 1_000, 0, -1, -7, 2**31 - 1]),
            member_id=self._member(),
            group_instance_id=self._instance(),
            protocol_type=random.choice(["consumer", "consumer", "consumer", "connect", ""]),
            protocols=[JoinGroupRequestProtocol(name=name, metadata=self._subscription()) for name in names],
        )
        self.world.shard.join_group(self.world.caller(random.randint(0, 9)), request, reply)

    def _sync(self, reply: Reply[Any]) -> None:
        shares = [
            SyncGroupRequestAssignment(member_id=self._member(), assignment=b"share")
            for _ in range(self.random.randint(0, 3))
        ]
        request = SyncGroupRequest(
            group_id=self._group(),
            generation_id=self._number(),
            member_id=self._member(),
            group_instance_id=self._instance(),
            protocol_type=self.random.choice([None, "consumer", "connect"]),
            protocol_name=self.random.choice([None, "range", "sticky"]),
            assignments=shares,
        )
        self.world.shard.sync_group(self.world.caller(5), request, reply)

    def _heartbeat(self, reply: Reply[Any]) -> None:
        request = HeartbeatRequest(
            group_id=self._group(),
            generation_id=self._number(),
            member_id=self._member(),
            group_instance_id=self._instance(),
        )
        self.world.shard.heartbeat(self.world.caller(4), request, reply)

    def _leave(self, reply: Reply[Any]) -> None:
        members = [
            MemberIdentity(member_id=self._member(), group_instance_id=self._instance())
            for _ in range(self.random.randint(0, 3))
        ]
        request = LeaveGroupRequest(group_id=self._group(), members=members)
        at_once(self.world.shard.leave_group(self.world.caller(5), request, reply))

    def _commit(self, reply: Reply[Any]) -> None:
        random = self.random
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=random.randrange(3),
                committed_offset=random.choice([-1, 0, 7, 2**63 - 1]),
                committed_leader_epoch=self._number(),
                committed_metadata=random.choice([None, "", "note", "\N{GRINNING FACE}" * 2_048, "x" * 4_097]),
            )
            for _ in range(random.randint(0, 3))
        ]
        name = random.choice(TOPICS)
        request = OffsetCommitRequest(
            group_id=random.choice([*GROUPS, ""]),
            generation_id_or_member_epoch=self._number(),
            member_id=self._member(),
            group_instance_id=self._instance(),
            retention_time_ms=random.choice(TIMES),
            topics=[OffsetCommitRequestTopic(name=name, topic_id=topic_id(name), partitions=partitions)],
        )
        at_once(self.world.shard.offset_commit(self.world.caller(random.randint(2, 10)), request, reply))

    def _fetch(self, reply: Reply[Any]) -> None:
        topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0, -1]) for name in ("t", "none")]
        request = OffsetFetchRequestGroup(
            group_id=self._group(),
            member_id=self.random.choice([None, self._member()]),
            member_epoch=self._number(),
            topics=self.random.choice([None, topics]),
        )
        found = at_once(self.world.shard.offset_fetch(request, self.random.random() < 0.5))
        self.world.shard.when_settled(lambda _: reply(found))

    def _delete_offsets(self, reply: Reply[Any]) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=self._number())]
        topics = [OffsetDeleteRequestTopic(name=self.random.choice(TOPICS), partitions=partitions)]
        request = OffsetDeleteRequest(group_id=self._group(), topics=topics)
        at_once(self.world.shard.offset_delete(self.world.caller(0), request, reply))

    def _consumer_heartbeat(self, reply: Reply[Any]) -> None:
        random = self.random
        joins = random.random() < 0.5
        has = [TopicPartitions(topic_id=topic_id(random.choice("tux")), partitions=[random.randrange(4)])]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group(),
            member_id=random.choice(["a", "b", "c", self._member()]),
            member_epoch=0 if joins else self._number(),
            instance_id=self._instance(),
            rack_id=random.choice([None, "rack", ""]),
            rebalance_timeout_ms=random.choice([1_000, 60_000, 0, -7]) if joins else -1,
            subscribed_topic_names=random.choice([["t"], ["t", "t", "u"], [], ["none"]]) if joins else None,
            subscribed_topic_regex=random.choice([None, None, "", "t.*", "(", "[[:word:]]+"]),
            server_assignor=random.choice([None, None, "range", "uniform", "none"]),
            topic_partitions=[] if joins else random.choice([None, [], has]),
        )
        if random.random() < 0.9:
            at_once(self.world.shard.prepare_heartbeat(request))
        self.world.shard.consumer_group_heartbeat(self.world.caller(random.randint(0, 1)), request, reply)

    def _administer(self, reply: Reply[Any]) -> None:
        shard, caller = self.world.shard, self.world.caller(self.random.randint(0, 6))
        match self.random.randrange(3):
            case 0:
                reply(at_once(shard.describe_group(self._group(), caller.version)))
            case 1:
                reply(at_once(shard.describe_consumer_group(self._group())))
            case _:
                at_once(shard.delete_group(caller, self._group(), reply))


def knowledge(world: World) -> dict[str, object]:
    """What has to outlive a coordinator: offsets, and all that consumer groups decided."""
    offsets = world.shard.state.offsets
    known: dict[str, object] = {}
    for group_id in sorted({*offsets.group_ids(), *world.shard.groups}):
        kept = {topic: dict(partitions) for topic, partitions in offsets.of_group(group_id).items()}
        group = world.shard.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            known[group_id] = (kept, group.epoch, group.assignment_epoch, group.members, group.target, group.regexes)
        elif kept:
            known[group_id] = kept
    return known


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_any_requests_in_any_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    output = logs.LogOutput(level="WARN", sink=lines.append)
    monkeypatch.setattr("ottla.groups.shard.log_event", logs.Logger("groups", output))
    world = with_topics(World(group_initial_rebalance_delay_ms="500"))
    clients = Clients(world, seed)
    for _ in range(REQUESTS):
        clients.ask()
        match clients.random.randrange(12):
            case 0:
                world.journal.held = True
            case 1 | 2:
                world.journal.commit()
            case 3:
                world.journal.refusal = clients.random.choice([None, None, ErrorCode.COORDINATOR_NOT_AVAILABLE])
            case 4 | 5:
                world.advance(clients.random.choice([1, 500, 5_000, 20_000, 700_000]))
    world.journal.refusal = None
    world.journal.commit()
    before = knowledge(world)
    world.restart()
    assert all(answer.came for answer in clients.answers)
    assert knowledge(world) == before
    assert lines == []
