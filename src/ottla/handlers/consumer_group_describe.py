"""ConsumerGroupDescribe (69), versions 0 and 1: state and members of the new consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.handlers.call import Call
from ottla.handlers.group_calls import allowed_on_group, caller_of, serves_consumer_protocol
from ottla.handlers.later import Gathered, Later
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.security.authorizer import Operation, Resource

_HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."


def handle(call: Call, request: ConsumerGroupDescribeRequest) -> Later:
    answer = Later()

    def done(groups: list[DescribedGroup]) -> None:
        described = [_finished(call, group, request.include_authorized_operations) for group in groups]
        answer.set(ConsumerGroupDescribeResponse(throttle_time_ms=call.throttle_ms(), groups=described))

    gathered = Gathered(len(request.group_ids), done)
    served = serves_consumer_protocol(call)
    caller = caller_of(call)
    for index, group_id in enumerate(request.group_ids):
        give = gathered.place(index)
        if not served:
            give(DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION))
        elif not allowed_on_group(call, Operation.DESCRIBE, group_id):
            give(DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        else:
            call.services.groups.describe_consumer_group(caller, group_id, give)
    return answer


def _finished(call: Call, group: DescribedGroup, wants_operations: bool) -> DescribedGroup:
    if group.error_code != ErrorCode.NONE:
        return group
    if not call.services.authorizer.allows_all and not all(
        call.allowed_on_topic(Operation.DESCRIBE, topic) for topic in set(_topics(group))
    ):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DescribedGroup(group_id=group.group_id, error_code=error, error_message=_HIDDEN)
    if wants_operations:
        group.authorized_operations = call.authorized_operations(Resource.GROUP, group.group_id)
    return group


def _topics(group: DescribedGroup) -> Iterator[str]:
    """All topics that the description would tell of."""
    for member in group.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name
