"""The controller tells a broker to stop replicas, and to delete some (Kafka 3.9, ZooKeeper mode).

Made from schemas/stop_replica.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_numbers,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_iit = Struct(">ii?").pack
_pack_q = Struct(">q").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_iit = Struct(">ii?").unpack_from
_unpack_q = Struct(">q").unpack_from

class StopReplicaPartitionV0(Structure):
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


class StopReplicaTopicV1(Structure):
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


class StopReplicaPartitionState(Structure):
    __slots__ = ("partition_index", "leader_epoch", "delete_partition", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = -1,
        delete_partition: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.delete_partition = delete_partition
        self.unknown_tags = unknown_tags


class StopReplicaTopicState(Structure):
    __slots__ = ("topic_name", "partition_states", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_states: list[StopReplicaPartitionState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partition_states = [] if partition_states is EMPTY_LIST else partition_states
        self.unknown_tags = unknown_tags


class StopReplicaRequest(Message):
    __slots__ = ("controller_id", "is_kraft_controller", "controller_epoch", "broker_epoch", "delete_partitions", "ungrouped_partitions", "topics", "topic_states", "unknown_tags",)
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        delete_partitions: bool = False,
        ungrouped_partitions: list[StopReplicaPartitionV0] = EMPTY_LIST,
        topics: list[StopReplicaTopicV1] = EMPTY_LIST,
        topic_states: list[StopReplicaTopicState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.controller_id = controller_id
        self.is_kraft_controller = is_kraft_controller
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.delete_partitions = delete_partitions
        self.ungrouped_partitions = [] if ungrouped_partitions is EMPTY_LIST else ungrouped_partitions
        self.topics = [] if topics is EMPTY_LIST else topics
        self.topic_states = [] if topic_states is EMPTY_LIST else topic_states
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(StopReplicaRequest, version)
        try:
            _write_stop_replica_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(StopReplicaRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[StopReplicaRequest, int]:
        if not 0 <= version <= 4:
            raise undecodable(StopReplicaRequest, version)
        try:
            return _read_stop_replica_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(StopReplicaRequest, version, fault) from fault


class StopReplicaPartitionError(Structure):
    __slots__ = ("topic_name", "partition_index", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class StopReplicaResponse(Message):
    __slots__ = ("error_code", "partition_errors", "unknown_tags",)
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[StopReplicaPartitionError] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.partition_errors = [] if partition_errors is EMPTY_LIST else partition_errors
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(StopReplicaResponse, version)
        try:
            _write_stop_replica_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(StopReplicaResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[StopReplicaResponse, int]:
        if not 0 <= version <= 4:
            raise undecodable(StopReplicaResponse, version)
        try:
            return _read_stop_replica_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(StopReplicaResponse, version, fault) from fault


def _read_stop_replica_partition_v0(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaPartitionV0, int]:
    m = object.__new__(StopReplicaPartitionV0)
    m.topic_name, pos = read_string(buf, pos, limit)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_stop_replica_partition_v0(out: bytearray, m: StopReplicaPartitionV0, version: int) -> None:
    put_string(out, m.topic_name)
    out += _pack_i(m.partition_index)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_stop_replica_topic_v1(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaTopicV1, int]:
    m = object.__new__(StopReplicaTopicV1)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_stop_replica_topic_v1(out: bytearray, m: StopReplicaTopicV1, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 2:
        put_compact_count(out, len(m.partition_indexes))
    else:
        put_count(out, len(m.partition_indexes))
    put_numbers(out, m.partition_indexes, "i")
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_stop_replica_partition_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaPartitionState, int]:
    m = object.__new__(StopReplicaPartitionState)
    m.partition_index, m.leader_epoch, m.delete_partition = _unpack_iit(buf, pos)
    pos += 9
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_stop_replica_partition_state(out: bytearray, m: StopReplicaPartitionState, version: int) -> None:
    out += _pack_iit(m.partition_index, m.leader_epoch, m.delete_partition)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_stop_replica_topic_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaTopicState, int]:
    m = object.__new__(StopReplicaTopicState)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 10)
    partition_states_: list[StopReplicaPartitionState] = []
    for _ in range(count):
        partition_states_item, pos = _read_stop_replica_partition_state(buf, pos, limit, version)
        partition_states_.append(partition_states_item)
    m.partition_states = partition_states_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_stop_replica_topic_state(out: bytearray, m: StopReplicaTopicState, version: int) -> None:
    put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partition_states))
    for partition_states_item in m.partition_states:
        _write_stop_replica_partition_state(out, partition_states_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_stop_replica_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaRequest, int]:
    m = object.__new__(StopReplicaRequest)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.is_kraft_controller = buf[pos] != 0
        pos += 1
    else:
        m.is_kraft_controller = False
    (m.controller_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.broker_epoch = -1
    if version >= 3:
        m.delete_partitions = False
    else:
        m.delete_partitions = buf[pos] != 0
        pos += 1
    if version >= 1:
        m.ungrouped_partitions = []
    else:
        count, pos = read_count(buf, pos, limit, 6)
        ungrouped_partitions_: list[StopReplicaPartitionV0] = []
        for _ in range(count):
            ungrouped_partitions_item, pos = _read_stop_replica_partition_v0(buf, pos, limit, version)
            ungrouped_partitions_.append(ungrouped_partitions_item)
        m.ungrouped_partitions = ungrouped_partitions_
    if version >= 3:
        m.topics = []
    elif version >= 1:
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
        topics_: list[StopReplicaTopicV1] = []
        for _ in range(count):
            topics_item, pos = _read_stop_replica_topic_v1(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    else:
        m.topics = []
    if version >= 3:
        count, pos = read_compact_count(buf, pos, limit, 3)
        topic_states_: list[StopReplicaTopicState] = []
        for _ in range(count):
            topic_states_item, pos = _read_stop_replica_topic_state(buf, pos, limit, version)
            topic_states_.append(topic_states_item)
        m.topic_states = topic_states_
    else:
        m.topic_states = []
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_stop_replica_request(out: bytearray, m: StopReplicaRequest, version: int) -> None:
    out += _pack_i(m.controller_id)
    if version >= 4:
        out.append(1 if m.is_kraft_controller else 0)
    else:
        if m.is_kraft_controller:
            raise not_in_version(m, "is_kraft_controller", version)
    out += _pack_i(m.controller_epoch)
    if version >= 1:
        out += _pack_q(m.broker_epoch)
    if version >= 3:
        if m.delete_partitions:
            raise not_in_version(m, "delete_partitions", version)
    else:
        out.append(1 if m.delete_partitions else 0)
    if version >= 1:
        if m.ungrouped_partitions != []:
            raise not_in_version(m, "ungrouped_partitions", version)
    else:
        put_count(out, len(m.ungrouped_partitions))
        for ungrouped_partitions_item in m.ungrouped_partitions:
            _write_stop_replica_partition_v0(out, ungrouped_partitions_item, version)
    if version >= 3:
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    elif version >= 1:
        if version >= 2:
            put_compact_count(out, len(m.topics))
        else:
            put_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_stop_replica_topic_v1(out, topics_item, version)
    else:
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    if version >= 3:
        put_compact_count(out, len(m.topic_states))
        for topic_states_item in m.topic_states:
            _write_stop_replica_topic_state(out, topic_states_item, version)
    else:
        if m.topic_states != []:
            raise not_in_version(m, "topic_states", version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_stop_replica_partition_error(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaPartitionError, int]:
    m = object.__new__(StopReplicaPartitionError)
    if version >= 2:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_stop_replica_partition_error(out: bytearray, m: StopReplicaPartitionError, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    out += _pack_ih(m.partition_index, m.error_code)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_stop_replica_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StopReplicaResponse, int]:
    m = object.__new__(StopReplicaResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 2 else read_count(buf, pos, limit, 8)
    partition_errors_: list[StopReplicaPartitionError] = []
    for _ in range(count):
        partition_errors_item, pos = _read_stop_replica_partition_error(buf, pos, limit, version)
        partition_errors_.append(partition_errors_item)
    m.partition_errors = partition_errors_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_stop_replica_response(out: bytearray, m: StopReplicaResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_count(out, len(m.partition_errors))
    else:
        put_count(out, len(m.partition_errors))
    for partition_errors_item in m.partition_errors:
        _write_stop_replica_partition_error(out, partition_errors_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
