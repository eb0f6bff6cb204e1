"""What can be wrong with a record batch. Decoders raise nothing else, whatever bytes they are given.

Each kind carries the code that a broker answers with, so that a handler needs no table of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ottla.model import ErrorCode


class RecordFault(NamedTuple):
    """One refused record of a batch, as ProduceResponse names it in `record_errors`."""

    #: The record's place in its batch, from 0.
    batch_index: int
    message: str


class RecordError(Exception):
    """A batch that cannot be read, or that a broker may not accept."""

    error_code: ClassVar[ErrorCode] = ErrorCode.CORRUPT_MESSAGE

    def __init__(self, message: str, record_faults: Sequence[RecordFault] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.record_faults = tuple(record_faults)


class CorruptBatch(RecordError):
    """Bytes that are no batch, or not the batch that its checksum or its own counts describe."""


class CorruptBlock(CorruptBatch):
    """A compressed block that does not decompress."""


class UnsupportedMagic(RecordError):
    """A message set of the formats before Kafka 0.11 (magic 0 and 1), where a batch is required."""

    error_code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class UnsupportedCodec(RecordError):
    """A compression codec that does not exist."""

    error_code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class DecompressionTooLarge(RecordError):
    """Compressed records that would grow beyond the caller's bound.

    Kafka has no such bound. MESSAGE_TOO_LARGE makes a producer split the batch and try again, so an honest one passes.
    """

    error_code = ErrorCode.MESSAGE_TOO_LARGE


class BatchTooLarge(RecordError):
    """A batch beyond the topic's max.message.bytes."""

    error_code = ErrorCode.MESSAGE_TOO_LARGE


class UnacceptableRecord(RecordError):
    """A batch that is sound but says something that a producer may not say."""

    error_code = ErrorCode.INVALID_RECORD


class UnacceptableTimestamp(RecordError):
    """A timestamp outside the topic's bounds, or of a type that only brokers set."""

    error_code = ErrorCode.INVALID_TIMESTAMP


class UnreadableBatch(RecordError):
    """A produced batch under an unknown codec, or one whose block does not decompress.

    Kafka's broker meets these with exceptions that it does not foresee, and answers so. Our message says more.
    """

    error_code = ErrorCode.UNKNOWN_SERVER_ERROR
