"""OffsetFetch: what a group has committed, and whether a transaction may still change it.

What is read here may not be committed yet: a handler that answers with it waits until all that was written before is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.groups.state import ShardState
from ottla.model import ZERO_TOPIC_ID, ErrorCode
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.protocol.hot.offset_records import read_offset_value
from ottla.steps import PIECE, Steps, pieces, taken

NO_OFFSET: Final = -1
#: Of one group's records for one answer; what would be more is refused. They have up to 4 KB of metadata each, by
#: default, and a hundred thousand of those with the longest would take 400 MB.
READ_BYTES_MAX: Final = 32 * 1024 * 1024


def fetch_refused(group_id: str, error: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group_id, error_code=error)


def fetch_offsets(
    state: ShardState, request: OffsetFetchRequestGroup, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    group = state.groups.get(request.group_id)
    if group is not None and (error := group.check_fetch(request.member_id, request.member_epoch)):
        return fetch_refused(request.group_id, error)
    look_up = _LookUp(state, request.group_id, require_stable=require_stable)
    topics = []
    for number, (name, topic_id, partitions) in enumerate(_asked(state, request)):
        topics.append((yield from look_up.topic(name, topic_id, partitions)))
        if look_up.is_full:
            return fetch_refused(request.group_id, ErrorCode.INVALID_REQUEST)
        if number % PIECE == PIECE - 1:
            yield
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _asked(state: ShardState, request: OffsetFetchRequestGroup) -> Iterator[tuple[str, bytes, list[int]]]:
    """Names, ids and partitions; what is said in the request is taken out of it."""
    if request.topics is None:
        # As it is now: others may commit, or delete, before all is looked up.
        kept = state.offsets.of_group(request.group_id)
        return iter([(name, ZERO_TOPIC_ID, list(partitions)) for name, partitions in kept.items()])
    return ((topic.name, topic.topic_id, topic.partition_indexes) for some in taken(request.topics) for topic in some)


class _LookUp:
    __slots__ = ("_doubtful", "_group_id", "_left", "_offsets", "_require_stable", "_view")

    def __init__(self, state: ShardState, group_id: str, *, require_stable: bool) -> None:
        self._offsets = state.offsets
        self._group_id = group_id
        self._view = state.offsets.view(group_id)
        self._require_stable = require_stable
        self._doubtful = require_stable and state.offsets.has_open(group_id)
        #: Bytes of records.
        self._left = READ_BYTES_MAX

    @property
    def is_full(self) -> bool:
        return self._left < 0

    def topic(self, name: str, topic_id: bytes, partitions: list[int]) -> Steps[OffsetFetchResponseTopics]:
        """A partition that is asked for again has the same answer, which takes no memory a second time."""
        if len(partitions) <= PIECE:
            found = [self._partition(name, topic_id, partition) for partition in partitions]
        else:
            found = []
            known: dict[int, OffsetFetchResponsePartitions] = {}
            for piece in pieces(partitions):
                for partition in piece:
                    if partition not in known:
                        known[partition] = self._partition(name, topic_id, partition)
                    found.append(known[partition])
                if self.is_full:
                    break
                yield
        return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=found)

    def _partition(self, topic: str, topic_id: bytes, partition: int) -> OffsetFetchResponsePartitions:
        nothing = OffsetFetchResponsePartitions(partition_index=partition, committed_offset=NO_OFFSET)
        change = self._view.change_of(topic, partition)
        if (change is not None and self._require_stable) or (
            self._doubtful and self._offsets.is_open(self._group_id, topic, partition)
        ):
            nothing.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            return nothing
        now = self._offsets.get(self._group_id, topic, partition)
        value = now if change is None else change[topic, partition]
        if value is None:
            return nothing
        self._left -= len(value)
        stored = read_offset_value(value)
        if ZERO_TOPIC_ID not in {stored.topic_id, topic_id} and stored.topic_id != topic_id:
            return nothing  # It was committed in another topic of that name, which was deleted since.
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=stored.offset,
            committed_leader_epoch=stored.leader_epoch,
            metadata=stored.metadata,
        )
