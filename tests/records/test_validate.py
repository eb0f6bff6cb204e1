"""What our broker answers to produced batches, beside what Apache Kafka answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.records.generated_records import NOW, codecs, record_lists
from tests.records.verdict_cases import DIFFERENT, Case, cases, kafka_answers

from ottla.model import ErrorCode
from ottla.records import batch
from ottla.records.batch import CREATE_TIME, HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, Readable, parse_header
from ottla.records.compression import GZIP, LZ4, NONE, SNAPPY, UNFOLDS_MAX, ZSTD, compress, decompress
from ottla.records.errors import DecompressionTooLarge, RecordError, UnacceptableRecord, UnacceptableTimestamp
from ottla.records.record import RECORD_BYTES_MIN, Record, decode_batch, encode_batch, most_records
from ottla.records.scan import scan_batch
from ottla.records.validate import (
    AppendRules,
    check_header,
    check_records,
    needs_records,
    produced_batch,
    stamp_time,
)

CASES = {case.name: case for case in cases()}
PLAIN = AppendRules(1 << 20, after_max_ms=1000)


def validate(header: BatchHeader, raw: Readable, pos: int, rules: AppendRules) -> None:
    """All checks of a client's batch that the topic needs."""
    check_header(header, raw, pos, rules, NOW)
    if needs_records(header, rules):
        check_records(header, raw, pos, rules, NOW)


def our_answer(case: Case) -> str:
    raw = bytearray(b"before" + case.raw)
    try:
        header = produced_batch(raw, 6, len(raw), api_version=case.api_version)
        validate(header, raw, 6, case.rules)
    except RecordError as error:
        indexes = ",".join(str(fault.batch_index) for fault in error.record_faults)
        return f"{error.error_code.name} {indexes}".strip()
    return "NONE"


def test_every_case_has_kafkas_answer() -> None:
    assert list(kafka_answers()) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_answer_is_kafkas_or_a_documented_difference(name: str) -> None:
    kafkas = kafka_answers()[name]
    ours = our_answer(CASES[name])
    if name in DIFFERENT:
        assert ours == DIFFERENT[name] != kafkas
    else:
        assert ours == kafkas


def test_differences_are_of_cases_that_exist() -> None:
    assert DIFFERENT.keys() <= CASES.keys()


@given(record_lists(gaps=False, base=0), codecs)
def test_good_batches_pass_with_and_without_a_walk(records: list[Record], codec: int) -> None:
    records = [record._replace(timestamp=NOW, key=record.key or b"k") for record in records]
    raw = encode_batch(records, compression=codec)
    header = produced_batch(raw, 0, len(raw), api_version=13)
    for compacted in (False, True):
        rules = PLAIN._replace(compacted=compacted)
        validate(header, raw, 0, rules)
        assert needs_records(header, rules) is compacted
    assert check_records(header, raw, 0, PLAIN, NOW) == bytes(scan_batch(raw).payload)


@pytest.mark.parametrize(
    "size", [1, 50, 60, 61, 62, 63, 64, 100, 8000, 8181, 8182, 8183, 8184, 8190, 70_000, 1_100_000]
)
@pytest.mark.parametrize("count", [1, 2, 16, 17])
def test_few_records_are_counted_whatever_their_length(size: int, count: int) -> None:
    records = [Record(index, NOW, None, bytes(size)) for index in range(count)]
    raw = bytearray(encode_batch(records))
    rules = PLAIN._replace(max_message_bytes=1 << 30)
    check_header(parse_header(raw), raw, 0, rules, NOW)
    for wrong in (count - 1, count + 1):
        lying = parse_header(raw)._replace(count=wrong, last_offset_delta=wrong - 1)
        if wrong == 0 or wrong <= 16:
            with pytest.raises(UnacceptableRecord):
                check_header(lying, raw, 0, rules, NOW)


def test_no_codec_holds_more_records_than_is_believed() -> None:
    """The most that each can unfold a block of some bytes to: what its own compressor makes of zeros, or its format."""
    zeros = bytes(20_000_000)
    rle = b"\x28\xb5\x2f\xfd\x00\x58" + (b"\x02\x00\x10\x00" * 1000)[:-4] + b"\x03\x00\x10\x00"
    copies = b"\xfe\x01\x00" * 10_000  # of 64 bytes each, from one byte before
    snappy = b"\x81\x88\x27" + b"\x00\x00" + copies  # 640,001 bytes, of which the first stands there
    blocks = {GZIP: compress(GZIP, zeros, 9), LZ4: compress(LZ4, zeros), ZSTD: rle, SNAPPY: snappy}
    for codec, block in blocks.items():
        size = len(decompress(codec, block, 1 << 28))
        ratio = size / len(block)
        assert UNFOLDS_MAX[codec] * 0.9 < ratio <= UNFOLDS_MAX[codec]
        assert size // RECORD_BYTES_MIN <= most_records(codec, len(block))


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_what_compresses_best_is_believed(codec: int) -> None:
    for count in (1, 2, 16, 17, 100, 5000):
        raw = bytearray(encode_batch([Record(n, NOW, None, None) for n in range(count)], compression=codec))
        header = parse_header(raw)
        assert header.count == count <= most_records(codec, len(raw) - HEADER_SIZE)
        check_header(header, raw, 0, AppendRules(1 << 20), NOW)


def test_many_records_are_not_counted_in_the_header() -> None:
    raw = encode_batch([Record(index, NOW, None, bytes(50)) for index in range(50)])
    lying = parse_header(raw)._replace(count=51, last_offset_delta=50)
    check_header(lying, raw, 0, PLAIN, NOW)
    with pytest.raises(UnacceptableRecord):
        check_header(parse_header(raw)._replace(count=1000, last_offset_delta=999), raw, 0, PLAIN, NOW)


def test_faults_name_their_records_and_say_why() -> None:
    raw = encode_batch([Record(0, NOW, b"k", b""), Record(1, NOW + 2000, None, b""), Record(2, NOW + 2000, b"", b"")])
    rules = PLAIN._replace(compacted=True)
    with pytest.raises(UnacceptableTimestamp) as caught:
        check_records(parse_header(raw), raw, 0, rules, NOW)
    first, second = caught.value.record_faults
    assert (first.batch_index, second.batch_index) == (1, 2)
    assert "without key" in first.message
    assert str(NOW + 2000) in second.message
    assert caught.value.error_code is ErrorCode.INVALID_TIMESTAMP


def test_number_of_faults_is_bounded() -> None:
    raw = encode_batch([Record(index, NOW, None, b"") for index in range(1500)])
    with pytest.raises(UnacceptableRecord) as caught:
        check_records(parse_header(raw), raw, 0, PLAIN._replace(compacted=True), NOW)
    assert len(caught.value.record_faults) == 1000
    assert "1500" in caught.value.message


def test_walk_is_bounded() -> None:
    raw = encode_batch([Record(0, NOW, b"k", bytes(10_000))], compression=4)
    with pytest.raises(DecompressionTooLarge) as caught:
        check_records(parse_header(raw), raw, 0, PLAIN, NOW, bytes_max=9_000)
    assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_old_formats_are_named() -> None:
    raw = encode_batch([Record(0, NOW, None, b"x" * 50)])
    old = raw[:16] + b"\x01" + raw[17:]
    with pytest.raises(UnacceptableRecord, match="old format 1"):
        produced_batch(old, 0, len(old), api_version=9)


@pytest.mark.parametrize("append_time", [False, True])
def test_time_is_stamped_as_the_topic_says(append_time: bool) -> None:
    raw = bytearray(encode_batch([Record(0, NOW, None, b""), Record(1, NOW + 5, None, b"")]))
    before = bytes(raw)
    stamp_time(parse_header(raw), raw, 0, CREATE_TIME, NOW + 100)
    assert raw == before
    if append_time:
        stamp_time(parse_header(raw), raw, 0, LOG_APPEND_TIME, NOW + 100)
        assert [record.timestamp for record in decode_batch(raw)] == [NOW + 100] * 2
    else:
        batch.set_log_append_time(raw, 0, NOW + 7)  # a producer that sets the broker's bit
        stamp_time(parse_header(raw), raw, 0, CREATE_TIME, NOW + 100)
        assert not parse_header(raw).is_log_append_time
        assert [record.timestamp for record in decode_batch(raw)] == [NOW, NOW + 5]
