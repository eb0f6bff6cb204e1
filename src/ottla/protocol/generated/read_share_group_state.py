"""The kept state of share partitions.

Made from schemas/read_share_group_state.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
)

_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_iq = Struct(">iq").pack
_pack_qqbh = Struct(">qqbh").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_qqbh = Struct(">qqbh").unpack_from
_unpack_u = Struct(">16s").unpack_from

class PartitionData(Structure):
    __slots__ = ("partition", "leader_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


class ReadStateData(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ReadShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics", "unknown_tags",)
    API_KEY = 84
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ReadShareGroupStateRequest, version)
        try:
            _write_read_share_group_state_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ReadShareGroupStateRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ReadShareGroupStateRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(ReadShareGroupStateRequest, version)
        try:
            return _read_read_share_group_state_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ReadShareGroupStateRequest, version, fault) from fault


class StateBatch(Structure):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count", "unknown_tags",)

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count
        self.unknown_tags = unknown_tags


class PartitionResult(Structure):
    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches = [] if state_batches is EMPTY_LIST else state_batches
        self.unknown_tags = unknown_tags


class ReadStateResult(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ReadShareGroupStateResponse(Message):
    __slots__ = ("results", "unknown_tags",)
    API_KEY = 84
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        results: list[ReadStateResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ReadShareGroupStateResponse, version)
        try:
            _write_read_share_group_state_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ReadShareGroupStateResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ReadShareGroupStateResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(ReadShareGroupStateResponse, version)
        try:
            return _read_read_share_group_state_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ReadShareGroupStateResponse, version, fault) from fault


def _read_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionData, int]:
    m = object.__new__(PartitionData)
    m.partition, m.leader_epoch = _unpack_ii(buf, pos)
    pos += 8
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_data(out: bytearray, m: PartitionData, version: int) -> None:
    out += _pack_ii(m.partition, m.leader_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_read_state_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReadStateData, int]:
    m = object.__new__(ReadStateData)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 9)
    partitions_: list[PartitionData] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_data(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_read_state_data(out: bytearray, m: ReadStateData, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_partition_data(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_read_share_group_state_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReadShareGroupStateRequest, int]:
    m = object.__new__(ReadShareGroupStateRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 18)
    topics_: list[ReadStateData] = []
    for _ in range(count):
        topics_item, pos = _read_read_state_data(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_read_share_group_state_request(out: bytearray, m: ReadShareGroupStateRequest, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_read_state_data(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_state_batch(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StateBatch, int]:
    m = object.__new__(StateBatch)
    m.first_offset, m.last_offset, m.delivery_state, m.delivery_count = _unpack_qqbh(buf, pos)
    pos += 19
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_state_batch(out: bytearray, m: StateBatch, version: int) -> None:
    out += _pack_qqbh(m.first_offset, m.last_offset, m.delivery_state, m.delivery_count)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionResult, int]:
    m = object.__new__(PartitionResult)
    m.partition, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    m.state_epoch, m.start_offset = _unpack_iq(buf, pos)
    pos += 12
    count, pos = read_compact_count(buf, pos, limit, 20)
    state_batches_: list[StateBatch] = []
    for _ in range(count):
        state_batches_item, pos = _read_state_batch(buf, pos, limit, version)
        state_batches_.append(state_batches_item)
    m.state_batches = state_batches_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_result(out: bytearray, m: PartitionResult, version: int) -> None:
    out += _pack_ih(m.partition, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    out += _pack_iq(m.state_epoch, m.start_offset)
    put_compact_count(out, len(m.state_batches))
    for state_batches_item in m.state_batches:
        _write_state_batch(out, state_batches_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_read_state_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReadStateResult, int]:
    m = object.__new__(ReadStateResult)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 21)
    partitions_: list[PartitionResult] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_result(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_read_state_result(out: bytearray, m: ReadStateResult, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_partition_result(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_read_share_group_state_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReadShareGroupStateResponse, int]:
    m = object.__new__(ReadShareGroupStateResponse)
    count, pos = read_compact_count(buf, pos, limit, 18)
    results_: list[ReadStateResult] = []
    for _ in range(count):
        results_item, pos = _read_read_state_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_read_share_group_state_response(out: bytearray, m: ReadShareGroupStateResponse, version: int) -> None:
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        _write_read_state_result(out, results_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
