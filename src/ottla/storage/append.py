"""What may be appended: who asks, what they are answered, and the checks of a client's batch that are not in its header's
ordinary case.

`Log.stage` accepts by itself what nearly every batch is: one batch, sound, uncompressed or compressed by its producer,
with timestamps of its own, for a topic that stores what it gets. Everything else comes here, to be refused with Kafka's
error, or to be changed as the topic asks.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.config import LogConfig
from ottla.model import ErrorCode, TopicPartition
from ottla.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_LOG_APPEND,
    TRANSACTIONAL,
    BatchHeader,
    check_crc,
    set_log_append_time,
)
from ottla.storage.errors import AppendRefused

if TYPE_CHECKING:
    from ottla.records.errors import RecordError


class Origin(Enum):
    #: A producer: everything is checked.
    CLIENT = "client"
    #: A leader, whose batches are stored as they are.
    REPLICATION = "replication"
    #: A coordinator of this broker, which may write control batches and numbers no sequences.
    COORDINATOR = "coordinator"


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    #: When the broker stamped the batch; -1 where it keeps the producer's times.
    append_time_ms: int
    #: The producer had sent this batch before: the offsets are those it got then.
    duplicate: bool
    log_start_offset: int


_CODECS: Final = range(5)
#: The attributes of a batch with nothing unusual about it: a known codec, perhaps transactional.
USUAL_ATTRIBUTES: Final = frozenset(bits | codec for codec in _CODECS for bits in (0, TRANSACTIONAL))
NOTHING_USUAL: Final[frozenset[int]] = frozenset()


def usual_attributes(config: LogConfig) -> frozenset[int]:
    """Which attributes let a batch pass without `examine` under this configuration."""
    if config.uses_log_append_time or config.compression_type != "producer" or config.is_compacted:
        return NOTHING_USUAL
    return USUAL_ATTRIBUTES


def largest_batch(config: LogConfig) -> int:
    return min(config.max_message_bytes, config.segment_bytes)


def examine(
    records: memoryview, tp: TopicPartition, config: LogConfig, now_ms: int, origin: Origin
) -> tuple[memoryview, int]:
    """Refuses the batch, or returns it as it is to be stored, and the time it was stamped with (-1: not stamped)."""
    header = _only_batch(records)
    size = header.size
    if size > config.max_message_bytes:
        raise AppendRefused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {tp} is {size} bytes which exceeds the maximum configured value "
            f"of {config.max_message_bytes}.",
        )
    if not check_crc(records, 0, size):
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt: the checksum of the batch for {tp} differs")
    if header.attributes & COMPRESSION_MASK not in _CODECS:
        raise AppendRefused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{header.attributes & COMPRESSION_MASK} is no compression codec"
        )
    _check_claims(header, tp, origin)
    stored, stamped = _as_the_topic_asks(records, header, tp, config, now_ms, origin)
    if len(stored) > config.segment_bytes:
        raise AppendRefused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {len(stored)} bytes in append to partition {tp}, which exceeds the maximum "
            f"configured segment size of {config.segment_bytes}.",
        )
    return stored, stamped


def _only_batch(records: memoryview) -> BatchHeader:
    """The header of the one batch that a request may carry for a partition."""
    size = len(records)
    length = int.from_bytes(records[8:12], "big", signed=True) if size >= LOG_OVERHEAD else -1
    if size > LOG_OVERHEAD and length < 14:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"Record size {length} is less than the minimum record overhead")
    magic = records[16] if size > 16 else -1
    if size > 16 and magic != MAGIC:
        if magic > MAGIC:
            raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
        raise AppendRefused(
            ErrorCode.INVALID_RECORD, f"Produce requests are only allowed to contain record batches with magic {MAGIC}"
        )
    if size < LOG_OVERHEAD or length + LOG_OVERHEAD > size:
        raise AppendRefused(
            ErrorCode.INVALID_RECORD, "Produce requests must have at least one record batch per partition"
        )
    if length < LENGTH_MIN:
        raise AppendRefused(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch is corrupted (the size {length + LOG_OVERHEAD} is smaller than the minimum allowed overhead "
            f"{HEADER_SIZE})",
        )
    if length + LOG_OVERHEAD < size:
        raise AppendRefused(
            ErrorCode.INVALID_RECORD, "Produce requests are only allowed to contain exactly one record batch per partition"
        )
    return tuple.__new__(BatchHeader, HEADER.unpack_from(records))


def _check_claims(header: BatchHeader, tp: TopicPartition, origin: Origin) -> None:
    """What a batch says of itself, against itself."""
    fault: str | None = None
    offsets = header.last_offset_delta + 1
    if header.base_offset != 0:
        fault = f"The baseOffset of the record batch in the append to {tp} should be 0, but it is {header.base_offset}"
    elif offsets <= 0:
        fault = f"Batch has an invalid offset range: [0, {header.last_offset_delta}]"
    elif header.count <= 0:
        fault = f"Invalid reported count for record batch: {header.count}"
    elif offsets != header.count:
        fault = f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count of records {header.count}"
    elif origin is Origin.CLIENT and header.attributes & CONTROL:
        fault = "Clients are not allowed to write control records"
    elif origin is Origin.CLIENT and header.producer_id >= 0 and header.base_sequence < 0:
        fault = f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
    if fault is not None:
        raise AppendRefused(ErrorCode.INVALID_RECORD, fault)


def _as_the_topic_asks(
    records: memoryview, header: BatchHeader, tp: TopicPartition, config: LogConfig, now_ms: int, origin: Origin
) -> tuple[memoryview, int]:
    if header.attributes & CONTROL:
        return records, -1
    if not config.uses_log_append_time:
        check_times(header, config, now_ms)
    stored = records
    if config.is_compacted or config.compression_type != "producer":
        stored = _look_inside(records, header, tp, config, origin)
    if config.uses_log_append_time:
        set_log_append_time(stored, 0, now_ms)
        return stored, now_ms
    return stored, -1


def check_times(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """The batch's own largest and first time: those of the records between are not looked at."""
    fault: str | None = None
    if header.attributes & TIMESTAMP_TYPE_LOG_APPEND:
        fault = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
    for timestamp in (header.base_timestamp, header.max_timestamp):
        if timestamp < 0:
            continue
        if timestamp > now_ms + config.message_timestamp_after_max_ms:
            bound = f"after now by more than {config.message_timestamp_after_max_ms} ms"
        elif timestamp < now_ms - config.message_timestamp_before_max_ms:
            bound = f"before now by more than {config.message_timestamp_before_max_ms} ms"
        else:
            continue
        fault = f"Timestamp {timestamp} of message is out of range: it is {bound}, now being {now_ms}"
    if fault is not None:
        raise AppendRefused(ErrorCode.INVALID_TIMESTAMP, fault, [(0, fault)])


def _look_inside(
    records: memoryview, header: BatchHeader, tp: TopicPartition, config: LogConfig, origin: Origin
) -> memoryview:
    """The checks and changes that need the records themselves: keys for a compacted topic, another compression."""
    from ottla.records import validate
    from ottla.records.errors import RecordError

    try:
        return validate.for_topic(
            records,
            needs_keys=config.is_compacted and origin is Origin.CLIENT,
            compression_type=config.compression_type,
            level=_level(config),
        )
    except RecordError as error:
        raise refusal(error) from error


def refusal(error: RecordError) -> AppendRefused:
    return AppendRefused(error.error_code, error.message, [(fault[0], fault[1]) for fault in error.record_faults])


def _level(config: LogConfig) -> int | None:
    return {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }.get(config.compression_type)
