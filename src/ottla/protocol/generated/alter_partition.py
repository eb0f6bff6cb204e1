"""A leader asks the controller for a change of its ISR (Kafka 3.9's range).

Made from schemas/alter_partition.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_numbers,
    read_tags,
)

_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihii = Struct(">ihii").pack
_pack_ii = Struct(">ii").pack
_pack_iq = Struct(">iq").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ihii = Struct(">ihii").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_u = Struct(">16s").unpack_from

class BrokerState(Structure):
    __slots__ = ("broker_id", "broker_epoch", "unknown_tags",)

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


class RequestPartitionData(Structure):
    __slots__ = ("partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state", "partition_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] = EMPTY_LIST,
        new_isr_with_epochs: list[BrokerState] = EMPTY_LIST,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is EMPTY_LIST else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is EMPTY_LIST else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.unknown_tags = unknown_tags


class RequestTopicData(Structure):
    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[RequestPartitionData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterPartitionRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "topics", "unknown_tags",)
    API_KEY = 56
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[RequestTopicData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(AlterPartitionRequest, version)
        try:
            _write_alter_partition_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterPartitionRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterPartitionRequest, int]:
        if not 0 <= version <= 3:
            raise undecodable(AlterPartitionRequest, version)
        try:
            return _read_alter_partition_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterPartitionRequest, version, fault) from fault


class ResponsePartitionData(Structure):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY_LIST,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is EMPTY_LIST else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.unknown_tags = unknown_tags


class ResponseTopicData(Structure):
    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[ResponsePartitionData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterPartitionResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "topics", "unknown_tags",)
    API_KEY = 56
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[ResponseTopicData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(AlterPartitionResponse, version)
        try:
            _write_alter_partition_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterPartitionResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterPartitionResponse, int]:
        if not 0 <= version <= 3:
            raise undecodable(AlterPartitionResponse, version)
        try:
            return _read_alter_partition_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterPartitionResponse, version, fault) from fault


def _read_broker_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[BrokerState, int]:
    m = object.__new__(BrokerState)
    m.broker_id, m.broker_epoch = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_broker_state(out: bytearray, m: BrokerState, version: int) -> None:
    out += _pack_iq(m.broker_id, m.broker_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_request_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[RequestPartitionData, int]:
    m = object.__new__(RequestPartitionData)
    m.partition_index, m.leader_epoch = _unpack_ii(buf, pos)
    pos += 8
    if version >= 3:
        m.new_isr = []
        count, pos = read_compact_count(buf, pos, limit, 13)
        new_isr_with_epochs_: list[BrokerState] = []
        for _ in range(count):
            new_isr_with_epochs_item, pos = _read_broker_state(buf, pos, limit, version)
            new_isr_with_epochs_.append(new_isr_with_epochs_item)
        m.new_isr_with_epochs = new_isr_with_epochs_
    else:
        count, pos = read_compact_count(buf, pos, limit, 4)
        m.new_isr, pos = read_numbers(buf, pos, count, "i", 4)
        m.new_isr_with_epochs = []
    if version >= 1:
        (m.leader_recovery_state,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.leader_recovery_state = 0
    (m.partition_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_request_partition_data(out: bytearray, m: RequestPartitionData, version: int) -> None:
    out += _pack_ii(m.partition_index, m.leader_epoch)
    if version >= 3:
        if m.new_isr != []:
            raise not_in_version(m, "new_isr", version)
        put_compact_count(out, len(m.new_isr_with_epochs))
        for new_isr_with_epochs_item in m.new_isr_with_epochs:
            _write_broker_state(out, new_isr_with_epochs_item, version)
    else:
        put_compact_count(out, len(m.new_isr))
        put_numbers(out, m.new_isr, "i")
        if m.new_isr_with_epochs != []:
            raise not_in_version(m, "new_isr_with_epochs", version)
    if version >= 1:
        out += _pack_b(m.leader_recovery_state)
    else:
        if m.leader_recovery_state != 0:
            raise not_in_version(m, "leader_recovery_state", version)
    out += _pack_i(m.partition_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_request_topic_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[RequestTopicData, int]:
    m = object.__new__(RequestTopicData)
    if version >= 2:
        m.topic_name = ""
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 14)
    partitions_: list[RequestPartitionData] = []
    for _ in range(count):
        partitions_item, pos = _read_request_partition_data(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_request_topic_data(out: bytearray, m: RequestTopicData, version: int) -> None:
    if version >= 2:
        put_uuid(out, m.topic_id)
    else:
        put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_request_partition_data(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_partition_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterPartitionRequest, int]:
    m = object.__new__(AlterPartitionRequest)
    m.broker_id, m.broker_epoch = _unpack_iq(buf, pos)
    pos += 12
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[RequestTopicData] = []
    for _ in range(count):
        topics_item, pos = _read_request_topic_data(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_partition_request(out: bytearray, m: AlterPartitionRequest, version: int) -> None:
    out += _pack_iq(m.broker_id, m.broker_epoch)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_request_topic_data(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_response_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ResponsePartitionData, int]:
    m = object.__new__(ResponsePartitionData)
    m.partition_index, m.error_code, m.leader_id, m.leader_epoch = _unpack_ihii(buf, pos)
    pos += 14
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.isr, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 1:
        (m.leader_recovery_state,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.leader_recovery_state = 0
    (m.partition_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_response_partition_data(out: bytearray, m: ResponsePartitionData, version: int) -> None:
    out += _pack_ihii(m.partition_index, m.error_code, m.leader_id, m.leader_epoch)
    put_compact_count(out, len(m.isr))
    put_numbers(out, m.isr, "i")
    if version >= 1:
        out += _pack_b(m.leader_recovery_state)
    out += _pack_i(m.partition_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_response_topic_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ResponseTopicData, int]:
    m = object.__new__(ResponseTopicData)
    if version >= 2:
        m.topic_name = ""
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 20)
    partitions_: list[ResponsePartitionData] = []
    for _ in range(count):
        partitions_item, pos = _read_response_partition_data(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_response_topic_data(out: bytearray, m: ResponseTopicData, version: int) -> None:
    if version >= 2:
        put_uuid(out, m.topic_id)
    else:
        put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_response_partition_data(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_partition_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterPartitionResponse, int]:
    m = object.__new__(AlterPartitionResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[ResponseTopicData] = []
    for _ in range(count):
        topics_item, pos = _read_response_topic_data(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_partition_response(out: bytearray, m: AlterPartitionResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_response_topic_data(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
