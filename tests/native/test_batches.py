"""The compiled encoder of tables: against Python's, and with arrays that are not what they say."""

from __future__ import annotations

from array import array
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.arrow.table_shapes import some_rows, some_table
from tests.native.conftest import NOTHING_COMPILED
from tests.native.other_threads import another_thread_runs_during

from ottla.arrow import encoding
from ottla.arrow.encoding import Encoder
from ottla.arrow.errors import BadColumns
from ottla.arrow.plain_encoding import WriteBounds
from ottla.records.keyhash import murmur2

compiled = pytest.importorskip("ottla.native.batches", reason=NOTHING_COMPILED)

NOW = 1_764_000_000_000
TABLES = 30


def encoder(partitions: int = 1, batch_bytes: int = 16_384) -> Encoder:
    return Encoder(WriteBounds(partitions, NOW, batch_bytes, 1 << 20))


def test_both_ways_make_the_same_bytes() -> None:
    for seed in range(TABLES):
        chance = Random(seed)
        table = some_table(chance, some_rows(chance, chance.choice((1, 20, 60))))
        limit = chance.choice((1, 300, 9000))
        made = []
        for way in (compiled, None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(encoding, "_compiled", way)
                made.append(list(encoder(5, limit).batches(table)))
        assert made[0] == made[1], seed


def test_the_hash_of_keys() -> None:
    for size in range(20):
        key = bytes(range(250, 250 - size, -1))
        assert compiled.murmur2(key) == murmur2(key)


def test_another_thread_runs_while_batches_are_made() -> None:
    values = (0, 100_000, None, ends(*range(100_001)), pa.py_buffer(bytes(100_000)))
    turns = array("i", [0])

    def made() -> None:
        compiled.encode((None, values, *[None] * 5), 1, turns, 0, 1, NOW, 1 << 24, 1000)

    assert another_thread_runs_during(made)


def ends(*numbers: int) -> Any:
    return pa.py_buffer(array("i", numbers).tobytes())


@pytest.mark.parametrize("numbers", [(0, 1 << 20, 5), (0, -1, 5), (0, 4, 3), (-4, 0, 5)])
def test_an_array_that_lies_about_its_bytes_is_refused(numbers: tuple[int, ...]) -> None:
    values = (0, 2, None, ends(*numbers), pa.py_buffer(b"short"))
    verdict, *_ = compiled.encode((None, values, *[None] * 5), 1, array("i", [0]), 0, 1, NOW, 100, 1000)
    assert verdict == 1


@pytest.mark.parametrize("numbers", [(0, 9), (2, 1), (-1, 1)])
def test_headers_that_are_not_there_are_refused(numbers: tuple[int, ...]) -> None:
    one = (0, 1, None, ends(0, 1), pa.py_buffer(b"x"))
    lists = (0, 1, None, ends(*numbers), None)
    verdict, *_ = compiled.encode((None, one, None, None, lists, one, one), 1, array("i", [0]), 0, 1, NOW, 100, 1000)
    assert verdict == 1


@pytest.mark.parametrize(
    "values",
    [
        (0, 2, None, ends(0, 1), pa.py_buffer(b"x")),
        (-1, 1, None, ends(0, 1), pa.py_buffer(b"x")),
        (1, 1, None, ends(0, 1), pa.py_buffer(b"x")),
        (2**62, 2**62, None, ends(0, 1), pa.py_buffer(b"x")),
        (0, 9, b"\xff", ends(*range(10)), pa.py_buffer(b"x" * 9)),
        (0, 1, None, None, None),
    ],
)
def test_arrays_longer_than_their_memory(values: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="longer"):
        compiled.encode((None, values, *[None] * 5), 1, array("i", [0]), 0, 1, NOW, 100, 1000)


def test_what_is_said_wrongly() -> None:
    one = (0, 1, None, ends(0, 1), pa.py_buffer(b"x"))
    two = (0, 2, None, ends(0, 1, 1), pa.py_buffer(b"x"))
    good = (None, one, *[None] * 5)
    for arrays in ((None,) * 7, (two, one, *[None] * 5), (None, one, None, None, one, None, None)):
        with pytest.raises(ValueError, match=r"rows|names"):
            compiled.encode(arrays, 1, array("i", [0]), 0, 1, NOW, 100, 1000)
    for turns, partitions, divisor in ((array("i"), 1, 1), (array("i", [1]), 1, 1), (array("i", [0]), 1, 0)):
        with pytest.raises(ValueError, match="range"):
            compiled.encode(good, partitions, turns, 0, divisor, NOW, 100, 1000)
    for arrays in ((), (None, 5, *[None] * 5), (None, (1,), *[None] * 5)):
        with pytest.raises(TypeError):
            compiled.encode(arrays, 1, array("i", [0]), 0, 1, NOW, 100, 1000)


def test_memory_that_is_not_aligned_is_read_all_the_same() -> None:
    odd = memoryview(b"\0" + array("i", [0, 1]).tobytes())[1:]
    values = (0, 1, None, odd, b"x")
    verdict, _, found = compiled.encode((None, values, *[None] * 5), 1, array("i", [0]), 0, 1, NOW, 100, 1000)
    assert (verdict, found[0][:2]) == (0, (0, 1))


def test_a_lying_array_through_the_encoder() -> None:
    lie = pa.Array.from_buffers(pa.binary(), 2, [None, ends(0, 1 << 20, 5), pa.py_buffer(b"short")])
    with pytest.raises(BadColumns, match="not sound"):
        list(encoder().batches(pa.table({"value": lie})))


def some_array(chance: Random, *, fixed: int = 0) -> Any:
    """Mostly sound in its lengths, and anything in its numbers."""
    length, offset = chance.choice((2, 2, 2, 3)), chance.choice((0, 0, 1))
    data = chance.randbytes(chance.choice((0, 5, 40))) if not fixed else chance.randbytes(fixed * (length + offset))
    numbers = [chance.choice((0, 1, 2, 5, 40, -1, 2**31 - 1)) for _ in range(length + offset + 1)]
    if chance.randrange(2):
        numbers.sort()
    valid = chance.choice((None, None, chance.randbytes(1)))
    return offset, length, valid, None if fixed else array("i", numbers).tobytes(), data


def test_arrays_of_garbage_are_encoded_or_refused() -> None:
    """The sanitized build ends at any step outside of their memory."""
    verdicts = set()
    for seed in range(3000):
        chance = Random(seed)
        kinds = (0, 0, 4, 8, 0, 0, 0)
        arrays = [some_array(chance, fixed=kind) if chance.randrange(3) else None for kind in kinds]
        arrays[1] = some_array(chance)
        try:
            verdict, *_ = compiled.encode(tuple(arrays), 3, array("i", [2, 0]), 0, 1000, NOW, 100, 1 << 20)
        except ValueError:
            continue
        verdicts.add(verdict)
    assert verdicts >= {0, 1, 2, 3, 4}
