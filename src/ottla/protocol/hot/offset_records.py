"""Keys and values of committed offsets, written and read by hand: each commit and each loaded record comes by here.

    key    kind i16 = 1, group, topic (i16 length and bytes each), partition i32
    value  version i16, offset i64, leader epoch i32 (3 and later), metadata, commit time i64, expiry i64 (1 only),
           in version 4: compact lengths, and the topic's id under tag 0

Written is what Kafka 4.3 writes: version 4, and 1 where a client of old asked for an expiry of its own. Readers raise
DecodeError. The generated codecs of the same layouts are their oracle in the tests.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from ottla.model import ZERO_TOPIC_ID
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.generated.offset_commit_value import OffsetCommitValue
from ottla.protocol.primitives import STRING_BYTES_MAX, put_uvarint

#: The first field of such a key: what a record of the offsets topic is about.
OFFSET_KIND: Final = 1
NO_EXPIRY: Final = -1
_MOMENT_MS_MAX: Final = 2**63 - 1

_pack_lengths: Final = Struct(">hh").pack
_pack_length: Final = Struct(">h").pack
_pack_partition: Final = Struct(">i").pack
_unpack_lengths: Final = Struct(">hh").unpack_from
_unpack_length: Final = Struct(">h").unpack_from
_unpack_partition: Final = Struct(">i").unpack_from
_pack_v4: Final = Struct(">hqi").pack
_pack_plain_v4: Final = Struct(">hqibqb").pack
_pack_v1: Final = Struct(">hqh").pack
_pack_times: Final = Struct(">qq").pack
_pack_time: Final = Struct(">q").pack
_unpack_version: Final = Struct(">h").unpack_from
#: A value of version 4 with empty metadata: by far the most.
_unpack_plain_v4: Final = Struct(">hqiBqB").unpack_from
_PLAIN_V4_BYTES: Final = 24
_PLAIN_V4_WITH_ID_BYTES: Final = 24 + 2 + 16
#: Where the offset stands in a value of any version.
_OFFSET_AT: Final = 2
_NUMBER_BYTES: Final = 8
#: One tagged field: number 0, sixteen bytes.
_ID_TAG: Final = b"\x01\x00\x10"


class OffsetRecord(NamedTuple):
    offset: int
    #: -1 where none was given.
    leader_epoch: int
    metadata: str
    commit_ms: int
    #: NO_EXPIRY, unless the client that committed it chose a time.
    expire_ms: int
    #: Zeros where the topic's id was not known.
    topic_id: bytes


class OffsetKey(NamedTuple):
    group_id: str
    topic: str
    partition: int


def group_prefix(group_id: str) -> bytes:
    """How every offset key of the group begins. EncodeError if its name is longer than a string may be."""
    raw = group_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise EncodeError(f"a group's name of {len(raw)} bytes is longer than {STRING_BYTES_MAX}")
    return _pack_lengths(OFFSET_KIND, len(raw)) + raw


def topic_prefix(group: bytes, topic: str) -> bytes:
    raw = topic.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise EncodeError(f"a topic's name of {len(raw)} bytes is longer than {STRING_BYTES_MAX}")
    return group + _pack_length(len(raw)) + raw


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return topic_prefix(group_prefix(group_id), topic) + _pack_partition(partition)


def read_offset_key(key: bytes) -> OffsetKey:
    try:
        group_end = 4 + _unpack_lengths(key)[1]
        topic_at = group_end + 2
        topic_end = topic_at + _unpack_length(key, group_end)[0]
        (partition,) = _unpack_partition(key, topic_end)
        if group_end < 4 or topic_end < topic_at or topic_end + 4 != len(key):
            raise DecodeError("the lengths in an offset's key are not those of its parts")
        return OffsetKey(str(key[4:group_end], "utf-8"), str(key[topic_at:topic_end], "utf-8"), partition)
    except (struct_error, UnicodeDecodeError) as fault:
        raise DecodeError(f"no key of an offset: {fault}") from None


def offset_value(
    offset: int, leader_epoch: int, metadata: str, commit_ms: int, expire_ms: int, topic_id: bytes
) -> bytes:
    if expire_ms != NO_EXPIRY:
        raw = metadata.encode()
        # A client may ask for any 64 bits of milliseconds from now on.
        return _pack_v1(1, offset, len(raw)) + raw + _pack_times(commit_ms, min(expire_ms, _MOMENT_MS_MAX))
    if metadata:
        out = bytearray(_pack_v4(4, offset, leader_epoch))
        raw = metadata.encode()
        put_uvarint(out, len(raw) + 1)
        out += raw
        out += _pack_time(commit_ms)
        if topic_id == ZERO_TOPIC_ID:
            out.append(0)
        else:
            out += _ID_TAG
            out += topic_id
        return bytes(out)
    if topic_id == ZERO_TOPIC_ID:
        return _pack_plain_v4(4, offset, leader_epoch, 1, commit_ms, 0)
    return _pack_plain_v4(4, offset, leader_epoch, 1, commit_ms, 1) + b"\x00\x10" + topic_id


def offset_value_parts(leader_epoch: int, metadata: str, topic_id: bytes) -> tuple[bytes, bytes, bytes]:
    """What stands before the offset, before the commit's time and behind it, in a value that expires as all do.

    Offset and time take eight bytes each, as on the wire.
    """
    value = offset_value(0, leader_epoch, metadata, 0, NO_EXPIRY, topic_id)
    tail = value[-1:] if topic_id == ZERO_TOPIC_ID else value[-len(_ID_TAG) - len(topic_id) :]
    time_at = len(value) - len(tail) - _NUMBER_BYTES
    return value[:_OFFSET_AT], value[_OFFSET_AT + _NUMBER_BYTES : time_at], tail


def read_offset_value(value: bytes) -> OffsetRecord:
    size = len(value)
    if size in {_PLAIN_V4_BYTES, _PLAIN_V4_WITH_ID_BYTES}:
        version, offset, epoch, length, commit_ms, tags = _unpack_plain_v4(value)
        if version == 4 and length == 1:
            if not tags and size == _PLAIN_V4_BYTES:
                return OffsetRecord(offset, epoch, "", commit_ms, NO_EXPIRY, ZERO_TOPIC_ID)
            if tags == 1 and value[24:26] == b"\x00\x10" and size == _PLAIN_V4_WITH_ID_BYTES:
                return OffsetRecord(offset, epoch, "", commit_ms, NO_EXPIRY, value[26:])
    return _read_any(value)


def check_offset_value(value: bytes) -> None:
    """DecodeError where `read_offset_value` would raise it, in a third of the time."""
    if len(value) == _PLAIN_V4_WITH_ID_BYTES and value[0:2] == b"\0\4" and value[14] == 1 and value[23:26] == _ID_TAG:
        return
    read_offset_value(value)


def _read_any(value: bytes) -> OffsetRecord:
    if len(value) < 2:
        raise DecodeError(f"a value of {len(value)} bytes")
    version = _unpack_version(value)[0]
    stored, end = OffsetCommitValue.decode(value, version, 2)
    if end != len(value):
        raise DecodeError(f"{len(value) - end} bytes follow the value of an offset")
    return OffsetRecord(
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.commit_timestamp,
        stored.expire_timestamp,
        stored.topic_id,
    )
