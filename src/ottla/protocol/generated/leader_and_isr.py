"""The controller tells a broker which replicas it leads and follows (Kafka 3.9, ZooKeeper mode).

Made from schemas/leader_and_isr.schema by `python -m ottla.protocol.compile`: change that file.
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
    ZERO_UUID,
    put_compact_count,
    put_compact_string,
    put_count,
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tags,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_iiii = Struct(">iiii").pack
_pack_q = Struct(">q").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_iiii = Struct(">iiii").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from

class LeaderAndIsrPartitionState(Structure):
    __slots__ = ("topic_name", "partition_index", "controller_epoch", "leader", "leader_epoch", "isr", "partition_epoch", "replicas", "adding_replicas", "removing_replicas", "is_new", "leader_recovery_state", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY_LIST,
        partition_epoch: int = 0,
        replicas: list[int] = EMPTY_LIST,
        adding_replicas: list[int] = EMPTY_LIST,
        removing_replicas: list[int] = EMPTY_LIST,
        is_new: bool = False,
        leader_recovery_state: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is EMPTY_LIST else isr
        self.partition_epoch = partition_epoch
        self.replicas = [] if replicas is EMPTY_LIST else replicas
        self.adding_replicas = [] if adding_replicas is EMPTY_LIST else adding_replicas
        self.removing_replicas = [] if removing_replicas is EMPTY_LIST else removing_replicas
        self.is_new = is_new
        self.leader_recovery_state = leader_recovery_state
        self.unknown_tags = unknown_tags


class LeaderAndIsrTopicState(Structure):
    __slots__ = ("topic_name", "topic_id", "partition_states", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_states: list[LeaderAndIsrPartitionState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_states = [] if partition_states is EMPTY_LIST else partition_states
        self.unknown_tags = unknown_tags


class LeaderAndIsrLiveLeader(Structure):
    __slots__ = ("broker_id", "host_name", "port", "unknown_tags",)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host_name: str = "",
        port: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_id = broker_id
        self.host_name = host_name
        self.port = port
        self.unknown_tags = unknown_tags


class LeaderAndIsrRequest(Message):
    __slots__ = ("controller_id", "is_kraft_controller", "controller_epoch", "broker_epoch", "type", "ungrouped_partition_states", "topic_states", "live_leaders", "unknown_tags",)
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 7
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        type: int = 0,
        ungrouped_partition_states: list[LeaderAndIsrPartitionState] = EMPTY_LIST,
        topic_states: list[LeaderAndIsrTopicState] = EMPTY_LIST,
        live_leaders: list[LeaderAndIsrLiveLeader] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.controller_id = controller_id
        self.is_kraft_controller = is_kraft_controller
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.type = type
        self.ungrouped_partition_states = [] if ungrouped_partition_states is EMPTY_LIST else ungrouped_partition_states
        self.topic_states = [] if topic_states is EMPTY_LIST else topic_states
        self.live_leaders = [] if live_leaders is EMPTY_LIST else live_leaders
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 7:
            raise unencodable(LeaderAndIsrRequest, version)
        try:
            _write_leader_and_isr_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(LeaderAndIsrRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[LeaderAndIsrRequest, int]:
        if not 0 <= version <= 7:
            raise undecodable(LeaderAndIsrRequest, version)
        try:
            return _read_leader_and_isr_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(LeaderAndIsrRequest, version, fault) from fault


class LeaderAndIsrPartitionError(Structure):
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


class LeaderAndIsrTopicError(Structure):
    __slots__ = ("topic_id", "partition_errors", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partition_errors: list[LeaderAndIsrPartitionError] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partition_errors = [] if partition_errors is EMPTY_LIST else partition_errors
        self.unknown_tags = unknown_tags


class LeaderAndIsrResponse(Message):
    __slots__ = ("error_code", "partition_errors", "topics", "unknown_tags",)
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 7
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[LeaderAndIsrPartitionError] = EMPTY_LIST,
        topics: list[LeaderAndIsrTopicError] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.partition_errors = [] if partition_errors is EMPTY_LIST else partition_errors
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 7:
            raise unencodable(LeaderAndIsrResponse, version)
        try:
            _write_leader_and_isr_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(LeaderAndIsrResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[LeaderAndIsrResponse, int]:
        if not 0 <= version <= 7:
            raise undecodable(LeaderAndIsrResponse, version)
        try:
            return _read_leader_and_isr_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(LeaderAndIsrResponse, version, fault) from fault


def _read_leader_and_isr_partition_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrPartitionState, int]:
    m = object.__new__(LeaderAndIsrPartitionState)
    if version >= 2:
        m.topic_name = ""
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    m.partition_index, m.controller_epoch, m.leader, m.leader_epoch = _unpack_iiii(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    m.isr, pos = read_numbers(buf, pos, count, "i", 4)
    (m.partition_epoch,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 3:
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
        m.adding_replicas, pos = read_numbers(buf, pos, count, "i", 4)
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
        m.removing_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    else:
        m.adding_replicas = []
        m.removing_replicas = []
    if version >= 1:
        m.is_new = buf[pos] != 0
        pos += 1
    else:
        m.is_new = False
    if version >= 6:
        (m.leader_recovery_state,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.leader_recovery_state = 0
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_partition_state(out: bytearray, m: LeaderAndIsrPartitionState, version: int) -> None:
    if version < 2:
        put_string(out, m.topic_name)
    out += _pack_iiii(m.partition_index, m.controller_epoch, m.leader, m.leader_epoch)
    if version >= 4:
        put_compact_count(out, len(m.isr))
    else:
        put_count(out, len(m.isr))
    put_numbers(out, m.isr, "i")
    out += _pack_i(m.partition_epoch)
    if version >= 4:
        put_compact_count(out, len(m.replicas))
    else:
        put_count(out, len(m.replicas))
    put_numbers(out, m.replicas, "i")
    if version >= 3:
        if version >= 4:
            put_compact_count(out, len(m.adding_replicas))
        else:
            put_count(out, len(m.adding_replicas))
        put_numbers(out, m.adding_replicas, "i")
        if version >= 4:
            put_compact_count(out, len(m.removing_replicas))
        else:
            put_count(out, len(m.removing_replicas))
        put_numbers(out, m.removing_replicas, "i")
    if version >= 1:
        out.append(1 if m.is_new else 0)
    if version >= 6:
        out += _pack_b(m.leader_recovery_state)
    else:
        if m.leader_recovery_state != 0:
            raise not_in_version(m, "leader_recovery_state", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leader_and_isr_topic_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrTopicState, int]:
    m = object.__new__(LeaderAndIsrTopicState)
    if version >= 4:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    if version >= 5:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 26) if version >= 4 else read_count(buf, pos, limit, 26)
    partition_states_: list[LeaderAndIsrPartitionState] = []
    for _ in range(count):
        partition_states_item, pos = _read_leader_and_isr_partition_state(buf, pos, limit, version)
        partition_states_.append(partition_states_item)
    m.partition_states = partition_states_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_topic_state(out: bytearray, m: LeaderAndIsrTopicState, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    if version >= 5:
        put_uuid(out, m.topic_id)
    if version >= 4:
        put_compact_count(out, len(m.partition_states))
    else:
        put_count(out, len(m.partition_states))
    for partition_states_item in m.partition_states:
        _write_leader_and_isr_partition_state(out, partition_states_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leader_and_isr_live_leader(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrLiveLeader, int]:
    m = object.__new__(LeaderAndIsrLiveLeader)
    (m.broker_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.host_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.host_name, pos = read_string(buf, pos, limit)
    (m.port,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_live_leader(out: bytearray, m: LeaderAndIsrLiveLeader, version: int) -> None:
    out += _pack_i(m.broker_id)
    if version >= 4:
        put_compact_string(out, m.host_name)
    else:
        put_string(out, m.host_name)
    out += _pack_i(m.port)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leader_and_isr_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrRequest, int]:
    m = object.__new__(LeaderAndIsrRequest)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 7:
        m.is_kraft_controller = buf[pos] != 0
        pos += 1
    else:
        m.is_kraft_controller = False
    (m.controller_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.broker_epoch = -1
    if version >= 5:
        (m.type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.type = 0
    if version >= 2:
        m.ungrouped_partition_states = []
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
        topic_states_: list[LeaderAndIsrTopicState] = []
        for _ in range(count):
            topic_states_item, pos = _read_leader_and_isr_topic_state(buf, pos, limit, version)
            topic_states_.append(topic_states_item)
        m.topic_states = topic_states_
    else:
        count, pos = read_count(buf, pos, limit, 30)
        ungrouped_partition_states_: list[LeaderAndIsrPartitionState] = []
        for _ in range(count):
            ungrouped_partition_states_item, pos = _read_leader_and_isr_partition_state(buf, pos, limit, version)
            ungrouped_partition_states_.append(ungrouped_partition_states_item)
        m.ungrouped_partition_states = ungrouped_partition_states_
        m.topic_states = []
    count, pos = read_compact_count(buf, pos, limit, 10) if version >= 4 else read_count(buf, pos, limit, 10)
    live_leaders_: list[LeaderAndIsrLiveLeader] = []
    for _ in range(count):
        live_leaders_item, pos = _read_leader_and_isr_live_leader(buf, pos, limit, version)
        live_leaders_.append(live_leaders_item)
    m.live_leaders = live_leaders_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_request(out: bytearray, m: LeaderAndIsrRequest, version: int) -> None:
    out += _pack_i(m.controller_id)
    if version >= 7:
        out.append(1 if m.is_kraft_controller else 0)
    else:
        if m.is_kraft_controller:
            raise not_in_version(m, "is_kraft_controller", version)
    out += _pack_i(m.controller_epoch)
    if version >= 2:
        out += _pack_q(m.broker_epoch)
    if version >= 5:
        out += _pack_b(m.type)
    else:
        if m.type != 0:
            raise not_in_version(m, "type", version)
    if version >= 2:
        if m.ungrouped_partition_states != []:
            raise not_in_version(m, "ungrouped_partition_states", version)
        if version >= 4:
            put_compact_count(out, len(m.topic_states))
        else:
            put_count(out, len(m.topic_states))
        for topic_states_item in m.topic_states:
            _write_leader_and_isr_topic_state(out, topic_states_item, version)
    else:
        put_count(out, len(m.ungrouped_partition_states))
        for ungrouped_partition_states_item in m.ungrouped_partition_states:
            _write_leader_and_isr_partition_state(out, ungrouped_partition_states_item, version)
        if m.topic_states != []:
            raise not_in_version(m, "topic_states", version)
    if version >= 4:
        put_compact_count(out, len(m.live_leaders))
    else:
        put_count(out, len(m.live_leaders))
    for live_leaders_item in m.live_leaders:
        _write_leader_and_isr_live_leader(out, live_leaders_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leader_and_isr_partition_error(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrPartitionError, int]:
    m = object.__new__(LeaderAndIsrPartitionError)
    if version >= 5:
        m.topic_name = ""
    elif version >= 4:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_partition_error(out: bytearray, m: LeaderAndIsrPartitionError, version: int) -> None:
    if version >= 5:
        pass
    elif version >= 4:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    out += _pack_ih(m.partition_index, m.error_code)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leader_and_isr_topic_error(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrTopicError, int]:
    m = object.__new__(LeaderAndIsrTopicError)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 7)
    partition_errors_: list[LeaderAndIsrPartitionError] = []
    for _ in range(count):
        partition_errors_item, pos = _read_leader_and_isr_partition_error(buf, pos, limit, version)
        partition_errors_.append(partition_errors_item)
    m.partition_errors = partition_errors_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_leader_and_isr_topic_error(out: bytearray, m: LeaderAndIsrTopicError, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partition_errors))
    for partition_errors_item in m.partition_errors:
        _write_leader_and_isr_partition_error(out, partition_errors_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_leader_and_isr_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderAndIsrResponse, int]:
    m = object.__new__(LeaderAndIsrResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 5:
        m.partition_errors = []
        count, pos = read_compact_count(buf, pos, limit, 18)
        topics_: list[LeaderAndIsrTopicError] = []
        for _ in range(count):
            topics_item, pos = _read_leader_and_isr_topic_error(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    else:
        count, pos = read_compact_count(buf, pos, limit, 8) if version >= 4 else read_count(buf, pos, limit, 8)
        partition_errors_: list[LeaderAndIsrPartitionError] = []
        for _ in range(count):
            partition_errors_item, pos = _read_leader_and_isr_partition_error(buf, pos, limit, version)
            partition_errors_.append(partition_errors_item)
        m.partition_errors = partition_errors_
        m.topics = []
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_response(out: bytearray, m: LeaderAndIsrResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 5:
        if m.partition_errors != []:
            raise not_in_version(m, "partition_errors", version)
        put_compact_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_leader_and_isr_topic_error(out, topics_item, version)
    else:
        if version >= 4:
            put_compact_count(out, len(m.partition_errors))
        else:
            put_count(out, len(m.partition_errors))
        for partition_errors_item in m.partition_errors:
            _write_leader_and_isr_partition_error(out, partition_errors_item, version)
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
