"""Batches that Kafka wrote, read by us; and, where Java is found, ours read by Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import verdict_cases
from tests.records.generated_records import NOW, record_lists
from tests.records.golden_batches import GOLDEN, ask_kafka, golden_batches, printed

from ottla.records import compression
from ottla.records.batch import check_crc, parse_header
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.records.scan import scan_batch

NAMES = list(golden_batches())


@pytest.mark.parametrize("name", NAMES)
def test_kafkas_batches_say_the_same_to_us(name: str) -> None:
    golden = golden_batches()[name]
    assert check_crc(golden.raw, 0, len(golden.raw))
    records = decode_batch(golden.raw)
    assert tuple(map(printed, records)) == golden.records
    assert scan_batch(golden.raw).offsets.tolist() == [record.offset for record in records]


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(tuple(compression.CODECS))])
def test_fields_of_kafkas_batches(name: str) -> None:
    header = parse_header(golden_batches()[name].raw)
    assert header.is_control == (name in {"commit", "abort", "leader-change"})
    assert header.is_transactional == (name in {"commit", "abort", "transactional", "emptied"})
    assert header.is_log_append_time == (name == "append-time")
    if name == "idempotent":
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, 2147483646)
        assert header.last_sequence == 2
    if name == "emptied":
        assert (header.base_offset, header.last_offset, header.count, header.max_timestamp) == (100, 104, 0, NOW)


@pytest.mark.parametrize("codec", range(5))
def test_what_we_write_of_the_same_records_differs_in_the_block_only(codec: int) -> None:
    golden = golden_batches()[f"mixed-{compression.codec_name(codec)}"].raw
    ours = encode_batch(decode_batch(golden), base_offset=40, compression=codec, leader_epoch=7)
    if codec == compression.NONE:
        assert ours == golden
    blank = {"length": 0, "crc": 0}
    assert parse_header(ours)._replace(**blank) == parse_header(golden)._replace(**blank)
    assert scan_batch(ours).payload == scan_batch(golden).payload


@pytest.mark.java
@pytest.mark.slow  # the jars stay as they are
def test_golden_batches_are_what_kafka_writes_now(kafka_jars: Path) -> None:
    assert ask_kafka(kafka_jars, "golden", []) == GOLDEN.read_text().splitlines()


@pytest.mark.java
@pytest.mark.slow  # the jars stay as they are
def test_golden_verdicts_are_what_kafka_answers_now(kafka_jars: Path) -> None:
    cases = verdict_cases.cases()
    answers = ask_kafka(kafka_jars, "verdict", [case.line for case in cases])
    now = {case.name: verdict_cases.brief(answer) for case, answer in zip(cases, answers, strict=True)}
    assert now == verdict_cases.kafka_answers()


@pytest.mark.java
def test_kafka_reads_what_we_write(kafka_jars: Path) -> None:
    lines: list[str] = []
    expected: list[str] = []

    @given(record_lists(), st.sampled_from(range(5)))
    def collect(records: list[Record], codec: int) -> None:
        lines.append(encode_batch(records, base_offset=records[0].offset, compression=codec).hex())
        expected.extend(f"record {printed(record)}" for record in records)
        expected.append(f"end {len(records)}")

    collect()  # one process of Java reads them all
    assert ask_kafka(kafka_jars, "read", lines) == expected
