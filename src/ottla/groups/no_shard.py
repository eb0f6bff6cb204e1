"""What is asked of a group for which there is no shard here: each request is refused, in the words of its API."""

from __future__ import annotations

from collections.abc import Collection

from ottla.coordinators.caller import Caller
from ottla.coordinators.journal import TransactionalProducer
from ottla.groups.classic.rebalance import join_refused, sync_refused
from ottla.groups.consumer.prepared import PreparedHeartbeat
from ottla.groups.offsets.committing import TransactionalWriter, commit_refused
from ottla.groups.offsets.fetching import fetch_refused
from ottla.groups.offsets.repeated import RepeatedCommit
from ottla.groups.state import Done, Reply, made_at_once, replied
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.describe_groups import DescribedGroup
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.generated.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.records.batch import NO_SEQUENCE
from ottla.steps import Steps, at_once
from ottla.storage.log.producers.verifying import Verification


class NoShard:
    """Has the requests of `GroupShard`."""

    __slots__ = ("_error",)

    def __init__(self, error: ErrorCode) -> None:
        self._error = error

    # Members.

    def join_group(self, _caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]) -> None:
        reply(join_refused(self._error, request.member_id))

    def sync_group(self, _caller: Caller, _request: SyncGroupRequest, reply: Reply[SyncGroupResponse]) -> None:
        # The rebalance that it belongs to is gone. Clients take the loading itself for a fatal error here.
        is_loading = self._error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        reply(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS if is_loading else self._error))

    def members_with_shares(self, _group_id: str) -> Collection[str]:
        return ()

    def heartbeat(self, _caller: Caller, _request: HeartbeatRequest, reply: Reply[HeartbeatResponse]) -> None:
        # Sessions begin anew once it is loaded: nothing is wrong with this one.
        is_loading = self._error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        reply(HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else self._error))

    def leave_group(
        self, _caller: Caller, _request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]
    ) -> Steps[None]:
        return replied(made_at_once(LeaveGroupResponse(error_code=self._error)), reply)

    def prepare_heartbeat(self, _request: ConsumerGroupHeartbeatRequest) -> Steps[PreparedHeartbeat]:
        return made_at_once(PreparedHeartbeat(None, None))

    def consumer_group_heartbeat(
        self,
        _caller: Caller,
        request: ConsumerGroupHeartbeatRequest,
        reply: Reply[ConsumerGroupHeartbeatResponse],
        _prepared: PreparedHeartbeat | None = None,
    ) -> None:
        if not request.group_id:
            message = "The group must have a name."
            reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message))
        else:
            reply(ConsumerGroupHeartbeatResponse(error_code=self._error))

    # Offsets.

    def offset_commit(
        self, _caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]
    ) -> Steps[None]:
        return replied(commit_refused(request, self._error), reply)

    def commit_few(self, _caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]) -> None:
        reply(at_once(commit_refused(request, self._error)))

    @property
    def is_loaded(self) -> bool:
        return False

    def has_open(self, _producer: TransactionalProducer) -> bool:
        return False

    def is_behind(self, _producer: TransactionalProducer) -> bool:
        return False

    def begin_verifying(self, producer: TransactionalProducer) -> Verification:
        return Verification(producer.producer_epoch, NO_SEQUENCE)

    def is_verified(self, _producer: TransactionalProducer, _verification: Verification) -> bool:
        return True  # the commit says why there is no shard

    def txn_offset_commit(
        self,
        _caller: Caller,
        _writer: TransactionalWriter,
        request: OffsetCommitRequest,
        reply: Reply[OffsetCommitResponse],
    ) -> Steps[None]:
        return replied(commit_refused(request, self._error), reply)

    def repeated_commit(self, _request: OffsetCommitRequest, _version: int) -> None:
        """There is nothing to remember."""

    def takes(self, _commit: RepeatedCommit) -> bool:
        return False

    def offset_fetch(self, request: OffsetFetchRequestGroup, _require_stable: bool) -> Steps[OffsetFetchResponseGroup]:
        return made_at_once(fetch_refused(request.group_id, self._error))

    def offset_count(self, _group_id: str) -> int:
        return 0

    def when_settled(self, call: Done) -> None:
        call(self._error)

    def offset_delete(
        self, _caller: Caller, _request: OffsetDeleteRequest, reply: Reply[OffsetDeleteResponse]
    ) -> Steps[None]:
        return replied(made_at_once(OffsetDeleteResponse(error_code=self._error)), reply)

    # Administrators.

    def describe_group(self, group_id: str, _version: int) -> Steps[DescribedGroup]:
        return made_at_once(DescribedGroup(group_id=group_id, error_code=self._error))

    def describe_consumer_group(self, group_id: str) -> Steps[DescribedConsumerGroup]:
        return made_at_once(DescribedConsumerGroup(group_id=group_id, error_code=self._error))

    def delete_group(self, _caller: Caller, _group_id: str, reply: Reply[ErrorCode]) -> Steps[None]:
        return replied(made_at_once(self._error), reply)
