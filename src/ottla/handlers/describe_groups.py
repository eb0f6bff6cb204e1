"""DescribeGroups (15), versions 0 to 6: state and members of classic groups.

A group that there is not is Dead to clients before version 6, and an error to newer ones.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import ANSWER_BYTES_MAX, TOO_LARGE, allowed_on_group, steps_of_name
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.security.authorizer import Operation, Resource
from ottla.steps import PIECE, Steps

_MESSAGE_SINCE: Final = 6
_OPERATIONS_SINCE: Final = 3
_DEAD: Final = "Dead"
#: Ids, client and host.
_MEMBER_BYTES: Final = 128


def handle(call: Call, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    wants_operations = call.version >= _OPERATIONS_SINCE and request.include_authorized_operations
    # A group that is named again has the same answer, which takes no memory a second time.
    known: dict[str, tuple[DescribedGroup, int]] = {}
    groups = []
    room = ANSWER_BYTES_MAX
    for group_id in request.groups:
        if group_id not in known:
            group = yield from _described(call, group_id)
            _finish(call, group, wants_operations=wants_operations)
            known[group_id] = group, _size(group)
            yield from steps_of_name(group_id)
        group, size = known[group_id]
        if size > room:
            group = _too_large(call, group_id)
        room -= min(size, room)
        groups.append(group)
        if len(groups) % PIECE == 0:
            yield
    return DescribeGroupsResponse(throttle_time_ms=call.throttle_ms(), groups=groups)


def _described(call: Call, group_id: str) -> Steps[DescribedGroup]:
    if not allowed_on_group(call, Operation.DESCRIBE, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return (yield from call.services.groups.shard_for(group_id).describe_group(group_id, call.version))


def _too_large(call: Call, group_id: str) -> DescribedGroup:
    message = TOO_LARGE if call.version >= _MESSAGE_SINCE else None
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message)


def _size(group: DescribedGroup) -> int:
    return len(group.group_id) + sum(
        _MEMBER_BYTES
        + len(member.member_id)
        + len(member.group_instance_id or "")
        + len(member.client_id)
        + len(member.client_host)
        + len(member.member_metadata)
        + len(member.member_assignment)
        for member in group.members
    )


def _finish(call: Call, group: DescribedGroup, *, wants_operations: bool) -> None:
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        group.group_state = _DEAD
        if call.version < _MESSAGE_SINCE:
            group.error_code = ErrorCode.NONE
    if call.version < _MESSAGE_SINCE:
        group.error_message = None
    if wants_operations and group.error_code == ErrorCode.NONE:
        group.authorized_operations = call.authorized_operations(Resource.GROUP, group.group_id)
