"""A consumer of the classic protocol, eager or cooperative, as clients behave, against `Room`'s shard."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tests.groups.consumer.room import GROUP, Room

from ottla.client.consuming.group import wire
from ottla.model import ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.steps import at_once


class Stage(Enum):
    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


class ClassicConsumer:
    def __init__(
        self,
        room: Room,
        topics: Sequence[str] = ("t",),
        *,
        cooperative: bool = False,
        instance: str | None = None,
        session_ms: int = 45_000,
        rebalance_ms: int = 60_000,
        join_version: int = 9,
    ) -> None:
        self.room = room
        self.topics = tuple(topics)
        self.cooperative = cooperative
        self.instance = instance
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.join_version = join_version
        self.id = ""
        self.generation = -1
        self.protocol: str | None = None
        self.stage = Stage.OUT
        #: What it reads.
        self.owned: set[tuple[TopicId, int]] = set()
        self.errors: list[ErrorCode] = []
        #: Whether it looks at the topics, as a leader does.
        self.watches = True
        self._seen: dict[str, int] = {}

    @property
    def name(self) -> str:
        return self.id

    @property
    def partitions(self) -> list[int]:
        return sorted(partition for _, partition in self.owned)

    @property
    def protocol_name(self) -> str:
        return "cooperative-sticky" if self.cooperative else "range"

    def beat(self) -> None:
        """Whatever such a client would do next; while it waits for an answer, nothing."""
        if self.stage is Stage.OUT:
            self.join()
        elif self.stage is Stage.STABLE:
            # Leaders watch the topics; here every member does, since after a change of protocol nobody knows who leads.
            if self.watches and self._counts() != self._seen:
                self.join()
            else:
                self.heartbeat()
        self.room.deliver()

    def _counts(self) -> dict[str, int]:
        topics = self.room.metadata.topics
        return {name: len(topics[name].partitions) for name in self.topics if name in topics}

    # Joining.

    def join(self) -> None:
        if not self.cooperative:
            self.owned = set()
        self.stage = Stage.JOINING
        self._seen = self._counts()
        names = self.room.metadata.topic_name
        owned = tuple(TopicPartition(names(topic) or "?", partition) for topic, partition in sorted(self.owned))
        told = wire.Subscription(frozenset(self.topics), owned=owned, generation=self.generation)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.protocol_name, metadata=wire.encode_subscription(told))],
        )
        self.room.shard.join_group(self.room.caller(self.join_version), request, self.room.later(self._joined))

    def _joined(self, response: JoinGroupResponse) -> None:
        error = ErrorCode(response.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = response.member_id
            self.join()
        elif error:
            self._refused(error)
        else:
            self.id, self.generation = response.member_id, response.generation_id
            self.protocol = response.protocol_name
            self._sync(response.members if response.leader == self.id else [])

    def _sync(self, members: Sequence[JoinGroupResponseMember]) -> None:
        self.stage = Stage.SYNCING
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=wire.encode_assignment(share))
                for name, share in self._shares(members).items()
            ],
        )
        self.room.shard.sync_group(self.room.caller(5), request, self.room.later(self._synced))

    def _shares(self, members: Sequence[JoinGroupResponseMember]) -> dict[str, wire.Assignment]:
        """In turn, over all partitions; cooperative: nothing that another member has not given up yet."""
        wants = {member.member_id: wire.decode_subscription(bytes(member.metadata)) for member in members}
        owner = {one: name for name, told in wants.items() for one in told.owned}
        shares: dict[str, list[TopicPartition]] = {name: [] for name in wants}
        for topic in sorted({topic for told in wants.values() for topic in told.topics}):
            known = self.room.metadata.topic(topic)
            takers = sorted(name for name, told in wants.items() if topic in told.topics)
            for number in range(0 if known is None else len(known.partitions)):
                taker = takers[number % len(takers)]
                if owner.get(TopicPartition(topic, number), taker) == taker or not self.cooperative:
                    shares[taker].append(TopicPartition(topic, number))
        return {name: wire.Assignment(tuple(share)) for name, share in shares.items()}

    def _synced(self, response: SyncGroupResponse) -> None:
        error = ErrorCode(response.error_code)
        if error:
            self._refused(error)
            return
        told = set()
        for topic, partition in wire.decode_assignment(bytes(response.assignment)).partitions:
            known = self.room.metadata.topic(topic)
            if known is not None:
                told.add((known.id, partition))
        self.stage = Stage.STABLE
        gave_up = bool(self.owned - told)
        self.owned = told
        if gave_up:
            self.join()

    # Being there.

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance
        )
        answers: list[HeartbeatResponse] = []
        self.room.shard.heartbeat(self.room.caller(4), request, answers.append)
        if not answers:
            return ErrorCode.NONE
        error = ErrorCode(answers[0].error_code)
        if error:
            self._refused(error)
        return error

    def _refused(self, error: ErrorCode) -> None:
        self.errors.append(error)
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
            return
        self.stage = Stage.OUT
        self.owned = set()
        self.generation = -1
        if error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
            self.id = ""

    def leave(self) -> ErrorCode:
        identity = MemberIdentity(member_id=self.id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        answers: list[LeaveGroupResponse] = []
        at_once(self.room.shard.leave_group(self.room.caller(5), request, answers.append))
        self.owned, self.id, self.stage = set(), "", Stage.OUT
        return ErrorCode(answers[0].error_code or answers[0].members[0].error_code)
