"""Heartbeat and LeaveGroup: signs of life, and goodbyes."""

from __future__ import annotations

from ottla import logs
from ottla.groups.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import Rebalances
from ottla.groups.classic.states import State
from ottla.groups.state import Reply, ShardState
from ottla.groups.timers import session_key
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

log_event = logs.logger("groups")


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
        if group.state is State.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]) -> None:
        group = self._rebalances.classic(request.group_id)
        answers = []
        for identity in request.members:
            error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._take_out(group, identity)
            answers.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
                )
            )
        response = LeaveGroupResponse(members=answers)
        if group is None or all(answer.error_code for answer in answers):
            reply(response)
            return
        if group.state is not State.EMPTY:
            self._rebalances.prepare_or_complete(group, caller.now)
        if group.state is not State.EMPTY:
            reply(response)
            return

        # The last one is out when that is stored: an administrator who deletes the group next must find it empty.
        def settled(_: ErrorCode) -> None:
            reply(response)

        self._state.journal.when_settled(settled)

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
