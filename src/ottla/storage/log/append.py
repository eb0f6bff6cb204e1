"""What may be appended: its origins, what they are answered, and the client's batches that are not plain.

`Log.stage` accepts by itself what nearly every batch is: sound, alone, as its producer compressed it, with the
producer's own times, for a topic that stores what it gets. Everything else comes to `examine`, which refuses it with
Kafka's error or changes it as the topic asks. What is checked stands in `records/validate.py`. A batch with much in it
is not looked into inside the loop: it goes to another process by `examine_whole` (docs/decisions/record-checks.md).
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
    TIMESTAMP_TYPE_LOG_APPEND,
    BatchHeader,
    check_crc,
    parse_header,
)
from ottla.records.errors import RecordError
from ottla.records.plain import PLAIN_ATTRIBUTES
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
from ottla.records.walk import WalkAllowance, WalkTooLong
from ottla.storage.errors import AppendRefused, TooLongToCheck


class Origin(Enum):
    #: A producer: everything is checked.
    CLIENT = "client"
    #: A leader, whose batches are stored as they are.
    REPLICATION = "replication"
    #: A coordinator of this broker, which may write control batches and numbers no sequences.
    COORDINATOR = "coordinator"


class AppendResult(NamedTuple):
    first_offset: int
    last_offset: int
    #: When the broker stamped the batch; -1 where it keeps the producer's times. Of a duplicate: the time that is
    #: stored with the first one, the producer's or the broker's.
    append_time_ms: int
    #: The producer had sent this batch before: the offsets are those it got then.
    duplicate: bool
    log_start_offset: int


NOTHING_USUAL: Final[frozenset[int]] = frozenset()
#: The first version of a Produce request that refuses no batch by its version: the handler knows the real one.
_ANY_VERSION: Final = ZSTD_PRODUCE_VERSION


def usual_attributes(config: LogConfig) -> frozenset[int]:
    """Which attributes let a batch pass without `examine` under this configuration."""
    changes = config.uses_log_append_time or config.compression_type != "producer"
    looks_inside = config.is_compacted or config.message_timestamp_before_max_ms != NO_BOUND_MS
    return NOTHING_USUAL if changes or looks_inside else PLAIN_ATTRIBUTES


def rules_of(config: LogConfig) -> AppendRules:
    return AppendRules(
        max_message_bytes=config.max_message_bytes,
        compacted=config.is_compacted,
        timestamp_type=LOG_APPEND_TIME if config.uses_log_append_time else CREATE_TIME,
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
    )


#: What the loop looks at by itself: less than a millisecond of walking, a few of compressing.
IN_THE_LOOP: Final = WalkAllowance(records=1000, bytes=128 * 1024)


class ExaminedBatch(NamedTuple):
    #: The batch as it is to be stored, in a writable buffer.
    records: memoryview
    header: BatchHeader
    #: When the broker stamped it; -1 where it did not.
    append_time_ms: int


def examine(records: memoryview, config: LogConfig, rules: AppendRules, now_ms: int, origin: Origin) -> ExaminedBatch:
    """Refuses the batch with AppendRefused, or returns what is to be stored.

    TooLongToCheck where that is for another process to find out.
    """
    if origin is Origin.COORDINATOR:
        # Made by this broker: without sequences, and with markers among them.
        header = produced_batch(records, 0, len(records), api_version=_ANY_VERSION)
        assert check_crc(records, 0, header.size)
        if config.uses_log_append_time or header.attributes & TIMESTAMP_TYPE_LOG_APPEND:
            return _stamped(records[: header.size], config, now_ms)
        return ExaminedBatch(records[: header.size], header, -1)
    try:
        stored = _checked(records, config, rules, now_ms, IN_THE_LOOP)
        if config.uses_log_append_time:
            # Stamped in a copy: the log may refuse the batch yet, and the next look at it must find it as it was.
            stored = memoryview(bytearray(stored))
        return accept(stored, config, now_ms)
    except WalkTooLong:
        raise TooLongToCheck from None
    except RecordError as error:
        raise AppendRefused(error.error_code, error.message, error.record_faults) from error


class BatchVerdict(NamedTuple):
    """Of `examine_whole`: plain values, since it comes from another process."""

    #: Code, message, and index and reason of each record at fault; None where the batch may be stored.
    refusal: tuple[int, str, list[tuple[int, str]]] | None = None
    #: What is to be stored, where that is not the batch as it came.
    changed: bytes | None = None

    def refused(self) -> AppendRefused | None:
        if self.refusal is None:
            return None
        code, message, faults = self.refusal
        return AppendRefused(ErrorCode(code), message, faults)


def examine_whole(
    records: bytes | bytearray, config: LogConfig, now_ms: int, within: WalkAllowance | None = None
) -> BatchVerdict:
    """The checks of `examine`, however long they take. What it finds good is for `accept`, at the time of storing.

    Raises WalkTooLong where they go beyond `within`.
    """
    try:
        stored = _checked(memoryview(records), config, rules_of(config), now_ms, within)
        _check_size(len(stored), config)
    except RecordError as error:
        return BatchVerdict(
            (int(error.error_code), error.message, [(number, text) for number, text in error.record_faults])
        )
    except AppendRefused as refused:
        return BatchVerdict((int(refused.error), refused.message, []))
    return BatchVerdict(changed=None if stored.obj is records and len(stored) == len(records) else bytes(stored))


def _checked(
    records: memoryview, config: LogConfig, rules: AppendRules, now_ms: int, within: WalkAllowance | None
) -> memoryview:
    """The produced batch in the topic's codec; raises RecordError where it may not be stored."""
    try:
        header = produced_batch(records, 0, len(records), api_version=_ANY_VERSION)
    except RecordError as error:
        raise AppendRefused(error.error_code, error.message, is_no_batch=True) from error
    stored = records[: header.size]
    check_header(header, stored, 0, rules, now_ms, within)
    codec = _codec(config)
    recompresses = codec not in {None, header.attributes & COMPRESSION_MASK}
    if recompresses or needs_records(header, rules):
        payload = check_records(header, stored, 0, rules, now_ms, within=within)
        if recompresses:
            return _recompressed(header, payload, codec, config)
    return stored


def accept(records: memoryview, config: LogConfig, now_ms: int) -> ExaminedBatch:
    """A checked batch, stamped in place as the topic asks; raises AppendRefused where it is too large for it by now."""
    _check_size(len(records), config)
    return _stamped(records, config, now_ms)


def _stamped(records: memoryview, config: LogConfig, now_ms: int) -> ExaminedBatch:
    by_broker = config.uses_log_append_time
    stamp_time(parse_header(records), records, 0, LOG_APPEND_TIME if by_broker else CREATE_TIME, now_ms)
    return ExaminedBatch(records, parse_header(records), now_ms if by_broker else -1)


def _codec(config: LogConfig) -> int | None:
    """The codec that the topic wants all batches in; None where it takes them as they come."""
    from ottla.records.compression import NONE, codec_id

    if config.compression_type == "producer":
        return None
    return NONE if config.compression_type == "uncompressed" else codec_id(config.compression_type)


def _recompressed(header: BatchHeader, payload: bytes, codec: int | None, config: LogConfig) -> memoryview:
    from ottla.records.rewrite import recompress_payload

    assert codec is not None
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    return memoryview(bytearray(recompress_payload(header, payload, codec, levels.get(config.compression_type))))


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
