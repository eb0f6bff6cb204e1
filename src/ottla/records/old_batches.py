"""Messages of magic 0 and 1 made into record batches, as Kafka's own consumer takes them for such.

A wrapper becomes a batch under its codec, with the offsets that its messages have; messages that stand alone become a
batch together. What a broker had set for a time stays one that a broker has set, and what had none has none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from ottla.records.batch import CREATE_TIME, LOG_APPEND_TIME, LOG_OVERHEAD, Readable
from ottla.records.compression import NONE
from ottla.records.errors import CorruptBatch, RecordError
from ottla.records.legacy import is_legacy
from ottla.records.old_messages import LOG_APPEND_TIME_FLAG, OldMessage, message_size, parse_message, unfold
from ottla.records.record import Record, encode_batch

#: Of messages that stand alone, so many to a batch: a reader decodes one at a time.
_TOGETHER_MAX: Final = 10_000


def as_batches(buf: Readable, *, check_crcs: bool) -> bytes:
    """The whole old messages that `buf` begins with as batches, and behind them all that is none, as it stands.

    What is wrong with a message is raised where it is the first, as RecordError; otherwise all before it is given.
    """
    made: list[bytes] = []
    pos = 0
    try:
        for group in _groups(buf, check_crcs):
            made.append(_batch(group))
            pos = group[-1].position + group[-1].size
    except RecordError:
        if not made:
            raise
        return b"".join(made)
    return b"".join(made) + bytes(buf[pos:])


def _groups(buf: Readable, check_crcs: bool) -> Iterator[list[OldMessage]]:
    """Messages that become one batch: a wrapper, or some that stand alone and rise by their offsets."""
    group: list[OldMessage] = []
    for message in _messages(buf, check_crcs):
        alone = not message.is_wrapper and not message.attributes & LOG_APPEND_TIME_FLAG
        goes_on = alone and group and group[-1].offset < message.offset and len(group) < _TOGETHER_MAX
        if group and not goes_on:
            yield group
            group = []
        group.append(message)
        if not alone:
            yield group
            group = []
    if group:
        yield group


def _messages(buf: Readable, check_crcs: bool) -> Iterator[OldMessage]:
    pos = 0
    while len(buf) - pos >= LOG_OVERHEAD and is_legacy(buf, pos) and pos + message_size(buf, pos) <= len(buf):
        try:
            message = parse_message(buf, pos, pos)
            if check_crcs and not message.is_valid:
                raise CorruptBatch(f"the checksum of the message at offset {message.offset} does not match")
        except RecordError:
            if pos:
                return
            raise
        yield message
        pos += message.size


def _batch(group: list[OldMessage]) -> bytes:
    first = group[0]
    messages = list(unfold(first)) if first.is_wrapper else group
    broker_time = bool(messages[0].attributes & LOG_APPEND_TIME_FLAG)
    if messages[-1].offset != group[-1].offset:
        raise CorruptBatch(f"the last message of the wrapper at offset {first.offset} has {messages[-1].offset}")
    try:
        return encode_batch(
            [Record(one.offset, one.timestamp, one.key, one.value, ()) for one in messages],
            base_offset=messages[0].offset,
            compression=first.codec if first.is_wrapper else NONE,
            timestamp_type=LOG_APPEND_TIME if broker_time else CREATE_TIME,
        )
    except (ValueError, OverflowError, struct.error) as error:
        raise CorruptBatch(f"the message at offset {first.offset} cannot be: {error}") from None
