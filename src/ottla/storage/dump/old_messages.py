"""Messages of the formats before record batches, as a dump shows them: one line each, and their records below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.records.batch import LENGTH_MIN, LOG_OVERHEAD, NO_SEQUENCE, BatchHeader
from ottla.records.compression import NAMES
from ottla.records.errors import RecordError
from ottla.records.old_messages import OldMessage, unfold
from ottla.storage.dump.entries import Finding, MessageEntry, RecordEntry

_NOBODY: Final = -1


def message_entry(message: OldMessage) -> MessageEntry:
    return MessageEntry(
        offset=message.offset,
        position=message.position,
        timestamp_type=message.timestamp_type,
        timestamp=message.timestamp,
        size=message.size,
        magic=message.magic,
        compression=NAMES.get(message.codec, str(message.codec)),
        crc=message.crc,
        is_valid=message.is_valid,
    )


def message_records(path: str, message: OldMessage, bytes_max: int) -> Iterator[RecordEntry | Finding]:
    """What is in one message whose checksum is right."""
    previous = -1
    try:
        for one in unfold(message, bytes_max):
            yield old_record(message_entry(one), NAMES.get(message.codec, ""), one.key, one.value)
            if not previous < one.offset <= message.offset:
                what = f"record {one.offset} has no place between {previous} and {message.offset}"
                yield Finding(path, message.position, what)
            previous = one.offset
    except RecordError as error:
        what = f"the checksum is right, but the records cannot be read: {error}"
        yield Finding(path, message.position, what)


def old_record(message: MessageEntry, compression: str, key: bytes | None, value: bytes | None) -> RecordEntry:
    """Without all that came with batches; `compression` is that of the wrapper."""
    return RecordEntry(
        offset=message.offset,
        position=message.position,
        timestamp_type=message.timestamp_type,
        timestamp=message.timestamp,
        is_valid=message.is_valid,
        key_size=-1 if key is None else len(key),
        value_size=-1 if value is None else len(value),
        magic=message.magic,
        compression=compression,
        producer_id=_NOBODY,
        producer_epoch=_NOBODY,
        sequence=NO_SEQUENCE,
        is_transactional=False,
        headers=[],
        key=key,
        value=value,
        control_type=None,
        coordinator_epoch=None,
    )


def as_header(message: OldMessage) -> BatchHeader:
    """What an index is checked with: a batch of this one offset, in the message's place."""
    return BatchHeader(
        base_offset=message.offset,
        length=max(message.size - LOG_OVERHEAD, LENGTH_MIN),
        leader_epoch=_NOBODY,
        magic=message.magic,
        crc=message.crc,
        attributes=message.attributes,
        last_offset_delta=0,
        base_timestamp=message.timestamp,
        max_timestamp=message.timestamp,
        producer_id=_NOBODY,
        producer_epoch=_NOBODY,
        base_sequence=NO_SEQUENCE,
        count=1,
    )
