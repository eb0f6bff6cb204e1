"""Control records: what brokers write between the records of clients, and consumers never show.

A control batch has the control bit and, in practice, one record. Its key says the type, as two 16-bit numbers (version
0 and the type). The end of a transaction is marked by ABORT or COMMIT, whose value holds a version and the epoch of the
coordinator that wrote it. The other types belong to Kafka's metadata log; they are recognised so that tools can name
them, and their values are left as bytes.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL,
    Readable,
    patch_crc,
)
from ottla.records.errors import CorruptBatch

_KEY: Final = struct.Struct(">hh")
_END_OF_TRANSACTION: Final = struct.Struct(">hi")
KEY_VERSION: Final = 0
VALUE_VERSION: Final = 0
#: The record of a marker as brokers write it, all of whose sizes are known: its own size, attributes, differences of
#: time and offset, key, value, and no headers.
_MARKER_RECORD: Final = struct.Struct(">BBBBBhhBhiB")
#: As varints, of which the zigzag doubles them.
_RECORD_SIZE: Final = 2 * (_MARKER_RECORD.size - 1)
_KEY_SIZE: Final = 2 * _KEY.size
_VALUE_SIZE: Final = 2 * _END_OF_TRANSACTION.size
_MARKER: Final = struct.Struct(HEADER.format + _MARKER_RECORD.format.removeprefix(">"))
_MARKER_ATTRIBUTES: Final = TRANSACTIONAL | CONTROL


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    #: A type of a newer broker: readers pass over it.
    UNKNOWN = -1


class ControlRecord(NamedTuple):
    type: ControlType
    #: The number as it stood, which is of interest where the type is UNKNOWN.
    type_id: int
    #: Of the end of a transaction; None for every other type.
    coordinator_epoch: int | None

    @property
    def ends_transaction(self) -> bool:
        return self.coordinator_epoch is not None


def parse_control(key: Readable | None, value: Readable | None) -> ControlRecord:
    """What a control record says; raises CorruptBatch. Longer keys and values, of later versions, are accepted."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatch(f"the key of a control record has {0 if key is None else len(key)} bytes, not {_KEY.size}")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"the key of a control record has the version {version}")
    try:
        control_type = ControlType(type_id)
    except ValueError:
        control_type = ControlType.UNKNOWN
    if control_type not in {ControlType.ABORT, ControlType.COMMIT}:
        return ControlRecord(control_type, type_id, None)
    if value is None or len(value) < _END_OF_TRANSACTION.size:
        raise CorruptBatch(f"the value of an end of transaction must have {_END_OF_TRANSACTION.size} bytes")
    version, coordinator_epoch = _END_OF_TRANSACTION.unpack_from(value)
    if version < 0:
        raise CorruptBatch(f"the value of an end of transaction has the version {version}")
    return ControlRecord(control_type, type_id, coordinator_epoch)


def control_key(control_type: ControlType) -> bytes:
    return _KEY.pack(KEY_VERSION, control_type)


def control_batch(
    control_type: ControlType,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The batch that ends a producer's transaction in one partition: a single marker, ABORT or COMMIT.

    `replication/journal_producers.py` makes it of what a coordinator asks for.
    """
    assert control_type in {ControlType.ABORT, ControlType.COMMIT}, "other types are not a transaction's end"
    batch = bytearray(_MARKER.size)
    _MARKER.pack_into(
        batch,
        0,
        *(base_offset, _MARKER.size - LOG_OVERHEAD, leader_epoch, MAGIC, 0, _MARKER_ATTRIBUTES, 0),
        *(timestamp, timestamp, producer_id, producer_epoch, NO_SEQUENCE, 1),
        *(_RECORD_SIZE, 0, 0, 0, _KEY_SIZE, KEY_VERSION, control_type),
        *(_VALUE_SIZE, VALUE_VERSION, coordinator_epoch, 0),
    )
    patch_crc(batch, 0)
    return bytes(batch)


def plain_marker(batch: Readable) -> tuple[ControlType, int] | None:
    """What a control batch says that is as `control_batch` writes it: ABORT or COMMIT, and the coordinator's epoch.

    None of any other, which may be a marker all the same.
    """
    if len(batch) != _MARKER.size:
        return None
    base_offset, length, _, magic, _, attributes, delta, _, _, _, _, _, count, *record = _MARKER.unpack_from(batch)
    type_id, coordinator_epoch = record[6], record[9]
    if record != [
        _RECORD_SIZE,
        0,
        0,
        0,
        _KEY_SIZE,
        KEY_VERSION,
        type_id,
        _VALUE_SIZE,
        VALUE_VERSION,
        coordinator_epoch,
        0,
    ]:
        return None
    if (length, magic, attributes & COMPRESSION_MASK, delta, count) != (len(batch) - LOG_OVERHEAD, MAGIC, 0, 0, 1):
        return None
    return (_ENDS[type_id], coordinator_epoch) if base_offset >= 0 and type_id in _ENDS else None


_ENDS: Final = {int(each): each for each in (ControlType.ABORT, ControlType.COMMIT)}
