"""What goes in and comes out: records, and what is known of where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from ottla.client.arguments import GivenHeaders, a_kind_of
from ottla.client.errors import BadArgument, KafkaError
from ottla.client.schemas import SchemaNotLoaded
from ottla.records.builder import Headers

#: Offset of a record that was written, where the broker did not say which it got.
UNKNOWN_OFFSET: Final = -1

Checked = TypeVar("Checked")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """A record to be sent; key and value are what the producer's serializers take."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    #: Milliseconds since 1970; the producer's clock if None.
    timestamp: int | None = None
    headers: GivenHeaders = ()


class RawRecord(NamedTuple):
    """The same, checked: what goes into a batch."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int | None
    headers: Headers


def checked_records(given: Any) -> list[ProducerRecord]:
    """What `send_many` was given, if it is records and nothing else."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"records must be a list of ProducerRecord, not {a_kind_of(given)}")
    records = list(given)
    for number, record in enumerate(records):
        if not isinstance(record, ProducerRecord):
            raise BadArgument(f"records[{number}] must be a ProducerRecord, not {a_kind_of(record)}")
    return records


def checked_record(given: Any) -> ProducerRecord:
    if not isinstance(given, ProducerRecord):
        raise BadArgument(f"record must be a ProducerRecord, not {a_kind_of(given)}")
    return given


def numbered(number: int, check: Callable[..., Checked], *given: Any) -> Checked:
    """What a check gives; an error says which of the records it is about."""
    try:
        return check(*given)
    except SchemaNotLoaded:
        raise
    except KafkaError as error:
        raise type(error)(f"records[{number}]: {error}", code=error.code) from error.__cause__


class RecordMetadata(NamedTuple):
    """Where an acknowledged record is."""

    topic: str
    partition: int
    #: -1 with acks=0, or where the broker only remembers that it has the record already.
    offset: int
    #: The record's own, or the broker's where the topic says LogAppendTime.
    timestamp: int


class WrittenRows(NamedTuple):
    """Where an acknowledged batch of a table's rows is."""

    topic: str
    partition: int
    #: Of its first record; -1 with acks=0, or where the broker only remembers that it has the batch already.
    offset: int
    #: Of its records.
    rows: int


class ConsumerRecord(NamedTuple):
    """A record as it was read. A tuple, because half a million of them a second are made."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    #: 0: the producer's time (CreateTime), 1: the broker's (LogAppendTime).
    timestamp_type: int
    #: Bytes, or what the consumer's deserializers made of them.
    key: Any
    value: Any
    headers: Headers
    leader_epoch: int


class OffsetAndTimestamp(NamedTuple):
    """An answer to "which offset at this time"."""

    offset: int
    timestamp: int
    leader_epoch: int = -1
