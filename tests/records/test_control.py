"""Control records, against those that Kafka writes."""

from __future__ import annotations

import pytest
from tests.records.generated_records import NOW
from tests.records.golden_batches import golden_batches

from ottla.records.batch import parse_header
from ottla.records.control import ControlRecord, ControlType, control_batch, control_key, parse_control, plain_marker
from ottla.records.errors import CorruptBatch, RecordError
from ottla.records.record import decode_batch


@pytest.mark.parametrize(
    ("name", "control_type", "offset"), [("commit", ControlType.COMMIT, 77), ("abort", ControlType.ABORT, 78)]
)
def test_end_of_a_transaction_is_kafkas_byte_for_byte(name: str, control_type: ControlType, offset: int) -> None:
    ours = control_batch(
        control_type,
        timestamp=NOW,
        producer_id=4711,
        producer_epoch=3,
        coordinator_epoch=12,
        base_offset=offset,
        leader_epoch=4,
    )
    assert ours == golden_batches()[name].raw
    header = parse_header(ours)
    assert header.is_control
    assert header.is_transactional
    (record,) = decode_batch(ours)
    parsed = parse_control(record.key, record.value)
    assert parsed == ControlRecord(control_type, int(control_type), 12)
    assert parsed.ends_transaction


def said(batch: bytes) -> tuple[ControlType, int] | None:
    """What the long way finds in a batch of one marker."""
    try:
        (record,) = decode_batch(batch, check_crcs=False)
        parsed = parse_control(record.key, record.value)
    except (RecordError, ValueError):
        return None
    return None if parsed.coordinator_epoch is None else (parsed.type, parsed.coordinator_epoch)


@pytest.mark.parametrize("control_type", [ControlType.COMMIT, ControlType.ABORT])
def test_the_short_way_reads_what_the_long_one_does_or_nothing(control_type: ControlType) -> None:
    sound = control_batch(control_type, timestamp=NOW, producer_id=4711, producer_epoch=3, coordinator_epoch=12)
    assert plain_marker(sound) == said(sound) == (control_type, 12)
    for at in range(len(sound)):
        for byte in (0, 1, 2, 7, 0x20, 0x7F, 0x80, 0xFF):
            other = sound[:at] + bytes([byte]) + sound[at + 1 :]
            assert plain_marker(other) in (None, said(other)), (at, byte)
    assert plain_marker(sound[:-1]) is plain_marker(sound + b"\0") is None


def test_kafkas_leader_change_is_recognised() -> None:
    (record,) = decode_batch(golden_batches()["leader-change"].raw)
    parsed = parse_control(record.key, record.value)
    assert parsed == ControlRecord(ControlType.LEADER_CHANGE, 2, None)
    assert not parsed.ends_transaction


@pytest.mark.parametrize("control_type", [t for t in ControlType if t > ControlType.COMMIT])
def test_types_of_the_metadata_log_are_named(control_type: ControlType) -> None:
    assert parse_control(control_key(control_type), b"anything").type is control_type


def test_types_of_the_future_are_passed_over() -> None:
    assert parse_control(b"\0\0\0\x63", None) == ControlRecord(ControlType.UNKNOWN, 99, None)
    assert parse_control(b"\0\x05\0\x01more", b"\0\x05\0\0\0\x07more") == ControlRecord(ControlType.COMMIT, 1, 7)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\0", None),
        (b"\0\0\0\x01", b"\0\0\0\0\0"),
        (b"\0\0\0\x01", b"\xff\xff\0\0\0\0"),
    ],
)
def test_what_is_no_control_record_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        parse_control(key, value)
