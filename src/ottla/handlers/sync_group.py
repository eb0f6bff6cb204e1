"""SyncGroup (14), versions 0 to 5: hands out the assignment that a classic group's leader computed."""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces

_PROTOCOL_REQUIRED_SINCE: Final = 5


def handle(call: Call, request: SyncGroupRequest) -> Steps[Later]:
    answer = Later()

    def reply(response: SyncGroupResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        answer.set(response)

    if call.version >= _PROTOCOL_REQUIRED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        reply(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    elif not allowed_on_group(call, Operation.READ, request.group_id):
        reply(SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    else:
        yield from _keep_shares_of_members(call, request)
        call.services.groups.shard_for_member(request.group_id).sync_group(caller_of(call), request, reply)
    return answer


def _keep_shares_of_members(call: Call, request: SyncGroupRequest) -> Steps[None]:
    """A leader may name whomever it likes, and as often: only the last share of each member is looked at."""
    if len(request.assignments) <= PIECE:
        return
    shares: dict[str, SyncGroupRequestAssignment] = {}
    for piece in pieces(request.assignments):
        members = call.services.groups.shard_for_member(request.group_id).members_with_shares(request.group_id)
        shares.update({share.member_id: share for share in piece if share.member_id in members})
        yield
    request.assignments = list(shares.values())
