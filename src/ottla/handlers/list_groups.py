"""ListGroups (16), versions 0 to 5: the groups that this broker coordinates, by state and by type."""

from __future__ import annotations

from ottla.handlers.call import Call
from ottla.handlers.group_calls import allowed_on_group, caller_of
from ottla.handlers.later import Later
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.security.authorizer import Operation


def handle(call: Call, request: ListGroupsRequest) -> Later:
    answer = Later()

    def reply(response: ListGroupsResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        if not call.allowed_on_cluster(Operation.DESCRIBE):
            response.groups = [
                group for group in response.groups if allowed_on_group(call, Operation.DESCRIBE, group.group_id)
            ]
        answer.set(response)

    call.services.groups.list_groups(caller_of(call), request, reply)
    return answer
