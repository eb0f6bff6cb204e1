"""OffsetFetch (9), versions 1 to 10: the positions that groups have committed.

Before version 8 it asks about one group; from version 10 on topics are named by their ids. Topics that are unknown by
their id, or that the client may not see, are answered here; the rest comes from the groups' coordinators.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.call import Call
from ottla.handlers.group_calls import allowed_on_group, caller_of
from ottla.handlers.later import Gathered, Later
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.security.authorizer import Operation

#: Before it there is no place for an error of the whole group.
_GROUP_ERROR_SINCE: Final = 2
_BATCHED_SINCE: Final = 8
_BY_ID: Final = 10
_NO_OFFSET: Final = -1


def handle(call: Call, request: OffsetFetchRequest) -> Later:
    answer = Later()
    groups = request.groups if call.version >= _BATCHED_SINCE else [_only_group(request)]

    def done(answered: list[OffsetFetchResponseGroup]) -> None:
        throttle_ms = call.throttle_ms()
        if call.version >= _BATCHED_SINCE:
            answer.set(OffsetFetchResponse(throttle_time_ms=throttle_ms, groups=answered))
        else:
            answer.set(_of_one_group(call, request, answered[0], throttle_ms))

    gathered = Gathered(len(groups), done)
    for index, group in enumerate(groups):
        _Fetch(call, group).run(gathered, index, require_stable=request.require_stable)
    return answer


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )


class _Fetch:
    """One group's part of the request."""

    __slots__ = ("_call", "_group", "_ids", "_refused", "_wants_all")

    def __init__(self, call: Call, group: OffsetFetchRequestGroup) -> None:
        self._call = call
        self._group = group
        self._wants_all = group.topics is None
        self._refused: list[OffsetFetchResponseTopics] = []
        #: Of the topics that were asked for by their ids.
        self._ids: dict[str, bytes] = {}

    def run(self, gathered: Gathered, index: int, *, require_stable: bool) -> None:
        call, group = self._call, self._group
        give = gathered.place(index)
        if not allowed_on_group(call, Operation.DESCRIBE, group.group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            give(OffsetFetchResponseGroup(group_id=group.group_id, error_code=error))
            return
        if group.topics is not None:
            group.topics = [topic for topic in group.topics if self._is_sound(topic)]

        def reply(response: OffsetFetchResponseGroup) -> None:
            give(self._finished(response))

        call.services.groups.offset_fetch(caller_of(call), group, require_stable, reply)

    def _is_sound(self, topic: OffsetFetchRequestTopics) -> bool:
        call = self._call
        if call.version >= _BY_ID:
            name = call.services.metadata.topic_name(topic.topic_id)
            if name is None:
                self._refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                return False
            topic.name = name
            self._ids[name] = topic.topic_id
        if not call.allowed_on_topic(Operation.DESCRIBE, topic.name):
            self._refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            return False
        return True

    def _finished(self, response: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        call = self._call
        if response.error_code != ErrorCode.NONE:
            return response
        topics = response.topics
        if self._wants_all and not call.services.authorizer.allows_all:
            topics = [topic for topic in topics if call.allowed_on_topic(Operation.DESCRIBE, topic.name)]
        if call.version >= _BY_ID:
            if self._wants_all:
                # What was deleted has no id any more, and cannot be told of.
                known = call.services.metadata.topics
                self._ids = {topic.name: known[topic.name].id for topic in topics if topic.name in known}
            topics = [topic for topic in topics if topic.name in self._ids]
            for topic in topics:
                topic.topic_id = self._ids[topic.name]
        response.topics = [*topics, *self._refused]
        return response


def _refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error
            )
            for index in topic.partition_indexes
        ],
    )


def _of_one_group(
    call: Call, request: OffsetFetchRequest, group: OffsetFetchResponseGroup, throttle_ms: int
) -> OffsetFetchResponse:
    """The older layout."""
    topics = group.topics
    if group.error_code != ErrorCode.NONE:
        topics = []
        if call.version < _GROUP_ERROR_SINCE:
            asked = _only_group(request).topics or ()
            topics = [_refused(topic, ErrorCode(group.error_code)) for topic in asked]
    return OffsetFetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
