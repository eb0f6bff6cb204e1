"""JoinGroup (11), versions 0 to 9: enters a classic group, and waits until the generation is complete."""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.security.authorizer import Operation
from ottla.steps import Steps

_REBALANCE_TIMEOUT_SINCE: Final = 1
_NULLABLE_PROTOCOL_SINCE: Final = 7
#: Clients that are refused give their reasons at length.
_REASON_LENGTH_MAX: Final = 255
#: Members, and what they say, up to which the leader's answer is encoded in one piece. All of them may say 64 MB.
_AT_ONCE_MEMBERS_MAX: Final = 256
_AT_ONCE_BYTES_MAX: Final = 256 * 1024


def handle(call: Call, request: JoinGroupRequest) -> Later:
    answer = Later()

    def reply(response: JoinGroupResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        if call.version < _NULLABLE_PROTOCOL_SINCE:
            response.protocol_name = response.protocol_name or ""
        elif not response.protocol_name:
            response.protocol_name = None
        # Only the leader learns who the others are.
        answer.set(_in_steps(response) if _is_long(response) else response)

    if not allowed_on_group(call, Operation.READ, request.group_id):
        reply(JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, member_id=request.member_id))
        return answer
    if call.version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    if request.reason is not None and len(request.reason) > _REASON_LENGTH_MAX:
        request.reason = request.reason[:_REASON_LENGTH_MAX]
    call.services.groups.shard_for_member(request.group_id).join_group(caller_of(call), request, reply)
    return answer


def _is_long(response: JoinGroupResponse) -> bool:
    members = response.members
    return len(members) > _AT_ONCE_MEMBERS_MAX or sum([len(one.metadata) for one in members]) > _AT_ONCE_BYTES_MAX


def _in_steps(response: JoinGroupResponse) -> Steps[JoinGroupResponse]:
    """Has what is known already encoded in steps."""
    yield
    return response
