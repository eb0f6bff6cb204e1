"""Heartbeat and LeaveGroup: signs of life, and goodbyes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla import logs
from ottla.coordinators.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import Rebalances
from ottla.groups.classic.states import ClassicGroupState
from ottla.groups.state import Reply, ShardState, session_key
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.steps import Steps, pieces

log_event = logs.logger("groups")


#: Members that leave together, in one request: each may answer another member that waits.
MEMBERS_A_STEP: Final = 32


class Leaving:
    __slots__ = ("_rebalances", "_state")

    def __init__(self, state: ShardState, rebalances: Rebalances) -> None:
        self._state = state
        self._rebalances = rebalances

    def heartbeat(self, caller: Caller, request: HeartbeatRequest, reply: Reply[HeartbeatResponse]) -> None:
        reply(HeartbeatResponse(error_code=self._heartbeat(caller, request)))

    def _heartbeat(self, caller: Caller, request: HeartbeatRequest) -> ErrorCode:
        group = self._rebalances.classic(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if error := group.check_member(request.member_id, request.group_instance_id):
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalances.restart_session(group, group.members[request.member_id], caller.now)
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]) -> Steps[None]:
        answers: list[MemberResponse] = []
        for piece in pieces(request.members, MEMBERS_A_STEP):
            if answers:
                yield
            if self._state.is_over:
                reply(LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
                return
            answers += self._leave(caller, request.group_id, piece)
        response = LeaveGroupResponse(members=answers)
        group = self._rebalances.classic(request.group_id)
        if group is None or group.state is not ClassicGroupState.EMPTY:
            reply(response)
            return

        # The last one is out when that is stored: an administrator who deletes the group next must find it empty.
        def settled(error: ErrorCode) -> None:
            reply(LeaveGroupResponse(error_code=error) if error else response)

        self._state.journal.when_settled(settled)

    def _leave(self, caller: Caller, group_id: str, members: Sequence[MemberIdentity]) -> list[MemberResponse]:
        group = self._rebalances.classic(group_id)
        answers = []
        for identity in members:
            error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._take_out(group, identity)
            answers.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
                )
            )
        if group is None or all(answer.error_code for answer in answers):
            return answers
        if group.state is not ClassicGroupState.EMPTY:
            self._rebalances.prepare_or_complete(group, caller.now)
        return answers

    def _take_out(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        """By its id; or by the instance id alone, which is how administrators name static members."""
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id:
            if instance_id is None or instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        elif member_id in group.pending_join:
            group.remove(member_id)
            self._state.timers.cancel(session_key(group.id, member_id))
            return ErrorCode.NONE
        elif error := group.check_member(member_id, instance_id):
            return error
        log_event.info("a member left", group=group.id, member=member_id, reason=identity.reason or "not given")
        self._rebalances.drop(group, group.members[member_id], ErrorCode.UNKNOWN_MEMBER_ID)
        return ErrorCode.NONE
