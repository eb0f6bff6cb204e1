"""A broker asks the controller to move its leaderships away (Kafka 3.9, ZooKeeper mode).

Made from schemas/controlled_shutdown.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from

class ControlledShutdownRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "unknown_tags",)
    API_KEY = 7
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 3

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(ControlledShutdownRequest, version)
        try:
            _write_controlled_shutdown_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ControlledShutdownRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ControlledShutdownRequest, int]:
        if not 0 <= version <= 3:
            raise undecodable(ControlledShutdownRequest, version)
        try:
            return _read_controlled_shutdown_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ControlledShutdownRequest, version, fault) from fault


class RemainingPartition(Structure):
    __slots__ = ("topic_name", "partition_index", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags


class ControlledShutdownResponse(Message):
    __slots__ = ("error_code", "remaining_partitions", "unknown_tags",)
    API_KEY = 7
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        remaining_partitions: list[RemainingPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.remaining_partitions = [] if remaining_partitions is EMPTY_LIST else remaining_partitions
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(ControlledShutdownResponse, version)
        try:
            _write_controlled_shutdown_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ControlledShutdownResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ControlledShutdownResponse, int]:
        if not 0 <= version <= 3:
            raise undecodable(ControlledShutdownResponse, version)
        try:
            return _read_controlled_shutdown_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ControlledShutdownResponse, version, fault) from fault


def _read_controlled_shutdown_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ControlledShutdownRequest, int]:
    m = object.__new__(ControlledShutdownRequest)
    (m.broker_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.broker_epoch = -1
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_controlled_shutdown_request(out: bytearray, m: ControlledShutdownRequest, version: int) -> None:
    out += _pack_i(m.broker_id)
    if version >= 2:
        out += _pack_q(m.broker_epoch)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_remaining_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[RemainingPartition, int]:
    m = object.__new__(RemainingPartition)
    if version >= 3:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_remaining_partition(out: bytearray, m: RemainingPartition, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    out += _pack_i(m.partition_index)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_controlled_shutdown_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ControlledShutdownResponse, int]:
    m = object.__new__(ControlledShutdownResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 3 else read_count(buf, pos, limit, 6)
    remaining_partitions_: list[RemainingPartition] = []
    for _ in range(count):
        remaining_partitions_item, pos = _read_remaining_partition(buf, pos, limit, version)
        remaining_partitions_.append(remaining_partitions_item)
    m.remaining_partitions = remaining_partitions_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_controlled_shutdown_response(out: bytearray, m: ControlledShutdownResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 3:
        put_compact_count(out, len(m.remaining_partitions))
    else:
        put_count(out, len(m.remaining_partitions))
    for remaining_partitions_item in m.remaining_partitions:
        _write_remaining_partition(out, remaining_partitions_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
