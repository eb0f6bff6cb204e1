"""The compiled decoder to columns: against objects, damaged or not, and in memory that is too small."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from tests.arrow.batch_shapes import NOW, read, rows_by_objects, some_log
from tests.arrow.mutated_batches import check
from tests.native.conftest import NOTHING_COMPILED
from tests.native.other_threads import another_thread_runs_during

from ottla.records.checksum import crc32c
from ottla.records.record import Record, encode_batch

compiled = pytest.importorskip("ottla.native.columns", reason=NOTHING_COMPILED)

LOGS = 10
DAMAGED = 200


def test_logs_of_every_shape() -> None:
    for seed in range(LOGS):
        raw = some_log(Random(seed), 10)
        assert read(raw) == rows_by_objects(raw), seed


def test_damage_is_read_alike_or_refused_alike() -> None:
    """Fails with the seed and the bytes where the two ways differ."""
    assert check(DAMAGED, 1) > DAMAGED // 10


@pytest.mark.slow
def test_a_million_damaged_logs() -> None:
    check(int(os.environ.get("OTTLA_DAMAGED_LOGS", "1000000")), 2)


def test_checksums_of_every_length() -> None:
    data = Random(1).randbytes(10_000)
    for size in (*range(20), 3071, 3072, 3073, 6144, 9999, 10_000):
        assert compiled.crc32c(data[:size]) == crc32c(data[:size]), size


def batch(*values: bytes, **options: Any) -> bytes:
    return encode_batch([Record(at, NOW, b"k", value, (("h", b"x"),)) for at, value in enumerate(values)], **options)


def memory(**sizes: int) -> tuple[Any, ...]:
    """Room for two records of `batch(b"one", b"two")`, or as it is said."""
    names = {
        "key_ends": 12,
        "key_bytes": 2,
        "key_valid": 1,
        "value_ends": 12,
        "value_bytes": 6,
        "value_valid": 1,
        "offsets": 16,
        "times": 16,
        "header_ends": 12,
        "name_ends": 12,
        "name_bytes": 2,
        "content_ends": 12,
        "content_bytes": 2,
        "content_valid": 1,
    }
    return tuple(bytearray(sizes.get(name, size)) for name, size in names.items())


def fill(raw: bytes, rooms: tuple[Any, ...], rows: int = 2) -> Any:
    return compiled.fill(raw, ((0, len(raw), 0, 2),), (None,), rooms, rows, 0, 2**63 - 1, True)


def test_just_enough_memory() -> None:
    rooms = memory()
    assert fill(batch(b"one", b"two"), rooms) == ((0, 1, 2), (2, 0), (6, 0), (2, 2, 2, 0))
    assert bytes(rooms[4]) == b"onetwo"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("key_ends", 8),
        ("key_bytes", 1),
        ("value_ends", 8),
        ("value_bytes", 5),
        ("key_valid", 0),
        ("offsets", 8),
        ("times", 8),
        ("header_ends", 8),
        ("name_ends", 8),
        ("name_bytes", 1),
        ("content_ends", 8),
        ("content_bytes", 1),
        ("content_valid", 0),
    ],
)
def test_too_little_memory_is_said_and_not_overrun(name: str, size: int) -> None:
    assert fill(batch(b"one", b"two"), memory(**{name: size}))[0] == (2, 0, 0)


def test_fewer_rows_than_there_are() -> None:
    assert fill(batch(b"one", b"two"), memory(), rows=1)[0] == (2, 0, 0)


def test_what_is_said_wrongly() -> None:
    raw = batch(b"one", b"two")
    good = memory()
    for rooms in (good[:-1], (None, *good[1:-2], None, good[-1]), (*good[:1], None, *good[2:])):
        with pytest.raises((TypeError, ValueError)):
            fill(raw, rooms)
    with pytest.raises(ValueError, match="aligned"):
        fill(raw, (memoryview(bytearray(13))[1:], *good[1:]))
    with pytest.raises((TypeError, BufferError)):
        fill(raw, (bytes(12), *good[1:]))
    for place in (
        (0, len(raw) + 1, 0, 2),
        (-1, len(raw), 0, 2),
        (1, len(raw), 0, 2),
        (0, 60, 0, 2),
        (2**62, 2**62, 0, 2),
    ):
        with pytest.raises(ValueError, match="beyond"):
            compiled.fill(raw, (place,), (None,), good, 2, 0, 9, True)
    with pytest.raises(ValueError, match="as many"):
        compiled.fill(raw, (), (None,), good, 2, 0, 9, True)
    for start, end in ((-1, 5), (5, 4), (0, len(raw) + 1)):
        with pytest.raises(ValueError, match="stretch"):
            compiled.survey(raw, start, end, 0, 9, 9, 9, True)


def test_another_thread_runs_while_columns_are_filled() -> None:
    values = [b"x"] * 100_000
    raw = batch(*values)
    ends, marks = bytearray(4 * (len(values) + 1)), bytearray(len(values) // 8 + 1)
    rooms = (None, None, None, ends, bytearray(len(values)), marks, *[None] * 8)

    def filled() -> None:
        compiled.fill(raw, ((0, len(raw), 0, len(values)),), (None,), rooms, len(values), 0, 2**63 - 1, True)

    assert another_thread_runs_during(filled)


def test_a_survey_of_a_cut_batch_ends_before_it() -> None:
    raw = batch(b"one", b"two")
    for end in range(len(raw)):
        reason, places, pos, *_ = compiled.survey(raw[:end], 0, end, 0, 9, 9, 9, True)
        assert (reason, places, pos) == (0, [], 0)
