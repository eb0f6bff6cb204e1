"""An OffsetCommit that is sent again and again with other offsets: where these stand, and what stands around them."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT32, INT64, REQUEST_FIELDS_BYTES
from ottla.protocol.header import request_body_start
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    skip_tags,
)

#: The first versions with a leader epoch, an instance id, compact lengths and tagged fields, and topics by id; and the
#: first without a time after which the offsets expire.
_LEADER_EPOCH: Final = 6
_INSTANCE: Final = 7
_FLEXIBLE: Final = 8
_BY_ID: Final = 10
_NO_RETENTION: Final = 5

_TOPIC_ID_BYTES: Final = 16
#: A partition's and a topic's least, as the generated codec has them.
_PARTITION_BYTES_MIN: Final = 14
_TOPIC_BYTES_MIN: Final = 3


class CommitShape:
    """All of a request but its correlation id and its offsets."""

    __slots__ = ("_constants", "_unpack", "size")

    def __init__(self, frame: bytes, places: list[int]) -> None:
        at, fields = REQUEST_FIELDS_BYTES, [">"]
        for place in places:
            fields.append(f"{place - at}s{INT64.size}s")
            at = place + INT64.size
        fields.append(f"{len(frame) - at}s")
        self.size = len(frame)
        self._unpack = Struct("".join(fields)).unpack_from
        #: What stands before the first offset, between two of them, and behind the last.
        self._constants = self._unpack(frame, REQUEST_FIELDS_BYTES)[::2]

    def offsets(self, data: bytes | bytearray, start: int) -> tuple[bytes, ...] | None:
        """The offsets of a frame of this size, as they stand in it; None where anything else differs, but for the
        correlation id, and for key and version, which are the caller's."""
        fields = self._unpack(data, start + REQUEST_FIELDS_BYTES)
        return fields[1::2] if fields[::2] == self._constants else None


def shape_of(frame: bytes, version: int) -> CommitShape | None:
    """None where the frame cannot be read, or has no offsets."""
    try:
        places = _offset_places(frame, version)
    except (*DECODE_FAULTS, DecodeError):
        return None
    return CommitShape(frame, places) if places else None


def _offset_places(frame: bytes, version: int) -> list[int]:
    """Where the offsets stand, in the order of the partitions."""
    limit, is_flexible = len(frame), version >= _FLEXIBLE
    read, count_of = (read_compact_string, read_compact_count) if is_flexible else (read_string, read_count)
    read_nullable = read_compact_nullable_string if is_flexible else read_nullable_string
    _, pos = read(frame, request_body_start(frame), limit)
    _, pos = read(frame, pos + INT32.size, limit)
    if version >= _INSTANCE:
        _, pos = read_nullable(frame, pos, limit)
    if version < _NO_RETENTION:
        pos += INT64.size
    topics, pos = count_of(frame, pos, limit, _TOPIC_BYTES_MIN)
    places = []
    for _ in range(topics):
        pos = pos + _TOPIC_ID_BYTES if version >= _BY_ID else read(frame, pos, limit)[1]
        partitions, pos = count_of(frame, pos, limit, _PARTITION_BYTES_MIN)
        for _ in range(partitions):
            pos += INT32.size
            places.append(pos)
            pos += INT64.size + (INT32.size if version >= _LEADER_EPOCH else 0)
            _, pos = read_nullable(frame, pos, limit)
            if is_flexible:
                pos = skip_tags(frame, pos, limit)
        if is_flexible:
            pos = skip_tags(frame, pos, limit)
    return places
