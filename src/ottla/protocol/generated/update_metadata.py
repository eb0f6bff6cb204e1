"""The controller tells all brokers what the cluster looks like (Kafka 3.9, ZooKeeper mode).

Made from schemas/update_metadata.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, tag_of_other_size, tag_too_early, undecodable, unencodable
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
    put_count,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    read_tags,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_iiii = Struct(">iiii").pack
_pack_q = Struct(">q").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iiii = Struct(">iiii").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from

class UpdateMetadataPartitionState(Structure):
    __slots__ = ("topic_name", "partition_index", "controller_epoch", "leader", "leader_epoch", "isr", "zk_version", "replicas", "offline_replicas", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY_LIST,
        zk_version: int = 0,
        replicas: list[int] = EMPTY_LIST,
        offline_replicas: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is EMPTY_LIST else isr
        self.zk_version = zk_version
        self.replicas = [] if replicas is EMPTY_LIST else replicas
        self.offline_replicas = [] if offline_replicas is EMPTY_LIST else offline_replicas
        self.unknown_tags = unknown_tags


class UpdateMetadataTopicState(Structure):
    __slots__ = ("topic_name", "topic_id", "partition_states", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_states: list[UpdateMetadataPartitionState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_states = [] if partition_states is EMPTY_LIST else partition_states
        self.unknown_tags = unknown_tags


class UpdateMetadataEndpoint(Structure):
    __slots__ = ("port", "host", "listener", "security_protocol", "unknown_tags",)

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "",
        listener: str = "",
        security_protocol: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.port = port
        self.host = host
        self.listener = listener
        self.security_protocol = security_protocol
        self.unknown_tags = unknown_tags


class UpdateMetadataBroker(Structure):
    __slots__ = ("id", "v0_host", "v0_port", "endpoints", "rack", "unknown_tags",)

    def __init__(
        self,
        *,
        id: int = 0,
        v0_host: str = "",
        v0_port: int = 0,
        endpoints: list[UpdateMetadataEndpoint] = EMPTY_LIST,
        rack: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.id = id
        self.v0_host = v0_host
        self.v0_port = v0_port
        self.endpoints = [] if endpoints is EMPTY_LIST else endpoints
        self.rack = rack
        self.unknown_tags = unknown_tags


class UpdateMetadataRequest(Message):
    __slots__ = ("controller_id", "is_kraft_controller", "type", "controller_epoch", "broker_epoch", "ungrouped_partition_states", "topic_states", "live_brokers", "unknown_tags",)
    API_KEY = 6
    MIN_VERSION = 0
    MAX_VERSION = 8
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        type: int = 0,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        ungrouped_partition_states: list[UpdateMetadataPartitionState] = EMPTY_LIST,
        topic_states: list[UpdateMetadataTopicState] = EMPTY_LIST,
        live_brokers: list[UpdateMetadataBroker] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.controller_id = controller_id
        self.is_kraft_controller = is_kraft_controller
        self.type = type
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.ungrouped_partition_states = [] if ungrouped_partition_states is EMPTY_LIST else ungrouped_partition_states
        self.topic_states = [] if topic_states is EMPTY_LIST else topic_states
        self.live_brokers = [] if live_brokers is EMPTY_LIST else live_brokers
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 8:
            raise unencodable(UpdateMetadataRequest, version)
        try:
            _write_update_metadata_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(UpdateMetadataRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[UpdateMetadataRequest, int]:
        if not 0 <= version <= 8:
            raise undecodable(UpdateMetadataRequest, version)
        try:
            return _read_update_metadata_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(UpdateMetadataRequest, version, fault) from fault


class UpdateMetadataResponse(Message):
    __slots__ = ("error_code", "unknown_tags",)
    API_KEY = 6
    MIN_VERSION = 0
    MAX_VERSION = 8
    FLEXIBLE_FROM = 6

    def __init__(
        self,
        *,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 8:
            raise unencodable(UpdateMetadataResponse, version)
        try:
            _write_update_metadata_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(UpdateMetadataResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[UpdateMetadataResponse, int]:
        if not 0 <= version <= 8:
            raise undecodable(UpdateMetadataResponse, version)
        try:
            return _read_update_metadata_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(UpdateMetadataResponse, version, fault) from fault


_TAGS_UPDATE_METADATA_REQUEST = frozenset((0,))


def _read_update_metadata_partition_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateMetadataPartitionState, int]:
    m = object.__new__(UpdateMetadataPartitionState)
    if version >= 5:
        m.topic_name = ""
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    m.partition_index, m.controller_epoch, m.leader, m.leader_epoch = _unpack_iiii(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    m.isr, pos = read_numbers(buf, pos, count, "i", 4)
    (m.zk_version,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
        m.offline_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    else:
        m.offline_replicas = []
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_update_metadata_partition_state(out: bytearray, m: UpdateMetadataPartitionState, version: int) -> None:
    if version < 5:
        put_string(out, m.topic_name)
    out += _pack_iiii(m.partition_index, m.controller_epoch, m.leader, m.leader_epoch)
    if version >= 6:
        put_compact_count(out, len(m.isr))
    else:
        put_count(out, len(m.isr))
    put_numbers(out, m.isr, "i")
    out += _pack_i(m.zk_version)
    if version >= 6:
        put_compact_count(out, len(m.replicas))
    else:
        put_count(out, len(m.replicas))
    put_numbers(out, m.replicas, "i")
    if version >= 4:
        if version >= 6:
            put_compact_count(out, len(m.offline_replicas))
        else:
            put_count(out, len(m.offline_replicas))
        put_numbers(out, m.offline_replicas, "i")
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_update_metadata_topic_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateMetadataTopicState, int]:
    m = object.__new__(UpdateMetadataTopicState)
    if version >= 6:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    if version >= 7:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 24) if version >= 6 else read_count(buf, pos, limit, 24)
    partition_states_: list[UpdateMetadataPartitionState] = []
    for _ in range(count):
        partition_states_item, pos = _read_update_metadata_partition_state(buf, pos, limit, version)
        partition_states_.append(partition_states_item)
    m.partition_states = partition_states_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_update_metadata_topic_state(out: bytearray, m: UpdateMetadataTopicState, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    if version >= 7:
        put_uuid(out, m.topic_id)
    if version >= 6:
        put_compact_count(out, len(m.partition_states))
    else:
        put_count(out, len(m.partition_states))
    for partition_states_item in m.partition_states:
        _write_update_metadata_partition_state(out, partition_states_item, version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_update_metadata_endpoint(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateMetadataEndpoint, int]:
    m = object.__new__(UpdateMetadataEndpoint)
    (m.port,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 6:
        m.host, pos = read_compact_string(buf, pos, limit)
    else:
        m.host, pos = read_string(buf, pos, limit)
    if version >= 6:
        m.listener, pos = read_compact_string(buf, pos, limit)
    elif version >= 3:
        m.listener, pos = read_string(buf, pos, limit)
    else:
        m.listener = ""
    (m.security_protocol,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_update_metadata_endpoint(out: bytearray, m: UpdateMetadataEndpoint, version: int) -> None:
    out += _pack_i(m.port)
    if version >= 6:
        put_compact_string(out, m.host)
    else:
        put_string(out, m.host)
    if version >= 6:
        put_compact_string(out, m.listener)
    elif version >= 3:
        put_string(out, m.listener)
    out += _pack_h(m.security_protocol)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_update_metadata_broker(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateMetadataBroker, int]:
    m = object.__new__(UpdateMetadataBroker)
    (m.id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        m.v0_host = ""
        m.v0_port = 0
        count, pos = read_compact_count(buf, pos, limit, 8) if version >= 6 else read_count(buf, pos, limit, 8)
        endpoints_: list[UpdateMetadataEndpoint] = []
        for _ in range(count):
            endpoints_item, pos = _read_update_metadata_endpoint(buf, pos, limit, version)
            endpoints_.append(endpoints_item)
        m.endpoints = endpoints_
    else:
        m.v0_host, pos = read_string(buf, pos, limit)
        (m.v0_port,) = _unpack_i(buf, pos)
        pos += 4
        m.endpoints = []
    if version >= 6:
        m.rack, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 2:
        m.rack, pos = read_nullable_string(buf, pos, limit)
    else:
        m.rack = ""
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_update_metadata_broker(out: bytearray, m: UpdateMetadataBroker, version: int) -> None:
    out += _pack_i(m.id)
    if version >= 1:
        if version >= 6:
            put_compact_count(out, len(m.endpoints))
        else:
            put_count(out, len(m.endpoints))
        for endpoints_item in m.endpoints:
            _write_update_metadata_endpoint(out, endpoints_item, version)
    else:
        put_string(out, m.v0_host)
        out += _pack_i(m.v0_port)
    if version >= 6:
        put_compact_nullable_string(out, m.rack)
    elif version >= 2:
        put_nullable_string(out, m.rack)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_update_metadata_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateMetadataRequest, int]:
    m = object.__new__(UpdateMetadataRequest)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 8:
        m.is_kraft_controller = buf[pos] != 0
        pos += 1
        m.type = 0
    else:
        m.is_kraft_controller = False
        m.type = 0
    (m.controller_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 5:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
        m.ungrouped_partition_states = []
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
        topic_states_: list[UpdateMetadataTopicState] = []
        for _ in range(count):
            topic_states_item, pos = _read_update_metadata_topic_state(buf, pos, limit, version)
            topic_states_.append(topic_states_item)
        m.topic_states = topic_states_
    else:
        m.broker_epoch = -1
        count, pos = read_count(buf, pos, limit, 30)
        ungrouped_partition_states_: list[UpdateMetadataPartitionState] = []
        for _ in range(count):
            ungrouped_partition_states_item, pos = _read_update_metadata_partition_state(buf, pos, limit, version)
            ungrouped_partition_states_.append(ungrouped_partition_states_item)
        m.ungrouped_partition_states = ungrouped_partition_states_
        m.topic_states = []
    count, pos = read_compact_count(buf, pos, limit, 7) if version >= 6 else read_count(buf, pos, limit, 7)
    live_brokers_: list[UpdateMetadataBroker] = []
    for _ in range(count):
        live_brokers_item, pos = _read_update_metadata_broker(buf, pos, limit, version)
        live_brokers_.append(live_brokers_item)
    m.live_brokers = live_brokers_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_update_metadata_request_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_update_metadata_request_tags(m: UpdateMetadataRequest, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            if version < 8:
                raise tag_too_early(m, tag, version)
            (m.type,) = _unpack_b(buf, pos)
            pos += 1
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_update_metadata_request(out: bytearray, m: UpdateMetadataRequest, version: int) -> None:
    out += _pack_i(m.controller_id)
    if version >= 8:
        out.append(1 if m.is_kraft_controller else 0)
    else:
        if m.is_kraft_controller:
            raise not_in_version(m, "is_kraft_controller", version)
        if m.type != 0:
            raise not_in_version(m, "type", version)
    out += _pack_i(m.controller_epoch)
    if version >= 5:
        out += _pack_q(m.broker_epoch)
        if m.ungrouped_partition_states != []:
            raise not_in_version(m, "ungrouped_partition_states", version)
        if version >= 6:
            put_compact_count(out, len(m.topic_states))
        else:
            put_count(out, len(m.topic_states))
        for topic_states_item in m.topic_states:
            _write_update_metadata_topic_state(out, topic_states_item, version)
    else:
        put_count(out, len(m.ungrouped_partition_states))
        for ungrouped_partition_states_item in m.ungrouped_partition_states:
            _write_update_metadata_partition_state(out, ungrouped_partition_states_item, version)
        if m.topic_states != []:
            raise not_in_version(m, "topic_states", version)
    if version >= 6:
        put_compact_count(out, len(m.live_brokers))
    else:
        put_count(out, len(m.live_brokers))
    for live_brokers_item in m.live_brokers:
        _write_update_metadata_broker(out, live_brokers_item, version)
    if version >= 6:
        tags: list[tuple[int, bytearray]] = []
        if version >= 8 and m.type != 0:
            tag = bytearray()
            tag += _pack_b(m.type)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_UPDATE_METADATA_REQUEST)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_update_metadata_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateMetadataResponse, int]:
    m = object.__new__(UpdateMetadataResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_update_metadata_response(out: bytearray, m: UpdateMetadataResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
