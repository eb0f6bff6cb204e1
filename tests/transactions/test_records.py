"""The records of `__transaction_state`."""

from __future__ import annotations

import pytest
from tests.transactions.world import A, B, C

from ottla.model import NO_PRODUCER_ID, TopicPartition
from ottla.protocol.errors import EncodeError
from ottla.protocol.generated.transaction_log_value import PartitionsSchema, TransactionLogValue
from ottla.protocol.header import PLAIN_FRAME_BYTES_MAX
from ottla.steps import at_once
from ottla.transactions.records import BadRecord, read_key, read_value, transaction_key, transaction_value
from ottla.transactions.states import DEAD_OR_UNDER_WAY, TransactionStatus
from ottla.transactions.transaction import Transaction

S = TransactionStatus
AT_REST = Transaction(7, 3, 60_000, S.COMPLETE_COMMIT, frozenset(), 5, 6, 7)


def test_a_key_as_kafka_writes_it() -> None:
    assert transaction_key("abc") == b"\0\0\0\3abc"
    assert read_key(b"\0\0\0\3abc") == "abc"
    with pytest.raises(EncodeError):
        transaction_key("x" * 32_768)


def test_values_byte_by_byte() -> None:
    empty = Transaction(1, 0, 60_000, updated_ms=2, previous_producer_id=1)
    assert transaction_value(empty) == bytes.fromhex(
        "0001 0000000000000001 0000 0000ea60 00 00 0000000000000002 ffffffffffffffff 01 00 08 0000000000000001"
    )
    ongoing = Transaction(1, 0, 60_000, S.ONGOING, frozenset((A, B)), 3, 4, 1, client_version=2)
    assert transaction_value(ongoing) == bytes.fromhex(
        "0001 0000000000000001 0000 0000ea60 01 02 0261 03 00000000 00000001 00 0000000000000004 0000000000000003"
        "02 00 08 0000000000000001 02 02 0002"
    )


@pytest.mark.parametrize("client_version", [0, 1, 2])
@pytest.mark.parametrize("status", sorted(set(S) - DEAD_OR_UNDER_WAY))
@pytest.mark.parametrize("partitions", [frozenset(), frozenset((A, B, C))])
@pytest.mark.parametrize(("previous", "following"), [(7, NO_PRODUCER_ID), (6, 8), (NO_PRODUCER_ID, NO_PRODUCER_ID)])
def test_values_are_read_as_they_were_written(
    client_version: int, status: S, partitions: frozenset[TopicPartition], previous: int, following: int
) -> None:
    known = AT_REST._replace(
        status=status,
        partitions=frozenset() if status is S.EMPTY else partitions,
        client_version=client_version,
        previous_producer_id=previous,
        next_producer_id=following,
    )
    assert at_once(read_value(transaction_value(known))) == known


@pytest.mark.parametrize("client_version", [0, 1, 2])
@pytest.mark.parametrize("status", sorted(set(S) - DEAD_OR_UNDER_WAY))
@pytest.mark.parametrize("partition", [None, A, TopicPartition("t" * 249, 1_000_000), TopicPartition("\u4e8b", 7)])
def test_the_short_way_writes_what_the_long_one_does(
    client_version: int, status: S, partition: TopicPartition | None
) -> None:
    is_empty = status is S.EMPTY
    partitions = frozenset[TopicPartition]() if partition is None or is_empty else frozenset((partition,))
    known = AT_REST._replace(status=status, partitions=partitions, client_version=client_version)
    schemas = [PartitionsSchema(topic=tp.topic, partition_ids=[tp.partition]) for tp in partitions]
    value = TransactionLogValue(
        producer_id=known.producer_id,
        previous_producer_id=known.previous_producer_id,
        producer_epoch=known.producer_epoch,
        transaction_timeout_ms=known.timeout_ms,
        transaction_status=status,
        transaction_partitions=None if is_empty else schemas,
        transaction_last_update_timestamp_ms=known.updated_ms,
        transaction_start_timestamp_ms=known.started_ms,
        client_transaction_version=client_version,
    )
    assert transaction_value(known) == b"\0\1" + value.encode(1)


def test_a_value_of_many_partitions_is_read_in_steps() -> None:
    many = frozenset(TopicPartition("t" * 200, number) for number in range(5_000))
    known = AT_REST._replace(status=S.ONGOING, partitions=many)
    value = transaction_value(known)
    assert len(value) > PLAIN_FRAME_BYTES_MAX
    steps = read_value(value)
    next(steps)
    assert at_once(steps) == known


def test_values_of_an_older_kafka() -> None:
    value = TransactionLogValue(
        producer_id=7, producer_epoch=3, transaction_timeout_ms=60_000, transaction_status=S.COMPLETE_ABORT
    )
    read = at_once(read_value(b"\0\0" + value.encode(0)))
    assert (read.producer_id, read.producer_epoch, read.status) == (7, 3, S.COMPLETE_ABORT)
    assert (read.previous_producer_id, read.client_version) == (NO_PRODUCER_ID, 0)


@pytest.mark.parametrize("at", range(len(transaction_value(AT_REST))))
def test_damage_is_no_transaction_or_another_one(at: int) -> None:
    """No byte of a value brings anything but `BadRecord`, and the short way reads what the long one does."""
    sound = transaction_value(AT_REST)
    for byte in (0, 1, 2, 7, 0x7F, 0x80, 0xFF):
        value = sound[:at] + bytes((byte,)) + sound[at + 1 :]
        try:
            read = at_once(read_value(value))
        except BadRecord:
            continue
        again, end = TransactionLogValue.decode(value, 1, 2)
        assert end == len(value)
        assert (read.producer_id, read.status) == (again.producer_id, again.transaction_status)
        assert (read.previous_producer_id, read.client_version) == (
            again.previous_producer_id,
            again.client_transaction_version,
        )
    with pytest.raises(BadRecord):
        at_once(read_value(sound[:at]))


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\0\1\0\1a", b"\0\0\0\2a", b"\0\0\0\1ab", b"\0\0\xff\xff"])
def test_keys_that_are_none(key: bytes | None) -> None:
    with pytest.raises(BadRecord):
        read_key(key)
