"""ListGroups (16), versions 0 to 5: the groups that this broker coordinates, by state and by type."""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces


def handle(call: Call, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    response = yield from call.services.groups.list_groups(request)
    response.throttle_time_ms = call.throttle_ms()
    if not call.allowed_on_cluster(Operation.DESCRIBE):
        listed, response.groups = response.groups, []
        for piece in pieces(listed):
            response.groups += [group for group in piece if allowed_on_group(call, Operation.DESCRIBE, group.group_id)]
            yield
    return response
