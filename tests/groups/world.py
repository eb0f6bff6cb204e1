"""A coordinator's shard with everything around it in memory, in a time that the test moves."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from struct import pack
from typing import Any, Generic, TypeVar

from tests.groups.journal import MemoryJournal

from ottla.config.broker import Config
from ottla.config.slices import GroupsConfig
from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.loading import load
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.offsets.committing import ALL_COMMITTED
from ottla.groups.offsets.fetching import fetch_refused
from ottla.groups.shard import GroupShard, ShardContext
from ottla.groups.state import Counts
from ottla.metadata.cache import MetadataCache
from ottla.model import ErrorCode
from ottla.ports.memory.entropy import SeededEntropy
from ottla.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.steps import Steps, at_once

T = TypeVar("T")
GROUP = "orders-readers"
TOPIC = "orders"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DAY_MS = 24 * 60 * 60 * 1000
WALL_START_MS = 1_700_000_000_000


class Answer(Generic[T]):
    """Where a reply ends: it comes once, now or later."""

    def __init__(self) -> None:
        self._given: list[T] = []

    def __call__(self, response: T) -> None:
        assert not self._given, "answered twice"
        self._given.append(response)

    @property
    def came(self) -> bool:
        return bool(self._given)

    @property
    def value(self) -> T:
        assert self._given, "no answer yet"
        return self._given[0]

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.value.error_code)  # type: ignore[attr-defined]


class TestClock:
    __test__ = False

    def __init__(self, world: World) -> None:
        self._world = world

    def wall_ms(self) -> int:
        return self._world.now.wall_ms

    def monotonic_ms(self) -> int:
        return self._world.now.monotonic_ms


class World:
    def __init__(self, **properties: str) -> None:
        self.now = Now(WALL_START_MS, 1_000)
        self.settings = groups_config(**properties)
        self.journal = MemoryJournal()
        self.metadata = MetadataCache()
        self._entropy = SeededEntropy(1)
        #: Long work that is left to the test; None has it done at once.
        self.beside: deque[Steps[None]] | None = None
        self.shard = self._new_shard()
        for _ in self.shard.loaded(self.now):
            pass

    def _new_shard(self) -> GroupShard:
        shared = ShardContext(Counts(), TopicPatterns(self.metadata), side_by_side=self._long_work)
        return GroupShard(0, self.journal, lambda: self.settings, self.metadata, self._entropy, shared)

    def _long_work(self, steps: Steps[None]) -> None:
        if self.beside is None:
            at_once(steps)
        else:
            self.beside.append(steps)

    def leave_long_work(self) -> None:
        """From here on `step` does it."""
        self.beside = deque()

    def step(self, times: int = 1 << 30) -> int:
        """Does so many steps of the long work, a step of each in turn, or all. Returns how many there were."""
        assert self.beside is not None
        count = 0
        while self.beside and count < times:
            steps = self.beside.popleft()
            try:
                next(steps)
                self.beside.append(steps)
            except StopIteration:
                pass
            count += 1
        return count

    # Time and faults.

    def advance(self, ms: int) -> None:
        """Time passes, and each timer is called at its moment."""
        end = self.now.monotonic_ms + ms
        while (due := self.shard.timers.next_deadline_ms()) is not None and due <= end:
            self._move_to(max(due, self.now.monotonic_ms))
            self.shard.timers.expire(self.now)
        self._move_to(end)

    def _move_to(self, monotonic_ms: int) -> None:
        passed = monotonic_ms - self.now.monotonic_ms
        self.now = Now(self.now.wall_ms + passed, monotonic_ms)

    def restart(self) -> None:
        """Another coordinator takes over what the journal holds."""
        self.shard.unload(ErrorCode.NOT_COORDINATOR, self.now)
        self.load()

    def load(self) -> None:
        self.shard = self._new_shard()
        asyncio.run(load(self.journal, self.shard, TestClock(self)))

    def caller(self, version: int, client_id: str = "client") -> Caller:
        return Caller(client_id, "/127.0.0.1", version, self.now)

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    # Requests.

    def join(
        self,
        member_id: str = "",
        *,
        group: str = GROUP,
        version: int = 9,
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Answer[JoinGroupResponse]:
        named = [("range", subscription(TOPIC))] if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in named],
        )
        answer: Answer[JoinGroupResponse] = Answer()
        self.shard.join_group(self.caller(version), request, answer)
        return answer

    def enter(self, **options: Any) -> tuple[str, Answer[JoinGroupResponse]]:
        """A dynamic member as clients do it: it asks for an id and joins with that."""
        first = self.join(**options)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.value.member_id
        return member_id, self.join(member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        shares: dict[str, bytes] | None = None,
        *,
        group: str = GROUP,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> Answer[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in (shares or {}).items()
            ],
        )
        answer: Answer[SyncGroupResponse] = Answer()
        self.shard.sync_group(self.caller(5), request, answer)
        return answer

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = GROUP, instance: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        answer: Answer[HeartbeatResponse] = Answer()
        self.shard.heartbeat(self.caller(4), request, answer)
        return answer.error

    def leave(self, *members: tuple[str, str | None], group: str = GROUP) -> Answer[LeaveGroupResponse]:
        identities = [MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in members]
        answer: Answer[LeaveGroupResponse] = Answer()
        at_once(self.shard.leave_group(self.caller(5), LeaveGroupRequest(group_id=group, members=identities), answer))
        return answer

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        group: str = GROUP,
        topic: str = TOPIC,
        partition: int = 0,
        metadata: str | None = "",
        epoch: int = -1,
        retention_ms: int = -1,
        topic_id: bytes = bytes(16),
        version: int = 9,
    ) -> Answer[OffsetCommitResponse]:
        entry = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            committed_metadata=metadata,
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[entry])],
        )
        answer: Answer[OffsetCommitResponse] = Answer()
        at_once(self.shard.offset_commit(self.caller(version), request, answer))
        return answer

    def fetch(
        self,
        partitions: dict[str, list[int]] | None = None,
        *,
        group: str = GROUP,
        stable: bool = False,
        topic_id: bytes = bytes(16),
    ) -> Answer[OffsetFetchResponseGroup]:
        topics = None
        if partitions is not None:
            topics = [
                OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=numbers)
                for name, numbers in partitions.items()
            ]
        answer: Answer[OffsetFetchResponseGroup] = Answer()
        request = OffsetFetchRequestGroup(group_id=group, topics=topics)
        found = at_once(self.shard.offset_fetch(request, stable))
        self.shard.when_settled(lambda error: answer(fetch_refused(group, error) if error else found))
        return answer

    def committed(self, partition: int = 0, *, group: str = GROUP, topic: str = TOPIC) -> int:
        return self.fetch({topic: [partition]}, group=group).value.topics[0].partitions[0].committed_offset

    # Groups in a state.

    def stable(self, members: int = 2, *, group: str = GROUP, **options: Any) -> tuple[int, list[str]]:
        """A group of so many dynamic members that all have their shares, the leader first, and its generation."""
        entered = [self.enter(group=group, **options) for _ in range(members)]
        for _ in range(3):
            self.advance(self.settings.initial_rebalance_delay_ms)
        generation = entered[0][1].value.generation_id
        ids = [member_id for member_id, _ in entered]
        assert entered[0][1].value.leader == ids[0]
        self.share_out(generation, ids, group=group)
        return generation, ids

    def share_out(self, generation: int, ids: Sequence[str], *, group: str = GROUP) -> None:
        followers = [self.sync(member_id, generation, group=group) for member_id in ids[1:]]
        leader = self.sync(ids[0], generation, {member_id: member_id.encode() for member_id in ids}, group=group)
        for member_id, answer in zip(ids, [leader, *followers], strict=True):
            assert answer.error is ErrorCode.NONE
            assert answer.value.assignment == member_id.encode()
        assert self.group(group).state_name == "Stable"


def commit_error(answer: Answer[OffsetCommitResponse]) -> ErrorCode:
    if answer.value is ALL_COMMITTED:
        return ErrorCode.NONE
    return ErrorCode(answer.value.topics[0].partitions[0].error_code)


def subscription(*topics: str) -> bytes:
    return pack(">h", 0) + ConsumerProtocolSubscription(topics=list(topics)).encode(0)


def groups_config(**properties: str) -> GroupsConfig:
    """Kafka's defaults, but for what is said; names with underscores for dots."""
    return Config.parse({name.replace("_", "."): value for name, value in properties.items()}).groups
