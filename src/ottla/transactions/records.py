"""The records of `__transaction_state`: a transactional id, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.model import NO_PRODUCER_ID, TopicPartition
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.generated.transaction_log_key import TransactionLogKey
from ottla.protocol.generated.transaction_log_value import PartitionsSchema, TransactionLogValue
from ottla.protocol.header import PLAIN_FRAME_BYTES_MAX
from ottla.protocol.hot.transaction_value import (
    AT_REST,
    AT_REST_NEW,
    BEFORE_PARTITIONS,
    BEHIND_PARTITIONS,
    BEHIND_PARTITIONS_NEW,
    NO_PARTITIONS,
    NULL_PARTITIONS,
    one_partition,
)
from ottla.protocol.stepping import DecodingAllowance
from ottla.steps import Steps, in_order_of_names, pieces
from ottla.transactions.states import DEAD_OR_UNDER_WAY, TransactionStatus
from ottla.transactions.transaction import NO_PRODUCER_EPOCH, Transaction

#: The kind of a key, and its version in one number.
TRANSACTION: Final = 0
#: With the fields that a level of `transaction.version` above 0 needs.
VALUE_VERSION: Final = 1
#: Partitions of a transaction whose record is made without a pause: a tenth of a millisecond.
PARTITIONS_AT_ONCE_MAX: Final = 256

_KIND: Final = INT16.pack(TRANSACTION)
_VERSION: Final = INT16.pack(VALUE_VERSION)
_unpack_number: Final = INT16.unpack_from
_unpack_at_rest: Final = AT_REST.unpack_from
_unpack_at_rest_new: Final = AT_REST_NEW.unpack_from
_pack_before: Final = BEFORE_PARTITIONS.pack
_pack_behind: Final = BEHIND_PARTITIONS.pack
_pack_behind_new: Final = BEHIND_PARTITIONS_NEW.pack


class BadRecord(DecodeError):
    """A record of the topic that is not what its key says. It is skipped, and named in a warning."""


def transaction_key(transactional_id: str) -> bytes:
    """EncodeError if the id is longer than a string may be."""
    return _KIND + TransactionLogKey(transactional_id=transactional_id).encode(0)


def transaction_value(known: Transaction) -> bytes:
    """Of up to PARTITIONS_AT_ONCE_MAX partitions: `transaction_value_steps` makes the same bytes of more."""
    if (
        len(known.partitions) <= 1
        and known.previous_producer_id != NO_PRODUCER_ID
        and known.next_producer_id == NO_PRODUCER_ID
    ):
        return _short_value(known)
    topics = None if known.status is TransactionStatus.EMPTY else _by_topic(known.partitions)
    out = bytearray(_VERSION)
    _value(known, topics).encode_into(out, VALUE_VERSION)
    return bytes(out)


def transaction_value_steps(known: Transaction) -> Steps[bytes]:
    """Ten thousand partitions take five milliseconds, and hundreds of clients may have such a transaction each."""
    topics: dict[str, list[int]] = {}
    for piece in pieces(known.partitions):
        for topic, partition in piece:
            topics.setdefault(topic, []).append(partition)
        yield
    found: list[PartitionsSchema] = []
    for names in pieces((yield from in_order_of_names(topics))):
        found += [PartitionsSchema(topic=name, partition_ids=sorted(topics[name])) for name in names]
        yield
    out = bytearray(_VERSION)
    yield from _value(known, found).encode_steps(out, VALUE_VERSION)
    return bytes(out)


def _value(known: Transaction, topics: list[PartitionsSchema] | None) -> TransactionLogValue:
    assert known.status is not TransactionStatus.EMPTY or not known.partitions
    return TransactionLogValue(
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        transaction_timeout_ms=known.timeout_ms,
        transaction_status=known.status,
        transaction_partitions=topics,
        transaction_last_update_timestamp_ms=known.updated_ms,
        transaction_start_timestamp_ms=known.started_ms,
        client_transaction_version=known.client_version,
        previous_producer_id=known.previous_producer_id,
        next_producer_id=known.next_producer_id,
    )


def _short_value(known: Transaction) -> bytes:
    """Of at most one partition, which most transactions have; in a fifth of the time."""
    producer_id, epoch, timeout_ms, status, partitions, started_ms, updated_ms, previous, _, _, version = known
    before = _pack_before(VALUE_VERSION, producer_id, epoch, timeout_ms, status)
    if partitions:
        (only,) = partitions
        between = one_partition(only)
    else:
        between = NULL_PARTITIONS if status is TransactionStatus.EMPTY else NO_PARTITIONS
    if version:
        return before + between + _pack_behind_new(updated_ms, started_ms, 2, 0, 8, previous, 2, 2, version)
    return before + between + _pack_behind(updated_ms, started_ms, 1, 0, 8, previous)


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic=topic, partition_ids=sorted(topics[topic])) for topic in sorted(topics)]


def read_key(key: bytes | None) -> str:
    if key is None or len(key) < 2:
        raise BadRecord("no key" if key is None else f"a key of {len(key)} bytes")
    kind = _unpack_number(key)[0]
    if kind != TRANSACTION:
        raise BadRecord(f"a key of the unknown type {kind & 0xFFFF}")
    try:
        read, end = TransactionLogKey.decode(key, 0, 2)
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    if end != len(key):
        raise BadRecord(f"{len(key) - end} bytes follow the transactional id")
    return read.transactional_id


def read_short_value(value: bytes) -> Transaction:
    """Of up to PLAIN_FRAME_BYTES_MAX bytes."""
    known = _read_at_rest(value)
    if known is not None:
        return known
    try:
        read, end = TransactionLogValue.decode(value, _version(value), 2)
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    return _transaction(read, end, value)


def _read_at_rest(value: bytes) -> Transaction | None:
    """Ids at rest, as this version and Kafka's write them: nearly all of a hundred thousand, in a fifth of the time."""
    if len(value) not in (AT_REST.size, AT_REST_NEW.size):
        return None
    version, producer_id, epoch, timeout_ms, status, partitions, updated_ms, started_ms, tags, tag, size, previous = (
        _unpack_at_rest(value)
    )
    client_version = 0
    if len(value) == AT_REST_NEW.size:
        *_, version_tag, version_size, client_version = _unpack_at_rest_new(value)
        if (tags, version_tag, version_size) != (2, 2, 2):
            return None
    elif tags != 1:
        return None
    stored = _STORED.get(status)
    if version != VALUE_VERSION or partitions > 1 or (tag, size) != (0, 8) or stored is None:
        return None
    return Transaction(
        producer_id,
        epoch,
        timeout_ms,
        stored,
        _NONE,
        started_ms,
        updated_ms,
        previous,
        client_version=client_version,
    )


def read_value(value: bytes) -> Steps[Transaction]:
    """In one piece where it is small."""
    if len(value) <= PLAIN_FRAME_BYTES_MAX:
        return read_short_value(value)
    try:
        read, end = yield from TransactionLogValue.decode_steps(value, _version(value), 2, DecodingAllowance())
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    return _transaction(read, end, value)


def _version(value: bytes) -> int:
    if len(value) < 2:
        raise BadRecord(f"a value of {len(value)} bytes")
    version: int = _unpack_number(value)[0]
    return version


def _transaction(read: TransactionLogValue, end: int, value: bytes) -> Transaction:
    if end != len(value):
        raise BadRecord(f"{len(value) - end} bytes follow the value")
    status = _STORED.get(read.transaction_status)
    if status is None:
        raise BadRecord(f"a transaction in the state {read.transaction_status}")
    return Transaction(
        producer_id=read.producer_id,
        producer_epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        status=status,
        partitions=_partitions(read),
        started_ms=read.transaction_start_timestamp_ms,
        updated_ms=read.transaction_last_update_timestamp_ms,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        client_version=read.client_transaction_version,
    )


_STORED: Final[Mapping[int, TransactionStatus]] = {
    int(status): status for status in TransactionStatus if status not in DEAD_OR_UNDER_WAY
}
_NONE: Final[frozenset[TopicPartition]] = frozenset()


def _partitions(read: TransactionLogValue) -> frozenset[TopicPartition]:
    if not read.transaction_partitions:
        return _NONE
    return frozenset(
        TopicPartition(each.topic, partition)
        for each in read.transaction_partitions
        for partition in each.partition_ids
    )
