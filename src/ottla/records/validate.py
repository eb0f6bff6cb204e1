"""What a broker refuses of a produced batch, with Kafka's codes in Kafka's order (docs/formats/batch-checks.md).

The checks fall in two. Header checks compare a dozen numbers and the checksum; they run for every batch, inside the
loop that serves sockets. Record checks decompress and walk all records; they run only where a topic asks for what the
header cannot show: keys (a compacted topic), a bound on how old a record may be, or another codec than the producer's.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ottla.records import legacy, varint
from ottla.records.batch import (
    CODEC_MAX,
    COMPRESSION_MASK,
    CONTROL,
    CREATE_TIME,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_LOG_APPEND,
    BatchHeader,
    Readable,
    Writable,
    check_crc,
    parse_header,
    set_log_append_time,
    set_max_timestamp,
)
from ottla.records.compression import UNFOLDS_MAX, ZSTD
from ottla.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    CorruptBlock,
    RecordFault,
    UnacceptableRecord,
    UnacceptableTimestamp,
    UnreadableBatch,
    UnsupportedCodec,
)
from ottla.records.plain import COUNTED_RECORDS_MAX
from ottla.records.record import RECORD_BYTES_MIN, most_records
from ottla.records.walk import WalkAllowance, unpacked, walk_records

#: Kafka's default of message.timestamp.before.max.ms: no bound.
NO_BOUND_MS: Final = 2**63 - 1
#: Produce requests below this version may not carry zstd.
ZSTD_PRODUCE_VERSION: Final = 7
#: A refused batch names so many of its records, and an answer stays small.
RECORD_FAULTS_MAX: Final = 1000
#: A produced batch may unfold to so much where its records are looked at, or to twice the topic's max.message.bytes.
#: Readers take more: what was accepted can be read.
UNFOLDED_BYTES_MAX: Final = 64 * 1024 * 1024

_REFUSED_BITS: Final = CONTROL | TIMESTAMP_TYPE_LOG_APPEND
_SIZE: Final = struct.Struct(">i")


class AppendRules(NamedTuple):
    """A topic's configuration, as far as its batches must obey it."""

    max_message_bytes: int
    compacted: bool = False
    timestamp_type: int = CREATE_TIME
    before_max_ms: int = NO_BOUND_MS
    after_max_ms: int = NO_BOUND_MS


def produced_batch(buf: Readable, start: int, end: int, *, api_version: int) -> BatchHeader:
    """The header of the one batch that a Produce request (version 3 or later) may carry for a partition.

    What follows the batch and is no whole batch itself is ignored, as Kafka does: only `size` bytes are to be stored.
    """
    if end - start >= HEADER_SIZE and buf[start + MAGIC_AT] == MAGIC:
        header = parse_header(buf, start)
        codec = header.attributes & COMPRESSION_MASK
        if header.length + LOG_OVERHEAD == end - start and (codec != ZSTD or api_version >= ZSTD_PRODUCE_VERSION):
            return header  # as every client sends it; what follows sorts out the others
    following = _following(buf, start, end)
    if following is None:
        raise UnacceptableRecord(f"Produce requests of version {api_version} must have a record batch per partition")
    if buf[start + MAGIC_AT] != MAGIC:
        old = legacy.describe(buf, start, end)
        raise UnacceptableRecord(
            f"Produce requests of version {api_version} must have record batches, but this has {old}"
        )
    header = parse_header(buf, start)
    if header.attributes & COMPRESSION_MASK == ZSTD and api_version < ZSTD_PRODUCE_VERSION:
        raise UnsupportedCodec(f"Produce requests of version {api_version} may not use zstd")
    if following < end and _following(buf, following, end) is not None:
        raise UnacceptableRecord(f"Produce requests of version {api_version} must have one record batch per partition")
    return header


def _following(buf: Readable, pos: int, end: int) -> int | None:
    """The position behind the batch or old message at `pos`, None where no whole one is left."""
    if end - pos < LOG_OVERHEAD:
        return None
    (size,) = _SIZE.unpack_from(buf, pos + LENGTH_AT)
    if size < legacy.SIZE_MIN:
        raise CorruptBatch(f"a length of {size} is less than any record's ({legacy.SIZE_MIN})")
    if end - pos < legacy.BYTES_TO_MAGIC:
        return None
    magic = legacy.magic_at(buf, pos)
    if magic is None or not 0 <= magic <= MAGIC:
        raise CorruptBatch(f"unknown magic {magic}")
    following = pos + LOG_OVERHEAD + size
    return following if following <= end else None


def check_header(
    header: BatchHeader, buf: Readable, pos: int, rules: AppendRules, now_ms: int, within: WalkAllowance | None = None
) -> None:
    """The checks that need no records, for every batch: a handful of comparisons, and the checksum.

    A batch that is refused for its time is walked to name its records; `within` as in `check_records`.
    """
    base_offset, length, _, magic, _, attributes, last_delta, _, max_timestamp, producer_id, _, sequence, count = header
    size = length + LOG_OVERHEAD
    sound = (
        base_offset == 0
        and magic == MAGIC
        and HEADER_SIZE <= size <= rules[0]
        and count == last_delta + 1
        and count > 0
        and count * RECORD_BYTES_MIN <= (size - HEADER_SIZE) * UNFOLDS_MAX[attributes & COMPRESSION_MASK]
        and (sequence >= 0 or producer_id < 0)
        and not attributes & _REFUSED_BITS
        and attributes & COMPRESSION_MASK <= CODEC_MAX
        and max_timestamp - now_ms <= rules[4]
        and check_crc(buf, pos, size)
    )
    if not sound:
        _refuse(header, buf, pos, rules, now_ms, within)
    if count <= COUNTED_RECORDS_MAX and not attributes & COMPRESSION_MASK:
        if count == 1 and (first := buf[pos + HEADER_SIZE]) > 127:  # one record of 64 to 8191 bytes: one comparison
            second = buf[pos + HEADER_SIZE + 1]
            if second < 128 and HEADER_SIZE + 2 + ((first - 128 + (second << 7)) >> 1) == size and not first & 1:
                return
        _count_records(buf, pos + HEADER_SIZE, pos + size, count)


def _count_records(buf: Readable, pos: int, end: int, count: int) -> None:
    """Whether `count` records, by their lengths, fill the batch exactly."""
    for _ in range(count):
        if end - pos < RECORD_BYTES_MIN:
            raise UnacceptableRecord("Incorrect declared batch size, premature EOF reached")
        if (size := buf[pos]) < 128:
            pos += 1
        elif (byte := buf[pos + 1]) < 128:
            size += (byte << 7) - 128
            pos += 2
        else:
            size, used = varint.read_folded(bytes(buf[pos : pos + RECORD_BYTES_MIN]), 0)
            pos += used
        if size & 1:
            raise UnacceptableRecord("a record has a negative length")
        pos += size >> 1
    if pos > end:
        raise UnacceptableRecord("Incorrect declared batch size, premature EOF reached")
    if pos < end:
        raise UnacceptableRecord("Incorrect declared batch size, records still remaining in file")


def _refuse(
    header: BatchHeader, buf: Readable, pos: int, rules: AppendRules, now_ms: int, within: WalkAllowance | None
) -> None:
    """Says which check of `check_header` failed: the first one in Kafka's order. Passes where Kafka would."""
    if header.base_offset != 0:
        raise UnacceptableRecord(f"the base offset of a produced batch must be 0, but it is {header.base_offset}")
    if header.size > rules.max_message_bytes:
        raise BatchTooLarge(f"the batch has {header.size} bytes, the topic takes at most {rules.max_message_bytes}")
    if header.magic != MAGIC:
        raise UnacceptableRecord(f"batches must be of format {MAGIC}, but this has {header.magic}")
    if not check_crc(buf, pos, header.size):
        raise CorruptBatch(f"the batch is corrupt: its checksum {header.crc:#010x} does not match")
    if header.compression > CODEC_MAX:
        raise UnreadableBatch(f"unknown compression codec {header.compression}")
    if header.last_offset_delta < 0:
        raise UnacceptableRecord(f"the batch has an invalid offset range [0, {header.last_offset_delta}]")
    if header.count <= 0:
        raise UnacceptableRecord(f"invalid count of records {header.count}")
    if header.count != header.last_offset_delta + 1:
        raise UnacceptableRecord(
            f"the offset range [0, {header.last_offset_delta}] is not that of {header.count} records"
        )
    if header.is_control:
        raise UnacceptableRecord("clients are not allowed to write control records")
    if header.has_producer_id and header.base_sequence < 0:
        raise UnacceptableRecord(f"invalid sequence number {header.base_sequence} of producer {header.producer_id}")
    if header.count > most_records(header.compression, header.size - HEADER_SIZE):
        raise UnacceptableRecord("Incorrect declared batch size, premature EOF reached")
    _refuse_time(header, buf, pos, rules, now_ms, within)


def _refuse_time(
    header: BatchHeader, buf: Readable, pos: int, rules: AppendRules, now_ms: int, within: WalkAllowance | None
) -> None:
    latest = header.max_timestamp
    if header.is_log_append_time:
        # Then every record has the batch's latest time. Kafka lets it pass where the topic wants CreateTime.
        indexes = range(min(header.count, RECORD_FAULTS_MAX))
        if rules.timestamp_type == LOG_APPEND_TIME or latest == NO_TIMESTAMP:
            text = "Producer should not set timestamp type to LogAppendTime."
            raise _late_batch([RecordFault(index, text) for index in indexes])
        if not now_ms - rules.before_max_ms <= latest <= now_ms + rules.after_max_ms:
            raise _late_batch([RecordFault(index, _out_of_range(latest, index, rules, now_ms)) for index in indexes])
        return
    if rules.timestamp_type == CREATE_TIME and latest - now_ms > rules.after_max_ms:
        check_records(header, buf, pos, rules, now_ms, within=within)  # names the records
        raise UnacceptableTimestamp(f"the batch's latest time is out of range, though no record's is: {latest}")


def needs_records(header: BatchHeader, rules: AppendRules) -> bool:
    """Whether the header is too little to judge this batch by."""
    if rules.compacted:
        return True
    return (
        rules.before_max_ms != NO_BOUND_MS
        and rules.timestamp_type == CREATE_TIME
        and not header.attributes & TIMESTAMP_TYPE_LOG_APPEND
    )


def check_records(
    header: BatchHeader,
    buf: Readable,
    pos: int,
    rules: AppendRules,
    now_ms: int,
    *,
    bytes_max: int | None = None,
    within: WalkAllowance | None = None,
) -> bytes:
    """The checks of each record of a batch whose header has passed; the records, for a caller that goes on with them.

    Raises WalkTooLong where that takes more than may be done in this place.
    """
    assert header.magic == MAGIC
    if bytes_max is None:
        bytes_max = max(UNFOLDED_BYTES_MAX, 2 * rules.max_message_bytes)
    try:
        _, payload = unpacked(buf, pos, bytes_max=bytes_max, within=within, check_crcs=False)
        _judge_records(header, payload, rules, now_ms, within)
    except CorruptBlock as error:
        raise UnreadableBatch(error.message) from error
    except CorruptBatch as error:
        # The checksum is right, so that the producer wrote what cannot be read: Kafka calls that an invalid record.
        raise UnacceptableRecord(error.message) from error
    return payload


def _judge_records(
    header: BatchHeader, payload: bytes, rules: AppendRules, now_ms: int, within: WalkAllowance | None
) -> None:
    """A batch that cannot be read through is refused for that; then a late record decides for all, then a missing key,
    then an offset. A record has one fault, its missing key first."""
    low, high = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    wants_keys, wants_times = rules.compacted, rules.timestamp_type == CREATE_TIME
    faults: list[RecordFault] = []
    keyless = late = 0
    misplaced: tuple[int, int] | None = None
    for index, (timestamp, offset, has_key) in enumerate(walk_records(header, payload, within)):
        if wants_keys and not has_key:
            keyless += 1
            if len(faults) < RECORD_FAULTS_MAX:
                faults.append(RecordFault(index, "Compacted topic cannot accept message without key."))
        elif wants_times and not low <= timestamp <= high and timestamp != NO_TIMESTAMP:
            late += 1
            if len(faults) < RECORD_FAULTS_MAX:
                faults.append(RecordFault(index, _out_of_range(timestamp, index, rules, now_ms)))
        if offset != header.base_offset + index and misplaced is None:
            misplaced = index, offset
    if late:
        raise _late_batch(faults)
    if keyless:
        raise UnacceptableRecord(
            f"One or more records have been rejected due to {keyless} record errors in total", faults
        )
    if misplaced is not None:
        raise UnacceptableRecord(f"record {misplaced[0]} of the batch has the offset {misplaced[1]}")


def _out_of_range(timestamp: int, index: int, rules: AppendRules, now_ms: int) -> str:
    low, high = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    message = f"Timestamp {timestamp} of message with offset {index} is out of range."
    return f"{message} The timestamp should be within [{low}, {high}]"


def _late_batch(faults: list[RecordFault]) -> UnacceptableTimestamp:
    message = "One or more records have been rejected due to invalid timestamp"
    return UnacceptableTimestamp(message, faults[:RECORD_FAULTS_MAX])


def stamp_time(header: BatchHeader, buf: Writable, pos: int, timestamp_type: int, now_ms: int) -> None:
    """Gives a checked batch the topic's type of time, in place; mostly there is nothing to do."""
    if timestamp_type == LOG_APPEND_TIME:
        set_log_append_time(buf, pos, now_ms)
    elif header.attributes & TIMESTAMP_TYPE_LOG_APPEND:
        set_max_timestamp(buf, pos, header.max_timestamp, log_append_time=False)
