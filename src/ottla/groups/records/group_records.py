"""Key and value of a classic group's record."""

from __future__ import annotations

from typing import Final

from ottla.groups.records.kinds import GROUP, BadRecord
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.generated.group_metadata_key import GroupMetadataKey
from ottla.protocol.generated.group_metadata_value import GroupMetadataValue
from ottla.protocol.header import PLAIN_FRAME_BYTES_MAX
from ottla.protocol.stepping import DecodingAllowance
from ottla.steps import PIECE, Steps

#: What Kafka 4.3 writes: with static members and the time of the last change, without tagged fields.
GROUP_VALUE_VERSION: Final = 3

_KIND: Final = INT16.pack(GROUP)
_VERSION: Final = INT16.pack(GROUP_VALUE_VERSION)
_unpack_version: Final = INT16.unpack_from


def group_key(group_id: str) -> bytes:
    """EncodeError if the name is longer than a string may be."""
    return _KIND + GroupMetadataKey(group=group_id).encode(GROUP)


def read_group_key(key: bytes) -> str:
    try:
        read, end = GroupMetadataKey.decode(key, GROUP, 2)
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    if end != len(key):
        raise BadRecord(f"{len(key) - end} bytes follow the key of a group")
    return read.group


def group_value(value: GroupMetadataValue) -> Steps[bytes]:
    """In one piece where it is small."""
    out = bytearray(_VERSION)
    if len(value.members) < PIECE:
        value.encode_into(out, GROUP_VALUE_VERSION)
    else:
        yield from value.encode_steps(out, GROUP_VALUE_VERSION)
    return bytes(out)


def read_group_value(value: bytes) -> Steps[GroupMetadataValue]:
    """In one piece where it is small."""
    if len(value) < 2:
        raise BadRecord(f"a value of {len(value)} bytes")
    version = _unpack_version(value)[0]
    try:
        if len(value) <= PLAIN_FRAME_BYTES_MAX:
            read, end = GroupMetadataValue.decode(value, version, 2)
        else:
            read, end = yield from GroupMetadataValue.decode_steps(value, version, 2, DecodingAllowance())
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    if end != len(value):
        raise BadRecord(f"{len(value) - end} bytes follow the value of a group")
    return read
