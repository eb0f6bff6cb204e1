"""ConsumerGroupDescribe (69), versions 0 and 1: state and members of the new consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.groups.no_shard import NoShard
from ottla.groups.shard import GroupShard
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import (
    ANSWER_BYTES_MAX,
    TOO_LARGE,
    Refusals,
    SourceShards,
    allowed_on_group,
    serves_consumer_protocol,
    steps_of_name,
)
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.security.authorizer import Operation, Resource
from ottla.steps import PIECE, Steps, pieces

#: Ids, client, host and epochs.
_MEMBER_BYTES: Final = 128
#: The id, and lengths.
_TOPIC_BYTES: Final = 24
#: What groups are, or that there is none, is to be found again after a crash.
_KNOWN_FROM_RECORDS: Final = frozenset({ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND})

_HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."


def handle(call: Call, request: ConsumerGroupDescribeRequest) -> Steps[Later]:
    # A group that is named again has the same answer, which takes no memory a second time.
    known: dict[str, tuple[DescribedGroup, int, GroupShard | NoShard]] = {}
    groups: list[DescribedGroup] = []
    sources = SourceShards()
    room = ANSWER_BYTES_MAX
    for group_id in request.group_ids:
        if group_id not in known:
            shard = call.services.groups.shard_for_member(group_id)
            described = yield from _described(call, shard, group_id)
            group = yield from _finished(call, described, request.include_authorized_operations)
            known[group_id] = group, (yield from _size(group)), shard
            yield from steps_of_name(group_id)
        group, size, shard = known[group_id]
        if size > room:
            group = DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_LARGE)
        room -= min(size, room)
        sources.add(shard if group.error_code in _KNOWN_FROM_RECORDS else None)
        groups.append(group)
        if len(groups) % PIECE == 0:
            yield

    def response(refusals: Refusals) -> Steps[ConsumerGroupDescribeResponse]:
        for indexes in pieces(range(len(groups) if refusals else 0)):
            for index in indexes:
                if error := refusals.of(index):
                    groups[index] = DescribedGroup(group_id=groups[index].group_id, error_code=error)
            yield
        return ConsumerGroupDescribeResponse(throttle_time_ms=call.throttle_ms(), groups=groups)

    return sources.answered(response)


def _described(call: Call, shard: GroupShard | NoShard, group_id: str) -> Steps[DescribedGroup]:
    if not serves_consumer_protocol(call):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not allowed_on_group(call, Operation.DESCRIBE, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return (yield from shard.describe_consumer_group(group_id))


def _size(group: DescribedGroup) -> Steps[int]:
    size = len(group.group_id)
    for member in group.members:
        texts = (member.member_id, member.instance_id, member.rack_id, member.client_id, member.client_host)
        size += _MEMBER_BYTES + sum(len(text or "") for text in (*texts, member.subscribed_topic_regex))
        size += sum(len(name) for name in member.subscribed_topic_names)
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                size += _TOPIC_BYTES + len(topic.topic_name) + 4 * len(topic.partitions)
        yield
    return size


def _finished(call: Call, group: DescribedGroup, wants_operations: bool) -> Steps[DescribedGroup]:
    if group.error_code != ErrorCode.NONE:
        return group
    if not call.services.authorizer.allows_all:
        for topics in pieces(_topics(group)):
            if not all(call.allowed_on_topic(Operation.DESCRIBE, topic) for topic in set(topics)):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return DescribedGroup(group_id=group.group_id, error_code=error, error_message=_HIDDEN)
            yield
    if wants_operations:
        group.authorized_operations = call.authorized_operations(Resource.GROUP, group.group_id)
    return group


def _topics(group: DescribedGroup) -> Iterator[str]:
    """All topics that the description would name."""
    for member in group.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name
