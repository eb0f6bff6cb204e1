"""OffsetFetch (9), versions 1 to 10: the positions that groups have committed.

Before version 8 it asks about one group; from version 10 on topics are named by their ids. Topics that are unknown by
their id, or that the client may not see, are answered here; the rest comes from the groups' coordinators.
"""

from __future__ import annotations

from typing import Final

from ottla.groups.offsets.fetching import fetch_refused
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import Refusals, SourceShards, allowed_on_group, steps_of_name
from ottla.handlers.calls.later import Later
from ottla.handlers.offset_fetch_answer import GroupsAnswer
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
from ottla.steps import Steps, pieces, taken

#: Before it there is no place for an error of the whole group.
_GROUP_ERROR_SINCE: Final = 2
_BATCHED_SINCE: Final = 8
_BY_ID: Final = 10
_NO_OFFSET: Final = -1
#: In one answer, over all groups that were asked about; a group that would go beyond it is refused. Each takes some two
#: hundred bytes until the answer is written, and all of them some fifty milliseconds of a garbage collection.
PARTITIONS_ANSWERED_MAX: Final = 200_000


def handle(call: Call, request: OffsetFetchRequest) -> Steps[Later]:
    if call.version < _BATCHED_SINCE:
        return _of_one_group(call, request)
    return _of_groups(call, request)


def _of_groups(call: Call, request: OffsetFetchRequest) -> Steps[Later]:
    answer = GroupsAnswer(call, len(request.groups))
    sources = SourceShards()
    room = PARTITIONS_ANSWERED_MAX
    for piece in taken(request.groups):
        for group in piece:
            fetch = _Fetch(call, group)
            found = yield from fetch.run(room, require_stable=request.require_stable)
            room -= fetch.answered
            yield from answer.add(found)
            yield from _let_go(found)
            sources.add(fetch.shard if answer.last_error == ErrorCode.NONE else None)
            yield from steps_of_name(group.group_id)
    return sources.answered(answer.finished)


def _let_go(found: OffsetFetchResponseGroup) -> Steps[None]:
    """A hundred thousand objects are not freed in one piece."""
    for some in taken(found.topics):
        for topic in some:
            for number, _ in enumerate(taken(topic.partitions)):
                if number:
                    yield
        if found.topics:
            yield


class _Fetch:
    """One group's part of the request."""

    __slots__ = ("_call", "_group", "_ids", "_refused", "_wants_all", "answered", "shard")

    def __init__(self, call: Call, group: OffsetFetchRequestGroup) -> None:
        self._call = call
        self._group = group
        #: Which is asked.
        self.shard = call.services.groups.shard_for(group.group_id)
        self._wants_all = group.topics is None
        self._refused: list[OffsetFetchResponseTopics] = []
        #: Of the topics that were asked for by their ids.
        self._ids: dict[str, bytes] = {}
        #: Partitions.
        self.answered = 0

    def run(self, room: int, *, require_stable: bool) -> Steps[OffsetFetchResponseGroup]:
        """`room` is how many partitions may be answered."""
        call, group = self._call, self._group
        if not allowed_on_group(call, Operation.DESCRIBE, group.group_id):
            return fetch_refused(group.group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if group.topics is not None:
            asked, group.topics = group.topics, []
            for piece in taken(asked):
                self.answered += sum(len(topic.partition_indexes) for topic in piece)
                if self.answered > room:
                    return self._too_large()
                for topic in piece:
                    if (refused := self._refusal(topic)) is None:
                        group.topics.append(topic)
                    else:
                        self._refused.append((yield from _refused(topic, refused)))
                yield
        else:
            self.answered = self.shard.offset_count(group.group_id)
            if self.answered > room:
                return self._too_large()
        found = yield from self.shard.offset_fetch(group, require_stable)
        return (yield from self._finished(found))

    def _too_large(self) -> OffsetFetchResponseGroup:
        self.answered = 0
        return fetch_refused(self._group.group_id, ErrorCode.INVALID_REQUEST)

    def _refusal(self, topic: OffsetFetchRequestTopics) -> ErrorCode | None:
        call = self._call
        if call.version >= _BY_ID:
            name = call.services.metadata.topic_name(topic.topic_id)
            if name is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            topic.name = name
            self._ids[name] = topic.topic_id
        if not call.allowed_on_topic(Operation.DESCRIBE, topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return None

    def _finished(self, response: OffsetFetchResponseGroup) -> Steps[OffsetFetchResponseGroup]:
        if response.error_code != ErrorCode.NONE:
            return response
        found, response.topics = response.topics, []
        for piece in pieces(found):
            response.topics += [topic for topic in piece if self._is_shown(topic)]
            yield
        response.topics += self._refused
        return response

    def _is_shown(self, topic: OffsetFetchResponseTopics) -> bool:
        call = self._call
        if self._wants_all and not call.allowed_on_topic(Operation.DESCRIBE, topic.name):
            return False
        if call.version < _BY_ID:
            return True
        if self._wants_all:
            # What was deleted has no id any more, and cannot be named in the answer.
            known = call.services.metadata.topic(topic.name)
            topic_id: bytes | None = None if known is None else known.id
        else:
            topic_id = self._ids.get(topic.name)
        if topic_id is None:
            return False
        topic.topic_id = topic_id
        return True


def _refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> Steps[OffsetFetchResponseTopics]:
    partitions = []
    for piece in pieces(topic.partition_indexes):
        partitions += [
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error
            )
            for index in piece
        ]
        yield
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


# The older layout.


def _of_one_group(call: Call, request: OffsetFetchRequest) -> Steps[Later]:
    group = yield from _only_group(request)
    fetch = _Fetch(call, group)
    found = yield from fetch.run(PARTITIONS_ANSWERED_MAX, require_stable=request.require_stable)
    error = ErrorCode(found.error_code)
    topics: list[OffsetFetchResponseTopic] = []
    if not error:
        topics = yield from _in_older_layout(found.topics)
    elif call.version < _GROUP_ERROR_SINCE:
        topics = yield from _refused_one_by_one(group.topics or [], error)
    sources = SourceShards()
    sources.add(None if error else fetch.shard)

    def response(refusals: Refusals) -> Steps[OffsetFetchResponse]:
        shown, refused = topics, refusals.of(0)
        if refused and call.version < _GROUP_ERROR_SINCE:
            yield from _refuse_all(shown, refused)
        elif refused:
            shown = []
        return OffsetFetchResponse(throttle_time_ms=call.throttle_ms(), error_code=refused or error, topics=shown)

    return sources.answered(response)


def _only_group(request: OffsetFetchRequest) -> Steps[OffsetFetchRequestGroup]:
    """The topics are taken out of the request."""
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    topics: list[OffsetFetchRequestTopics] = []
    for piece in taken(request.topics):
        topics += [OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes) for each in piece]
        yield
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _in_older_layout(found: list[OffsetFetchResponseTopics]) -> Steps[list[OffsetFetchResponseTopic]]:
    topics: list[OffsetFetchResponseTopic] = []
    for some in taken(found):
        for topic in some:
            made = OffsetFetchResponseTopic(name=topic.name)
            topics.append(made)
            for piece in taken(topic.partitions):
                made.partitions += [
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in piece
                ]
                yield
        yield
    return topics


def _refused_one_by_one(
    asked: list[OffsetFetchRequestTopics], error: ErrorCode
) -> Steps[list[OffsetFetchResponseTopic]]:
    """Where there is no place for the error of the group each partition has it; what is too much is left out."""
    topics: list[OffsetFetchResponseTopic] = []
    room = PARTITIONS_ANSWERED_MAX
    for some in taken(asked):
        for topic in some:
            room -= len(topic.partition_indexes)
            if room < 0:
                return topics
            made = OffsetFetchResponseTopic(name=topic.name)
            topics.append(made)
            for piece in pieces(topic.partition_indexes):
                made.partitions += [
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error
                    )
                    for index in piece
                ]
                yield
        yield
    return topics


def _refuse_all(topics: list[OffsetFetchResponseTopic], error: ErrorCode) -> Steps[None]:
    for some in pieces(topics):
        for topic in some:
            for piece in pieces(topic.partitions):
                for partition in piece:
                    partition.committed_offset = _NO_OFFSET
                    partition.metadata = ""
                    partition.error_code = error
                yield
        yield
