"""What a dump consists of.

`fields` gives names and values in print order. The names and the words in the values are those of Kafka's
DumpLogSegments; a record carries what its line needs by itself, as its older versions printed it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.records.batch import MAGIC
from ottla.storage.formats.producer_snapshot import ProducerEntry

Value: TypeAlias = "str | int | bool | bytes | list[str] | None"


class BatchEntry(NamedTuple):
    base_offset: int
    last_offset: int
    record_count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    partition_leader_epoch: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    position: int
    #: "CreateTime" or "LogAppendTime": the name under which the time is printed.
    timestamp_type: str
    timestamp: int
    size: int
    magic: int
    compression: str
    crc: int
    is_valid: bool


class MessageEntry(NamedTuple):
    """A message of the formats before batches; one that is compressed has others in it."""

    #: Of a compressed one that of the last in it; in a file of Kafka 0.7 the byte of the partition where it begins.
    offset: int
    position: int
    #: "NoTimestampType" where the format has no times.
    timestamp_type: str
    timestamp: int
    size: int
    magic: int
    compression: str
    crc: int
    is_valid: bool


class RecordEntry(NamedTuple):
    offset: int
    #: Of the batch.
    position: int
    timestamp_type: str
    timestamp: int
    is_valid: bool
    #: -1 for null.
    key_size: int
    value_size: int
    magic: int
    compression: str
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    headers: list[tuple[str, bytes | None]]
    key: bytes | None
    value: bytes | None
    #: "COMMIT", "ABORT" or another control type's name; None for data.
    control_type: str | None
    coordinator_epoch: int | None


class OffsetIndexEntry(NamedTuple):
    offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    timestamp: int
    offset: int


class TxnIndexEntry(NamedTuple):
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class OffsetEntry(NamedTuple):
    topic: str
    partition: int
    offset: int


class PropertyEntry(NamedTuple):
    """One fact of `meta.properties`, `partition.metadata` and the like."""

    name: str
    value: str


class Finding(NamedTuple):
    """Something about the file that is worth saying."""

    path: str
    #: The byte at which it was met; None where it is about the whole file.
    position: int | None
    message: str
    #: Whether something is wrong. False for what only limits the check, or a file's unused tail.
    is_damage: bool = True
    #: The file could not be read, so that nothing is known of what is in it.
    is_unread: bool = False

    def __str__(self) -> str:
        where = self.path if self.position is None else f"{self.path} at byte {self.position}"
        return f"{where}: {self.message}"


Entry: TypeAlias = (
    BatchEntry
    | MessageEntry
    | RecordEntry
    | OffsetIndexEntry
    | TimeIndexEntry
    | TxnIndexEntry
    | ProducerEntry
    | EpochEntry
    | OffsetEntry
    | PropertyEntry
)


def fields(entry: Entry) -> list[tuple[str, Value]]:
    """Every field of an entry under Kafka's name for it."""
    if isinstance(entry, RecordEntry):
        return _record_fields(entry)
    if isinstance(entry, BatchEntry):
        return _batch_fields(entry)
    if isinstance(entry, MessageEntry):
        return _message_fields(entry)
    if isinstance(entry, ProducerEntry):
        return _producer_fields(entry)
    if isinstance(entry, PropertyEntry):
        return [(entry.name, entry.value)]
    return [(_camel(name), value) for name, value in entry._asdict().items()]


def _batch_fields(entry: BatchEntry) -> list[tuple[str, Value]]:
    return [
        ("baseOffset", entry.base_offset),
        ("lastOffset", entry.last_offset),
        ("count", entry.record_count),
        ("baseSequence", entry.base_sequence),
        ("lastSequence", entry.last_sequence),
        ("producerId", entry.producer_id),
        ("producerEpoch", entry.producer_epoch),
        ("partitionLeaderEpoch", entry.partition_leader_epoch),
        ("isTransactional", entry.is_transactional),
        ("isControl", entry.is_control),
        ("deleteHorizonMs", entry.delete_horizon_ms),
        *_form_fields(entry),
    ]


def _form_fields(entry: BatchEntry | MessageEntry) -> list[tuple[str, Value]]:
    return [
        ("position", entry.position),
        (entry.timestamp_type, entry.timestamp),
        ("size", entry.size),
        ("magic", entry.magic),
        ("compresscodec", entry.compression),
        ("crc", entry.crc),
        ("isvalid", entry.is_valid),
    ]


def _message_fields(entry: MessageEntry) -> list[tuple[str, Value]]:
    return [("offset", entry.offset), *_form_fields(entry)]


def _record_fields(entry: RecordEntry) -> list[tuple[str, Value]]:
    named: list[tuple[str, Value]] = [
        ("offset", entry.offset),
        ("position", entry.position),
        (entry.timestamp_type, entry.timestamp),
        ("isvalid", entry.is_valid),
        ("keysize", entry.key_size),
        ("valuesize", entry.value_size),
        ("magic", entry.magic),
        ("compresscodec", entry.compression),
    ]
    if entry.magic >= MAGIC:
        named += [
            ("producerId", entry.producer_id),
            ("producerEpoch", entry.producer_epoch),
            ("sequence", entry.sequence),
            ("isTransactional", entry.is_transactional),
            ("headerKeys", [key for key, _ in entry.headers]),
        ]
    if entry.control_type is not None:
        named.append(("endTxnMarker", entry.control_type))
        if entry.coordinator_epoch is not None:
            named.append(("coordinatorEpoch", entry.coordinator_epoch))
        return named
    if entry.key is not None:
        named.append(("key", entry.key))
    if entry.value is not None:
        named.append(("payload", entry.value))
    return named


def _producer_fields(entry: ProducerEntry) -> list[tuple[str, Value]]:
    first_sequence = entry.last_sequence - entry.offset_delta
    if first_sequence < 0 <= entry.last_sequence:
        first_sequence += 2**31  # sequence numbers start again at 0 after 2**31 - 1
    return [
        ("producerId", entry.producer_id),
        ("producerEpoch", entry.epoch),
        ("coordinatorEpoch", entry.coordinator_epoch),
        ("currentTxnFirstOffset", entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None),
        ("lastTimestamp", entry.timestamp),
        ("firstSequence", first_sequence if entry.last_sequence >= 0 else -1),
        ("lastSequence", entry.last_sequence),
        ("lastOffset", entry.last_offset),
        ("offsetDelta", entry.offset_delta),
    ]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
