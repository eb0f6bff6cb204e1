"""Messages of the formats 0 and 1, as kafka-python still writes them, are recognised and refused."""

from __future__ import annotations

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from tests.records.generated_records import NOW

from ottla.model import ErrorCode
from ottla.records import legacy
from ottla.records.errors import UnacceptableRecord, UnsupportedMagic
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.records.validate import produced_batch


def old_messages(magic: int, codec: int = 0) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 16)
    for offset in range(3):
        builder.append(offset, timestamp=NOW, key=b"key", value=b"a value that is long enough to be taken for a batch")
    return bytes(builder.build())


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_recognised(magic: int) -> None:
    raw = old_messages(magic)
    assert legacy.magic_at(raw, 0) == magic
    assert legacy.is_legacy(raw, 0)
    assert legacy.describe(raw, 0, len(raw)) == f"3 messages of the old format {magic}, compression none"
    packed = old_messages(magic, 1)
    assert legacy.describe(packed, 0, len(packed)) == f"a message of the old format {magic}, compression gzip"


def test_batches_are_not_taken_for_old_messages() -> None:
    raw = encode_batch([Record(0, NOW, None, b"")])
    assert not legacy.is_legacy(raw, 0)
    assert legacy.magic_at(raw, 0) == 2
    assert legacy.magic_at(raw[:16], 0) is None
    assert legacy.magic_at(raw[:16] + b"\xff", 0) == -1


@pytest.mark.parametrize("magic", [0, 1])
def test_a_size_that_cannot_be_is_not_recognised(magic: int) -> None:
    raw = bytearray(old_messages(magic))
    raw[8:12] = (13 + 8 * magic).to_bytes(4, "big")
    assert not legacy.is_legacy(raw, 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_decoding_names_the_format(magic: int) -> None:
    with pytest.raises(UnsupportedMagic, match=f"format {magic}") as caught:
        decode_batch(old_messages(magic))
    assert caught.value.error_code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("magic", [0, 1])
def test_produce_refuses_as_kafka_4_does(magic: int) -> None:
    raw = old_messages(magic)
    with pytest.raises(UnacceptableRecord, match=f"3 messages of the old format {magic}") as caught:
        produced_batch(raw, 0, len(raw), api_version=9)
    assert caught.value.error_code is ErrorCode.INVALID_RECORD
