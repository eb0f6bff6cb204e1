"""A commit that comes again and again with other offsets: what stays the same of it is kept, and all else asked anew.

The same are the keys of its records and, but for offset and time, their values. Whether the member may commit is asked
each time, and so is whatever else of the group, the settings and the journal may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.coordinators.caller import Now
from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.offsets.committing import commit_refused, heard_from, metadata_length
from ottla.groups.state import Done, ShardState
from ottla.model import ErrorCode
from ottla.protocol.fields import INT32, INT64
from ottla.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.hot.offset_records import group_prefix, offset_value_parts, topic_prefix
from ottla.steps import at_once

_pack_partition: Final = INT32.pack
_pack_time: Final = INT64.pack
_new_record: Final = tuple.__new__


class RepeatedCommit:
    """One of the few partitions that `commit_few` takes, whose offsets expire as all do."""

    __slots__ = ("_metadata_length", "_parts", "_version", "bytes", "request", "state")

    def __init__(self, state: ShardState, request: OffsetCommitRequest, version: int) -> None:
        """EncodeError where a name is too long."""
        self.state = state
        #: The offsets in it are those of the first time, which nobody looks at.
        self.request = request
        self._version = version
        #: The longest, which is compared with the setting of the moment.
        self._metadata_length = 0
        #: For each partition its key; what stands around offset and time in its value, mostly the same for all; topic
        #: and index.
        self._parts: list[tuple[bytes, tuple[bytes, bytes, bytes], str, int]] = []
        prefix = group_prefix(request.group_id)
        around: dict[tuple[int, str, bytes], tuple[bytes, bytes, bytes]] = {}
        for topic in request.topics:
            key = topic_prefix(prefix, topic.name)
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                self._metadata_length = max(self._metadata_length, metadata_length(metadata))
                fields = (partition.committed_leader_epoch, metadata, topic.topic_id)
                parts = around.get(fields) or around.setdefault(fields, offset_value_parts(*fields))
                index = partition.partition_index
                self._parts.append((key + _pack_partition(index), parts, topic.name, index))
        #: Of all keys and values.
        self.bytes = sum(len(key) + sum(map(len, parts)) for key, parts, _, _ in self._parts)

    def write(self, offsets: Sequence[bytes], now: Now, written: Done) -> bool:
        """Commits these, eight bytes each, in the order of the request's partitions, and calls `written` when they are.

        False where it is not to be done in this way, or not at all: then nothing has happened, and the commit of the
        whole request says why.
        """
        state, request = self.state, self.request
        if self._metadata_length and self._metadata_length > state.settings().offsets.metadata_bytes_max:
            return False
        group_id, member_id, generation = request.group_id, request.member_id, request.generation_id_or_member_epoch
        group = state.groups.get(group_id)
        if group is None:
            if generation >= 0:
                return False
        elif group.check_commit(member_id, request.group_instance_id, generation, self._version, request.topics):
            return False
        time = _pack_time(now.wall_ms)
        records: list[JournalRecord] = [
            _new_record(JournalRecord, (key, head + offset + middle + time + tail))
            for (key, (head, middle, tail), _, _), offset in zip(self._parts, offsets, strict=True)
        ]
        if state.write(records, now, written):
            return False
        if member_id:
            heard_from(state, group_id, member_id, now)
        if group is None:
            # It keeps offsets, and has no members: what Kafka calls a simple group.
            state.groups[group_id] = ClassicGroup(group_id, now.wall_ms)
        put = state.offsets.put
        for (_, _, topic, partition), (_, value) in zip(self._parts, records, strict=True):
            assert value is not None
            put(group_id, topic, partition, value)
        state.counts.commits += len(records)
        return True

    def refused(self, error: ErrorCode) -> OffsetCommitResponse:
        """The answer where what was written is lost, or nobody knows what became of it."""
        return at_once(commit_refused(self.request, error))
