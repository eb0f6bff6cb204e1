"""LeaveGroup (13), versions 0 to 5: takes members out of a classic group. Before version 3 it is one member."""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.security.authorizer import Operation
from ottla.steps import Steps

_SEVERAL_SINCE: Final = 3


def handle(call: Call, request: LeaveGroupRequest) -> Steps[Later]:
    answer = Later()

    def reply(response: LeaveGroupResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        if call.version < _SEVERAL_SINCE:
            if response.error_code == ErrorCode.NONE and response.members:
                response.error_code = response.members[0].error_code
            response.members = []
        answer.set(response)

    if not allowed_on_group(call, Operation.READ, request.group_id):
        reply(LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return answer
    if call.version < _SEVERAL_SINCE:
        request.members = [MemberIdentity(member_id=request.member_id)]
    yield from call.services.groups.shard_for_member(request.group_id).leave_group(caller_of(call), request, reply)
    return answer
