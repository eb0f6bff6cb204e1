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

from ottla.records.batch import NO_SEQUENCE, Readable
from ottla.records.builder import attribute_bits, build_batch, encode_record
from ottla.records.errors import CorruptBatch

_KEY: Final = struct.Struct(">hh")
_END_OF_TRANSACTION: Final = struct.Struct(">hi")
KEY_VERSION: Final = 0
VALUE_VERSION: Final = 0


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
    value = _END_OF_TRANSACTION.pack(VALUE_VERSION, coordinator_epoch)
    return build_batch(
        encode_record(0, 0, control_key(control_type), value, ()),
        count=1,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        base_offset=base_offset,
        attributes=attribute_bits(transactional=True, control=True),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        leader_epoch=leader_epoch,
    )
