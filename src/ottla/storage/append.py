"""What may be appended: who asks, what they are answered, and the client's batches that are not plain.

`Log.stage` accepts by itself what nearly every batch is: sound, alone, as its producer compressed it, with the
producer's own times, for a topic that stores what it gets. Everything else comes to `examine`, which refuses it with
Kafka's error or changes it as the topic asks. What is checked stands in `records/validate.py`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ottla.config import LogConfig
from ottla.model import ErrorCode
from ottla.records.batch import (
    COMPRESSION_MASK,
    CREATE_TIME,
    LOG_APPEND_TIME,
    BatchHeader,
    check_crc,
    parse_header,
)
from ottla.records.errors import RecordError
from ottla.records.validate import (
    NO_BOUND_MS,
    ZSTD_PRODUCE_VERSION,
    AppendRules,
    check_header,
    check_records,
    needs_records,
    produced_batch,
    stamp_time,
)
from ottla.storage.errors import AppendRefused


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


#: The attributes of a client's batch with nothing unusual about it: a codec. Of a transaction it is not usual: who
#: recognises requests by what stands before the batch must not let one pass that the request has no right to.
USUAL_ATTRIBUTES: Final = frozenset(range(5))
NOTHING_USUAL: Final[frozenset[int]] = frozenset()
#: The first version of a Produce request that refuses no batch by its version: the handler knows the real one.
_ANY_VERSION: Final = ZSTD_PRODUCE_VERSION


def usual_attributes(config: LogConfig) -> frozenset[int]:
    """Which attributes let a batch pass without `examine` under this configuration."""
    changes = config.uses_log_append_time or config.compression_type != "producer"
    looks_inside = config.is_compacted or config.message_timestamp_before_max_ms != NO_BOUND_MS
    return NOTHING_USUAL if changes or looks_inside else USUAL_ATTRIBUTES


def rules_of(config: LogConfig) -> AppendRules:
    return AppendRules(
        max_message_bytes=config.max_message_bytes,
        compacted=config.is_compacted,
        timestamp_type=LOG_APPEND_TIME if config.uses_log_append_time else CREATE_TIME,
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
    )


class Examined(NamedTuple):
    #: The batch as it is to be stored, in a writable buffer.
    records: memoryview
    header: BatchHeader
    #: When the broker stamped it; -1 where it did not.
    append_time_ms: int


def examine(records: memoryview, config: LogConfig, rules: AppendRules, now_ms: int, origin: Origin) -> Examined:
    """Refuses the batch with AppendRefused, or returns what is to be stored."""
    try:
        header = produced_batch(records, 0, len(records), api_version=_ANY_VERSION)
    except RecordError as error:
        raise AppendRefused(error.error_code, error.message, is_no_batch=True) from error
    try:
        stored = records[: header.size]
        if origin is Origin.COORDINATOR:
            # Made by this broker: without sequences, and with markers among them.
            assert check_crc(stored, 0, header.size)
            stamp_time(header, stored, 0, rules.timestamp_type, now_ms)
            return Examined(stored, parse_header(stored), now_ms if config.uses_log_append_time else -1)
        check_header(header, stored, 0, rules, now_ms)
        codec = _codec(config)
        if codec not in {None, header.attributes & COMPRESSION_MASK}:
            check_records(header, stored, 0, rules, now_ms)
            stored = _recompress(stored, codec, config)
            header = parse_header(stored)
        elif needs_records(header, rules):
            check_records(header, stored, 0, rules, now_ms)
        stamp_time(header, stored, 0, rules.timestamp_type, now_ms)
    except RecordError as error:
        raise AppendRefused(error.error_code, error.message, error.record_faults) from error
    _check_size(header.size, config)
    return Examined(stored, parse_header(stored), now_ms if config.uses_log_append_time else -1)


def _codec(config: LogConfig) -> int | None:
    """The codec that the topic wants all batches in; None where it takes them as they come."""
    from ottla.records.compression import NONE, codec_id

    if config.compression_type == "producer":
        return None
    return NONE if config.compression_type == "uncompressed" else codec_id(config.compression_type)


def _recompress(records: memoryview, codec: int | None, config: LogConfig) -> memoryview:
    from ottla.records.rewrite import recompress

    assert codec is not None
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    return memoryview(bytearray(recompress(records, 0, codec, levels.get(config.compression_type), check_crcs=False)))


def _check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise AppendRefused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes in the topic's compression, and the topic takes {config.max_message_bytes}",
        )
    if size > config.segment_bytes:
        raise AppendRefused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {size} bytes, and a segment of this topic at most {config.segment_bytes}",
        )
