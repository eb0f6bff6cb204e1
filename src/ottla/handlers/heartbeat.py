"""Heartbeat (12), versions 0 to 4: says that a member of a classic group is alive."""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.security.authorizer import Operation


def handle(call: Call, request: HeartbeatRequest) -> Later:
    answer = Later()

    def reply(response: HeartbeatResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        answer.set(response)

    if allowed_on_group(call, Operation.READ, request.group_id):
        call.services.groups.shard_for_member(request.group_id).heartbeat(caller_of(call), request, reply)
    else:
        reply(HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return answer
