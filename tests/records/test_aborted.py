"""What a reader of committed records leaves out."""

from __future__ import annotations

import pytest

from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import BatchHeader, parse_header
from ottla.records.control import ControlType, control_batch
from ottla.records.errors import CorruptBatch
from ottla.records.record import Record, encode_batch

NOW = 1_764_000_000_000


def header(offset: int, producer: int, *, transactional: bool = True) -> BatchHeader:
    records = [Record(offset, NOW, None, b"x"), Record(offset + 1, NOW, None, b"y")]
    return parse_header(
        encode_batch(records, base_offset=offset, producer_id=producer, producer_epoch=0, transactional=transactional)
    )


def note(aborted: AbortedTransactions, kind: ControlType, producer: int, offset: int) -> None:
    raw = control_batch(
        kind, timestamp=NOW, producer_id=producer, producer_epoch=0, coordinator_epoch=0, base_offset=offset
    )
    aborted.note_marker(parse_header(raw), raw, 0, check_crcs=True)


def test_from_its_first_offset_to_its_marker() -> None:
    aborted = AbortedTransactions([(4, 1)])
    assert not aborted.hides(header(0, 1))
    assert aborted.hides(header(4, 1))
    assert not aborted.hides(header(6, 2))
    assert not aborted.hides(header(8, 1, transactional=False))
    note(aborted, ControlType.ABORT, 2, 10)
    assert aborted.hides(header(12, 1))
    note(aborted, ControlType.ABORT, 1, 14)
    assert not aborted.hides(header(16, 1))
    assert not aborted.any


def test_a_commit_of_the_same_producer_ends_nothing() -> None:
    """One that stood before the aborted transaction, in a fetch that begins in its middle."""
    aborted = AbortedTransactions([(0, 1)])
    assert aborted.hides(header(0, 1))
    note(aborted, ControlType.COMMIT, 1, 2)
    assert aborted.hides(header(3, 1))


def test_transactions_that_began_before_the_fetch_are_hidden_from_its_first_batch() -> None:
    aborted = AbortedTransactions([(7, 2), (0, 1)])
    assert aborted.hides(header(6, 1))
    assert aborted.hides(header(8, 2))


def test_a_state_can_be_gone_back_to() -> None:
    aborted = AbortedTransactions([(4, 1), (20, 2)])
    assert aborted.hides(header(4, 1))
    before = aborted.copy()
    note(aborted, ControlType.ABORT, 1, 6)
    assert aborted.hides(header(20, 2))
    aborted.restore(before)
    assert aborted.hides(header(8, 1))
    assert not aborted.hides(header(10, 2))


def test_a_marker_that_is_damaged() -> None:
    raw = bytearray(
        control_batch(ControlType.ABORT, timestamp=NOW, producer_id=1, producer_epoch=0, coordinator_epoch=0)
    )
    raw[-3] ^= 1
    aborted = AbortedTransactions([(0, 1)])
    with pytest.raises(CorruptBatch, match="checksum"):
        aborted.note_marker(parse_header(raw), raw, 0, check_crcs=True)
