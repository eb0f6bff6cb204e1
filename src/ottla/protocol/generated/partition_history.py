"""How a partition came to be as it is, as the broker that answers saw it, and where its replicas are, as its leader knows.

Made from schemas/partition_history.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_numbers,
    put_tags,
    read_compact_count,
    read_numbers,
    read_tags,
)

_pack_iqqq = Struct(">iqqq").pack
_pack_qiii = Struct(">qiii").pack
_pack_qq = Struct(">qq").pack
_unpack_iqqq = Struct(">iqqq").unpack_from
_unpack_qiii = Struct(">qiii").unpack_from
_unpack_qq = Struct(">qq").unpack_from

class PartitionChange(Structure):
    __slots__ = ("time_ms", "controller_epoch", "leader_id", "leader_epoch", "isr_nodes", "replica_nodes", "unknown_tags",)

    def __init__(
        self,
        *,
        time_ms: int = 0,
        controller_epoch: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr_nodes: list[int] = EMPTY_LIST,
        replica_nodes: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.time_ms = time_ms
        self.controller_epoch = controller_epoch
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr_nodes = [] if isr_nodes is EMPTY_LIST else isr_nodes
        self.replica_nodes = [] if replica_nodes is EMPTY_LIST else replica_nodes
        self.unknown_tags = unknown_tags


class FollowerState(Structure):
    __slots__ = ("replica_id", "log_end_offset", "fetched_ms", "caught_up_ms", "unknown_tags",)

    def __init__(
        self,
        *,
        replica_id: int = 0,
        log_end_offset: int = 0,
        fetched_ms: int = -1,
        caught_up_ms: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.replica_id = replica_id
        self.log_end_offset = log_end_offset
        self.fetched_ms = fetched_ms
        self.caught_up_ms = caught_up_ms
        self.unknown_tags = unknown_tags


class PartitionHistory(Message):
    __slots__ = ("changes", "high_watermark", "log_end_offset", "followers", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        changes: list[PartitionChange] = EMPTY_LIST,
        high_watermark: int = -1,
        log_end_offset: int = -1,
        followers: list[FollowerState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.changes = [] if changes is EMPTY_LIST else changes
        self.high_watermark = high_watermark
        self.log_end_offset = log_end_offset
        self.followers = [] if followers is EMPTY_LIST else followers
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(PartitionHistory, version)
        try:
            _write_partition_history(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(PartitionHistory, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[PartitionHistory, int]:
        if not 0 <= version <= 0:
            raise undecodable(PartitionHistory, version)
        try:
            return _read_partition_history(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(PartitionHistory, version, fault) from fault


def _read_partition_change(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionChange, int]:
    m = object.__new__(PartitionChange)
    m.time_ms, m.controller_epoch, m.leader_id, m.leader_epoch = _unpack_qiii(buf, pos)
    pos += 20
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.isr_nodes, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.replica_nodes, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_change(out: bytearray, m: PartitionChange, version: int) -> None:
    out += _pack_qiii(m.time_ms, m.controller_epoch, m.leader_id, m.leader_epoch)
    put_compact_count(out, len(m.isr_nodes))
    put_numbers(out, m.isr_nodes, "i")
    put_compact_count(out, len(m.replica_nodes))
    put_numbers(out, m.replica_nodes, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_follower_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FollowerState, int]:
    m = object.__new__(FollowerState)
    m.replica_id, m.log_end_offset, m.fetched_ms, m.caught_up_ms = _unpack_iqqq(buf, pos)
    pos += 28
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_follower_state(out: bytearray, m: FollowerState, version: int) -> None:
    out += _pack_iqqq(m.replica_id, m.log_end_offset, m.fetched_ms, m.caught_up_ms)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_partition_history(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionHistory, int]:
    m = object.__new__(PartitionHistory)
    count, pos = read_compact_count(buf, pos, limit, 23)
    changes_: list[PartitionChange] = []
    for _ in range(count):
        changes_item, pos = _read_partition_change(buf, pos, limit, version)
        changes_.append(changes_item)
    m.changes = changes_
    m.high_watermark, m.log_end_offset = _unpack_qq(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 29)
    followers_: list[FollowerState] = []
    for _ in range(count):
        followers_item, pos = _read_follower_state(buf, pos, limit, version)
        followers_.append(followers_item)
    m.followers = followers_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_history(out: bytearray, m: PartitionHistory, version: int) -> None:
    put_compact_count(out, len(m.changes))
    for changes_item in m.changes:
        _write_partition_change(out, changes_item, version)
    out += _pack_qq(m.high_watermark, m.log_end_offset)
    put_compact_count(out, len(m.followers))
    for followers_item in m.followers:
        _write_follower_state(out, followers_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
