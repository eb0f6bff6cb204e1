"""DescribeGroups (15), versions 0 to 6: state and members of classic groups.

A group that there is not is Dead to clients before version 6, and an error to newer ones.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.call import Call
from ottla.handlers.group_calls import allowed_on_group, caller_of
from ottla.handlers.later import Gathered, Later
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.security.authorizer import Operation, Resource

_MESSAGE_SINCE: Final = 6
_OPERATIONS_SINCE: Final = 3
_DEAD: Final = "Dead"


def handle(call: Call, request: DescribeGroupsRequest) -> Later:
    answer = Later()
    wants_operations = call.version >= _OPERATIONS_SINCE and request.include_authorized_operations

    def done(groups: list[DescribedGroup]) -> None:
        for group in groups:
            _finish(call, group, wants_operations=wants_operations)
        answer.set(DescribeGroupsResponse(throttle_time_ms=call.throttle_ms(), groups=groups))

    gathered = Gathered(len(request.groups), done)
    caller = caller_of(call)
    for index, group_id in enumerate(request.groups):
        if allowed_on_group(call, Operation.DESCRIBE, group_id):
            call.services.groups.describe_group(caller, group_id, gathered.place(index))
        else:
            refused = DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            gathered.place(index)(refused)
    return answer


def _finish(call: Call, group: DescribedGroup, *, wants_operations: bool) -> None:
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        group.group_state = _DEAD
        if call.version < _MESSAGE_SINCE:
            group.error_code = ErrorCode.NONE
    if call.version < _MESSAGE_SINCE:
        group.error_message = None
    if wants_operations and group.error_code == ErrorCode.NONE:
        group.authorized_operations = call.authorized_operations(Resource.GROUP, group.group_id)
