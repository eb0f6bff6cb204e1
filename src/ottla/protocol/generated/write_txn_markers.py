"""The transaction coordinator has markers written to partitions.

Made from schemas/write_txn_markers.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_numbers,
    read_tags,
)

_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_q = Struct(">q").pack
_pack_qht = Struct(">qh?").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qht = Struct(">qh?").unpack_from

class WritableTxnMarkerTopic(Structure):
    __slots__ = ("name", "partition_indexes", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY_LIST else partition_indexes
        self.unknown_tags = unknown_tags


class WritableTxnMarker(Structure):
    __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version", "unknown_tags",)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY_LIST,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is EMPTY_LIST else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version
        self.unknown_tags = unknown_tags


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers", "unknown_tags",)
    API_KEY = 27
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.markers = [] if markers is EMPTY_LIST else markers
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(WriteTxnMarkersRequest, version)
        try:
            _write_write_txn_markers_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(WriteTxnMarkersRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[WriteTxnMarkersRequest, int]:
        if not 1 <= version <= 2:
            raise undecodable(WriteTxnMarkersRequest, version)
        try:
            return _read_write_txn_markers_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(WriteTxnMarkersRequest, version, fault) from fault


class WritableTxnMarkerPartitionResult(Structure):
    __slots__ = ("partition_index", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class WritableTxnMarkerTopicResult(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class WritableTxnMarkerResult(Structure):
    __slots__ = ("producer_id", "topics", "unknown_tags",)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers", "unknown_tags",)
    API_KEY = 27
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.markers = [] if markers is EMPTY_LIST else markers
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(WriteTxnMarkersResponse, version)
        try:
            _write_write_txn_markers_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(WriteTxnMarkersResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[WriteTxnMarkersResponse, int]:
        if not 1 <= version <= 2:
            raise undecodable(WriteTxnMarkersResponse, version)
        try:
            return _read_write_txn_markers_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(WriteTxnMarkersResponse, version, fault) from fault


def _read_writable_txn_marker_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WritableTxnMarkerTopic, int]:
    m = object.__new__(WritableTxnMarkerTopic)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_writable_txn_marker_topic(out: bytearray, m: WritableTxnMarkerTopic, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partition_indexes))
    put_numbers(out, m.partition_indexes, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_writable_txn_marker(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WritableTxnMarker, int]:
    m = object.__new__(WritableTxnMarker)
    m.producer_id, m.producer_epoch, m.transaction_result = _unpack_qht(buf, pos)
    pos += 11
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[WritableTxnMarkerTopic] = []
    for _ in range(count):
        topics_item, pos = _read_writable_txn_marker_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    (m.coordinator_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.transaction_version,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.transaction_version = 0
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_writable_txn_marker(out: bytearray, m: WritableTxnMarker, version: int) -> None:
    out += _pack_qht(m.producer_id, m.producer_epoch, m.transaction_result)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_writable_txn_marker_topic(out, topics_item, version)
    out += _pack_i(m.coordinator_epoch)
    if version >= 2:
        out += _pack_b(m.transaction_version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_write_txn_markers_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WriteTxnMarkersRequest, int]:
    m = object.__new__(WriteTxnMarkersRequest)
    count, pos = read_compact_count(buf, pos, limit, 17)
    markers_: list[WritableTxnMarker] = []
    for _ in range(count):
        markers_item, pos = _read_writable_txn_marker(buf, pos, limit, version)
        markers_.append(markers_item)
    m.markers = markers_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_write_txn_markers_request(out: bytearray, m: WriteTxnMarkersRequest, version: int) -> None:
    put_compact_count(out, len(m.markers))
    for markers_item in m.markers:
        _write_writable_txn_marker(out, markers_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_writable_txn_marker_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WritableTxnMarkerPartitionResult, int]:
    m = object.__new__(WritableTxnMarkerPartitionResult)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_writable_txn_marker_partition_result(out: bytearray, m: WritableTxnMarkerPartitionResult, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_writable_txn_marker_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WritableTxnMarkerTopicResult, int]:
    m = object.__new__(WritableTxnMarkerTopicResult)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 7)
    partitions_: list[WritableTxnMarkerPartitionResult] = []
    for _ in range(count):
        partitions_item, pos = _read_writable_txn_marker_partition_result(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_writable_txn_marker_topic_result(out: bytearray, m: WritableTxnMarkerTopicResult, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_writable_txn_marker_partition_result(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_writable_txn_marker_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WritableTxnMarkerResult, int]:
    m = object.__new__(WritableTxnMarkerResult)
    (m.producer_id,) = _unpack_q(buf, pos)
    pos += 8
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[WritableTxnMarkerTopicResult] = []
    for _ in range(count):
        topics_item, pos = _read_writable_txn_marker_topic_result(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_writable_txn_marker_result(out: bytearray, m: WritableTxnMarkerResult, version: int) -> None:
    out += _pack_q(m.producer_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_writable_txn_marker_topic_result(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_write_txn_markers_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[WriteTxnMarkersResponse, int]:
    m = object.__new__(WriteTxnMarkersResponse)
    count, pos = read_compact_count(buf, pos, limit, 10)
    markers_: list[WritableTxnMarkerResult] = []
    for _ in range(count):
        markers_item, pos = _read_writable_txn_marker_result(buf, pos, limit, version)
        markers_.append(markers_item)
    m.markers = markers_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_write_txn_markers_response(out: bytearray, m: WriteTxnMarkersResponse, version: int) -> None:
    put_compact_count(out, len(m.markers))
    for markers_item in m.markers:
        _write_writable_txn_marker_result(out, markers_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
