"""What is not done for each recognised commit: its memo, for which the request is decoded once more and asked what the
ordinary way asks, and the answers that no memo has ready.
"""

from __future__ import annotations

from ottla.groups.offsets.committing import ALL_COMMITTED
from ottla.handlers.calls.call import Call, Services
from ottla.handlers.calls.peer import Peer
from ottla.handlers.commit.memo import RECORDS_BYTES_MAX, CommitMemo
from ottla.handlers.offset_commit import BY_ID, committed_answer, is_all_plain, is_short, late_answer
from ottla.handlers.routes import OFFSET_COMMIT, ROUTES
from ottla.model import ErrorCode
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.generated.offset_commit import OffsetCommitRequest
from ottla.protocol.header import decode_request_header
from ottla.protocol.hot.commit import CommitShape

_ROUTE = ROUTES[OFFSET_COMMIT]


def grown(services: Services, peer: Peer, frame: bytes, version: int, shape: CommitShape) -> CommitMemo | None:
    """A memo of the request in this frame; None where it is of a kind that is not recognised.

    That is one that is long, of which something is refused, whose offsets have an expiry of their own, or that is
    counted; and one whose group is not coordinated here, now.
    """
    if not _ROUTE.version_min <= version <= _ROUTE.version_max:
        return None
    try:
        header, position = decode_request_header(frame, 0)
        request, _ = OffsetCommitRequest.decode(frame, version, position)
    except DecodeError:
        return None
    if (
        request.retention_time_ms != -1
        or not is_short(request)
        or not services.policy.is_free(peer.principal, header.client_id)
    ):
        return None
    # Numbers first: what is asked under them may change only together with them.
    policy, generation = services.policy.number, services.metadata.generation
    if not is_all_plain(_call(services, peer, version, header.correlation_id, header.client_id), request):
        return None
    try:
        commit = services.groups.shard_for(request.group_id).repeated_commit(request, version)
    except EncodeError:
        return None
    if commit is None or commit.bytes > RECORDS_BYTES_MAX:
        return None
    answer = committed_answer(version, request)
    return CommitMemo(version, shape, commit, answer, header.client_id, policy, generation)


def answer_of(services: Services, peer: Peer, memo: CommitMemo, correlation: int, error: ErrorCode) -> bytes:
    """The answer where the commit has failed, or the client may be held back by now."""
    commit = memo.commit
    response = commit.refused(error) if error else ALL_COMMITTED
    return late_answer(_call(services, peer, memo.version, correlation, memo.client_id), commit.request, response)


def _call(services: Services, peer: Peer, version: int, correlation: int, client_id: str | None) -> Call:
    now_ms = services.round.wall_ms
    return Call(services, version, correlation, client_id, peer.principal, peer.host, peer.listener_name, now_ms, peer)


def holds(services: Services, memo: CommitMemo) -> bool:
    """Whether a memo is good under the present metadata too: all that it names is there, and its group where it was."""
    metadata = services.metadata
    request, by_id = memo.commit.request, memo.version >= BY_ID
    for topic in request.topics:
        known = metadata.topic_by_id(topic.topic_id) if by_id else metadata.topic(topic.name)
        if known is None or any(known.partition(partition.partition_index) is None for partition in topic.partitions):
            return False
    if not services.groups.shard_for(request.group_id).takes(memo.commit):
        return False
    memo.seen_generation = metadata.generation
    return True
