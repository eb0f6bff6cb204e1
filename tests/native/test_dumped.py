"""A segment's batches as a dump goes over them, compiled and not: the same findings and the same lines."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.native.conftest import IS_PURE, NOTHING_COMPILED

from ottla.ports.real.disk import RealDisk
from ottla.records.batch import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    COUNT_AT,
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    patch_crc,
)
from ottla.records.record import Record, encode_batch
from ottla.storage.dump import Finding, check_file, dump_file, dump_lines, line_of, log_file
from ottla.storage.dump.log_file import _unfolded as unfolded

dumped = pytest.importorskip("ottla.native.dumped", reason=NOTHING_COMPILED)

NAME: Final = "00000000000000000000.log"
DISK: Final = RealDisk()
NOW: Final = 1_764_000_000_000
#: Before so many of one leader epoch compiled code is not asked.
SAME_EPOCH_MIN: Final = 9
VALUES: Final = (
    None,
    b"",
    b"plain",
    b"two\nlines",
    b"two\rlines",
    "K\u00e4se \U0001f9c0".encode(),
    b"\xff\x00\xc3",
    b"x" * 300,
)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """This build, also where it is one that watches its memory."""
    monkeypatch.setattr(log_file, "_compiled", dumped)


def test_it_is_what_dumps_use() -> None:
    assert log_file.compiled_dumped() is (None if IS_PURE else dumped)


def a_batch(random: Random, offset: int) -> tuple[bytes, int]:
    """One of the kinds that there are, most of them usual; and the offset behind it."""
    records = []
    at = offset
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        headers = tuple((name, b"v") for name in random.choice(((), (), ("a",), ("ü\n", "b"))))
        time = NOW + random.choice((0, 1, 10**6, -5))
        records.append(Record(at, time, random.choice(VALUES), random.choice(VALUES), headers))
        at += random.choice((1, 1, 1, 2, 300))
    idempotent = random.random() < 0.4
    made = encode_batch(
        records,
        base_offset=offset,
        compression=random.choice((0, 0, 0, 0, 1, 2, 3, 4)),
        timestamp_type=random.choice((CREATE_TIME, CREATE_TIME, LOG_APPEND_TIME)),
        producer_id=random.choice((7, 2**40)) if idempotent else -1,
        producer_epoch=3 if idempotent else -1,
        base_sequence=random.choice((0, 17, 2**31 - 2)) if idempotent else -1,
        leader_epoch=4,
        transactional=idempotent and random.random() < 0.3,
    )
    return made, at + random.choice((0, 0, 0, 40))


def a_segment(random: Random, count: int = 60) -> bytearray:
    offset, found = random.choice((0, 5, 2**30)), bytearray()
    for _ in range(count):
        made, offset = a_batch(random, offset)
        found += made
    return found


def damage(random: Random, segment: bytearray) -> None:
    """Bytes of headers and records; most with checksums that are right again, so that the rest counts."""
    starts, at = [], 0
    while at < len(segment):
        starts.append(at)
        at += struct.unpack_from(">i", segment, at + 8)[0] + 12
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        start = random.choice(starts[SAME_EPOCH_MIN:])
        end = min([other for other in starts if other > start], default=len(segment))
        at = random.choice((random.randrange(start, end), random.randrange(start + HEADER_SIZE, end)))
        segment[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
        if at >= start + ATTRIBUTES_AT and random.random() < 0.8:
            patch_crc(memoryview(segment)[start:end], 0)
    if random.random() < 0.2:
        del segment[random.randrange(len(segment)) :]


def both_ways(path: Path, *, records: bool = True) -> None:
    """What compiled code has to do with: a check, and lines. Entries are made in Python only."""
    entries = list(dump_file(DISK, str(path), records=records))
    expected = [one for one in entries if isinstance(one, Finding)]
    assert list(check_file(DISK, str(path), records=records)) == expected
    lines = list(dump_lines(DISK, str(path), records=records))
    assert [one for one in lines if isinstance(one, Finding)] == expected
    # Each finding between the lines between which it stands.
    shown = "".join(line_of(one) if not isinstance(one, Finding) else f"{one}\n" for one in entries)
    assert "".join(one if isinstance(one, str) else f"{one}\n" for one in lines) == shown


@pytest.mark.parametrize("seed", range(60))
def test_both_ways_say_the_same(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    segment = a_segment(random)
    if seed % 3:
        damage(random, segment)
    (tmp_path / NAME).write_bytes(segment)
    both_ways(tmp_path / NAME, records=seed % 5 != 0)


def test_a_batch_that_lies_across_two_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "CHUNK_BYTES", 700)
    (tmp_path / NAME).write_bytes(a_segment(Random(1)))
    both_ways(tmp_path / NAME)


def usual(count: int) -> bytes:
    return b"".join(
        encode_batch([Record(offset, NOW, None, b"value")], base_offset=offset, leader_epoch=4)
        for offset in range(count)
    )


def test_usual_batches_are_gone_over_at_once(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(usual(1_000))
    lines = list(dump_lines(DISK, str(tmp_path / NAME)))
    # A batch's line and its record's come apart in Python; behind the first batches all comes in one piece.
    assert len(lines) == 2 * SAME_EPOCH_MIN + 1
    assert lines[-1].count("\n") == 2 * (1_000 - SAME_EPOCH_MIN)


def walked(data: bytes, *, start: int = 0, due: int = 0, end: int = 2**63 - 1, epoch: int = 4) -> tuple[int, int]:
    taken, behind, last, text = dumped.walk(data, start, start, due, end, epoch, unfolded, True)
    assert text.count("baseOffset") >= len(last)
    return taken, behind


def test_nothing_is_read_beyond_the_end() -> None:
    one = usual(1)
    assert walked(one) == (len(one), 1)
    for size in range(len(one)):
        assert walked(one[:size]) == (0, 0)
    for start in (-1, len(one) + 1):
        with pytest.raises(ValueError, match="outside"):
            dumped.walk(one, start, 0, 0, 1, 4, unfolded, True)


def test_what_is_out_of_line_is_left() -> None:
    data = usual(3)
    size = len(data) // 3
    assert walked(data, start=size, due=1) == (2 * size, 3)
    assert walked(data, start=size, due=2) == (0, 2)
    assert walked(data, end=2) == (2 * size, 2)
    assert walked(data, epoch=5) == (0, 0)


def test_a_count_that_cannot_be_is_left_without_a_look_at_the_records() -> None:
    raw = bytearray(usual(1))
    for count, taken in ((1, True), (2, False), (0, False), (-1, False)):
        struct.pack_into(">i", raw, COUNT_AT, count)
        patch_crc(memoryview(raw), 0)
        assert bool(dumped.walk(bytes(raw), 0, 0, 0, 2**63 - 1, 4, None, True)[0]) is taken


def test_the_last_batches_are_remembered_with_what_was_due() -> None:
    data = usual(20)
    size = len(data) // 20
    _, _, last, text = dumped.walk(data, 0, 1000, 0, 2**63 - 1, 4, unfolded, False)
    assert last == [(1000 + n * size, n, 1, n) for n in range(12, 20)]
    assert text == ""


def test_offsets_at_the_end_of_their_range() -> None:
    raw = bytearray(usual(1))
    for offset, taken in ((2**63 - 2, True), (2**63 - 1, False), (-1, False)):
        struct.pack_into(">q", raw, BASE_OFFSET_AT, offset)
        assert bool(walked(bytes(raw))[0]) is taken


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"\x0e\0\0\0\x01", id="a record that ends early"),
        pytest.param(b"\xfe\xff\xff\xff\x0f\0\0\0\x01\x01\0\0", id="a size that would wrap around"),
        pytest.param(b"\x10\0\0\0\xfe\xff\xff\xff\x0f\x01\0\0\0", id="a key beyond the record"),
        pytest.param(b"\x0e\0\0\0\x01\x7e\0\0", id="a value beyond the record"),
        pytest.param(b"\x0e\0\0\0\x01\x01\x7e\0", id="more headers than bytes"),
        pytest.param(b"\x10\0\0\0\x01\x01\x02\x01\x01", id="a header without a name"),
        pytest.param(b"\x20\0" + b"\xff" * 9 + b"\x03\0\x01\x01\0\0", id="a time of more than 64 bits"),
        pytest.param(b"\x0c\0\0\0\x01\x01\0\0", id="a byte behind the records"),
        pytest.param(b"\x0c\0\0\x02\x01\x01\0", id="an offset beyond the batch's"),
    ],
)
def test_records_that_are_not_sound_are_left(payload: bytes) -> None:
    raw = bytearray(usual(1)[:HEADER_SIZE] + payload)
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    patch_crc(memoryview(raw), 0)
    assert walked(bytes(raw)) == (0, 0)


def test_lines_come_in_pieces_however_much_is_folded(tmp_path: Path) -> None:
    records = [Record(offset, NOW, None, b"x" * 100_000) for offset in range(10)]
    folded = b"".join(
        encode_batch([one._replace(offset=one.offset + 10 * n) for one in records], base_offset=10 * n, compression=1)
        for n in range(20)
    )
    (tmp_path / NAME).write_bytes(folded)
    lines = [line for line in dump_lines(DISK, str(tmp_path / NAME)) if isinstance(line, str)]
    assert len(folded) < log_file.CHUNK_BYTES
    assert sum(map(len, lines)) > 20_000_000
    assert max(map(len, lines)) < 6_000_000


def test_what_cannot_be_unfolded_for_another_reason_is_raised() -> None:
    raw = encode_batch([Record(0, NOW, None, b"value")], base_offset=0, leader_epoch=4, compression=1)

    def broken(codec: int, block: bytes) -> bytes:
        raise MemoryError(codec, block)

    with pytest.raises(MemoryError):
        dumped.walk(raw, 0, 0, 0, 2**63 - 1, 4, broken, True)
    with pytest.raises(TypeError):
        dumped.walk(raw, 0, 0, 0, 2**63 - 1, 4, lambda *_: "text", True)  # type: ignore[arg-type, return-value]
    assert dumped.walk(raw, 0, 0, 0, 2**63 - 1, 4, lambda *_: None, True)[0] == 0
