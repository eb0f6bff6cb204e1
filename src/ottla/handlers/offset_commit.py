"""OffsetCommit (8), versions 2 to 10: stores a group's positions. From version 10 on topics are named by their ids.

Topics and partitions that do not exist, or that the client may not read, are answered here; the rest goes on to the
group's coordinator.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, groupby
from typing import Final

from ottla.groups.offsets.committing import ALL_COMMITTED, committed
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.fields import CORRELATION_AT, CORRELATION_END, INT32
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.header import encode_response
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, at_once, pieces, taken

_KEY: Final = OffsetCommitRequest.API_KEY
#: From this version on topics are named by their ids.
BY_ID: Final = 10
_pack_correlation: Final = INT32.pack

#: Topics and partitions of a request that is served at once: about a hundred microseconds. They are fewer than a piece,
#: as `commit_few` wants them.
_AT_ONCE_MAX: Final = PIECE - 1
#: Answers to requests that name more partitions are made each time.
_REMEMBERED_PARTITIONS_MAX: Final = 32

#: (topic, partition) -> why it is not passed on; None for the partition: the whole topic.
_Refusals = list[OffsetCommitResponseTopic]


def handle(
    call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | Later | Steps[OffsetCommitResponse | Later]:
    """In steps where it is long; most commits name a few partitions, and are answered at once."""
    if not is_short(request):
        return _handle(call, request, is_long=True)
    if is_all_plain(call, request):
        return _commit_all(call, request)
    return at_once(_handle(call, request, is_long=False))


def is_short(request: OffsetCommitRequest) -> bool:
    """Whether it is served without steps."""
    count = len(request.topics)
    for topic in request.topics[:_AT_ONCE_MAX]:
        count += len(topic.partitions)
    return count <= _AT_ONCE_MAX


def is_all_plain(call: Call, request: OffsetCommitRequest) -> bool:
    """Whether nothing of a short request is refused here. Topics that are given by their ids get their names."""
    if not request.topics or not allowed_on_group(call, Operation.READ, request.group_id):
        return False
    for topic in request.topics:  # noqa: SIM110 - each commit comes by here
        if not _is_plain(call, topic):
            return False
    return True


def _commit_all(call: Call, request: OffsetCommitRequest) -> Later:
    """Nothing of it is refused here."""
    answer = Later()

    def reply(response: OffsetCommitResponse) -> None:
        if response is ALL_COMMITTED and not call.throttle_ms():
            answer.set(_all_committed(call, request))
        else:
            answer.set(at_once(_answered(call, request, response, [], is_long=False)))

    call.services.groups.shard_for(request.group_id).commit_few(caller_of(call), request, reply)
    return answer


def _handle(call: Call, request: OffsetCommitRequest, *, is_long: bool) -> Steps[OffsetCommitResponse | Later]:
    refused: _Refusals = []
    if not allowed_on_group(call, Operation.READ, request.group_id):
        for piece in taken(request.topics):
            for topic in piece:
                refused.append((yield from _refused(topic, ErrorCode.GROUP_AUTHORIZATION_FAILED)))
            if request.topics:
                yield
        return OffsetCommitResponse(throttle_time_ms=call.throttle_ms(), topics=refused)
    asked, request.topics = request.topics, []
    for piece in taken(asked):
        for topic in piece:
            if _is_plain(call, topic) or (yield from _is_sound(call, topic, refused)):
                request.topics.append(topic)
        if asked:
            yield
    if not request.topics:
        return OffsetCommitResponse(throttle_time_ms=call.throttle_ms(), topics=(yield from _joined(refused, [])))
    answer = Later()

    def reply(response: OffsetCommitResponse) -> None:
        steps = _answered(call, request, response, refused, is_long=is_long)
        answer.set(steps if is_long else at_once(steps))

    yield from call.services.groups.shard_for(request.group_id).offset_commit(caller_of(call), request, reply)
    return answer


def _answered(
    call: Call, request: OffsetCommitRequest, response: OffsetCommitResponse, refused: _Refusals, *, is_long: bool
) -> Steps[OffsetCommitResponse | bytes]:
    """The whole answer, where the coordinator gives this one for what was left of the request."""
    if response is ALL_COMMITTED:
        if not is_long and not refused and not call.throttle_ms():
            return _all_committed(call, request)
        response = yield from committed(request)
    response.throttle_time_ms = call.throttle_ms()
    if call.version >= BY_ID:
        ids: dict[str, bytes] = {}
        for asked in pieces(request.topics):
            ids.update({topic.name: topic.topic_id for topic in asked})
            yield
        for topics in pieces(response.topics):
            for topic in topics:
                topic.topic_id = ids[topic.name]
            yield
    if refused:
        response.topics = yield from _joined(refused, response.topics)
    return response


def late_answer(call: Call, request: OffsetCommitRequest, response: OffsetCommitResponse) -> bytes:
    """The whole answer to a short request of which nothing is refused here, where the coordinator gives this one."""
    answer = at_once(_answered(call, request, response, [], is_long=False))
    return answer if isinstance(answer, bytes) else encode_response(_KEY, call.version, call.correlation_id, answer)


def _all_committed(call: Call, request: OffsetCommitRequest) -> bytes:
    """The whole answer."""
    before, behind = committed_answer(call.version, request)
    return before + _pack_correlation(call.correlation_id) + behind


def committed_answer(version: int, request: OffsetCommitRequest) -> tuple[bytes, bytes]:
    """What stands before the correlation id, and what behind it, where all of a short request is committed.

    A consumer commits the same partitions over and over, and its answer is the same each time.
    """
    asked = tuple(
        [
            (topic.name, topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ]
    )
    if len(asked) > _REMEMBERED_PARTITIONS_MAX:
        return _around_correlation(encode_response(_KEY, version, 0, at_once(committed(request))))
    return _answer_to(version, asked)


@lru_cache(maxsize=1_000)
def _answer_to(version: int, asked: tuple[tuple[str, bytes, int], ...]) -> tuple[bytes, bytes]:
    topics = [
        OffsetCommitResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=[OffsetCommitResponsePartition(partition_index=index) for _, _, index in partitions],
        )
        for (name, topic_id), partitions in groupby(asked, key=lambda place: place[:2])
    ]
    return _around_correlation(encode_response(_KEY, version, 0, OffsetCommitResponse(topics=topics)))


def _around_correlation(frame: bytes) -> tuple[bytes, bytes]:
    return frame[:CORRELATION_AT], frame[CORRELATION_END:]


def _is_plain(call: Call, topic: OffsetCommitRequestTopic) -> bool:
    """Whether all of it is left to commit, where a few looks decide it: for nearly every commit."""
    if len(topic.partitions) > PIECE:
        return False
    metadata = call.services.metadata
    if call.version >= BY_ID:
        known = metadata.topic_by_id(topic.topic_id)
        topic.name = "" if known is None else known.name
    else:
        known = metadata.topic(topic.name)
    if known is None or not call.allowed_on_topic(Operation.READ, topic.name):
        return False
    for partition in topic.partitions:  # noqa: SIM110 - each commit comes by here
        if known.partition(partition.partition_index) is None:
            return False
    return True


def _is_sound(call: Call, topic: OffsetCommitRequestTopic, refused: _Refusals) -> Steps[bool]:
    """Whether anything of the topic is left to commit; what is not is answered in `refused`."""
    metadata = call.services.metadata
    if call.version >= BY_ID:
        known = metadata.topic_by_id(topic.topic_id)
        if known is None:
            refused.append((yield from _refused(topic, ErrorCode.UNKNOWN_TOPIC_ID)))
            return False
        topic.name = known.name
    else:
        known = metadata.topic(topic.name)
    if not call.allowed_on_topic(Operation.READ, topic.name):
        refused.append((yield from _refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
        return False
    if known is None:
        refused.append((yield from _refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        return False
    missing: list[OffsetCommitRequestPartition] = []
    asked, topic.partitions = topic.partitions, []
    for number, piece in enumerate(taken(asked)):
        if number:
            yield
        for partition in piece:
            there_is = known.partition(partition.partition_index) is not None
            (topic.partitions if there_is else missing).append(partition)
    if missing:
        unknown = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
        refused.append((yield from _refused(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
    return bool(topic.partitions) or not missing


def _refused(topic: OffsetCommitRequestTopic, error: ErrorCode) -> Steps[OffsetCommitResponseTopic]:
    """The topic's partitions are taken out of it."""
    answered: list[OffsetCommitResponsePartition] = []
    for piece in taken(topic.partitions):
        if answered:
            yield
        answered += [
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in piece
        ]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answered)


def _joined(refused: _Refusals, answered: list[OffsetCommitResponseTopic]) -> Steps[list[OffsetCommitResponseTopic]]:
    """One entry a topic, though the request names it twice, or its partitions were answered in two places."""
    topics: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}
    for piece in chain(pieces(refused), pieces(answered)):
        for topic in piece:
            known = topics.setdefault((topic.name, topic.topic_id), topic)
            if known is not topic:
                known.partitions += topic.partitions
        yield
    return list(topics.values())
