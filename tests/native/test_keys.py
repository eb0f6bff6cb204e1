"""What is compiled of the log cleaner against the same in Python: keys as they are read, noted and looked up."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.native.conftest import NOTHING_COMPILED
from tests.records.generated_records import batches
from tests.searches import examples

from ottla.records import keys
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.errors import CorruptBatch
from ottla.records.record import batch_payload
from ottla.storage.cleaner import key_map
from ottla.storage.cleaner.key_map import KeyMap

compiled = pytest.importorskip("ottla.native.keys", reason=NOTHING_COMPILED)

UNHURRIED = examples(60)
DAMAGES = 25
FIRST = 1000
KEYS = st.none() | st.binary(max_size=3)


@pytest.fixture(scope="module", autouse=True)
def in_python() -> Iterator[None]:
    """What the modules do themselves in these tests is done in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_compiled", None)
        patch.setattr(key_map, "_compiled", None)
        yield


def judged(data: bytes, at: int, end: int, count: int) -> list[bytes | None] | None:
    try:
        return keys.read_keys(data, at, end, count)
    except CorruptBatch:
        return None


@UNHURRIED
@given(batches())
def test_keys_of_sound_records(raw: bytes) -> None:
    header, payload = batch_payload(raw, 0, DECOMPRESSED_BYTES_MAX)
    found = compiled.read(payload, 0, len(payload), header.count)
    assert found is not None
    assert found == keys.read_keys(payload, 0, len(payload), header.count)
    around = b"--" + payload + b"--"
    assert compiled.read(around, 2, 2 + len(payload), header.count) == found


@UNHURRIED
@given(batches(), st.integers(0, 2**32))
def test_damage_is_read_alike_or_doubted(raw: bytes, seed: int) -> None:
    """What is read in spite of the damage is what Python reads; what Python refuses is never read."""
    chance = random.Random(seed)
    header, payload = batch_payload(raw, 0, DECOMPRESSED_BYTES_MAX)
    for _ in range(DAMAGES):
        damaged = bytearray(payload)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        end = chance.choice([len(damaged), chance.randrange(len(damaged) + 1)])
        count = max(0, header.count + chance.choice([0, 0, 0, 1, -1]))
        found = compiled.read(bytes(damaged), 0, end, count)
        if found is not None:
            assert found == judged(bytes(damaged), 0, end, count)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0e",
        b"\0" * 7,
        b"\x0c\0\0\0\x7e\x01\0",
        b"\xfe\xff\xff\xff\x0f\0\0\0\x01\x01\0\0",
        b"\x10\0\0\0\xfe\xff\xff\xff\x0f\x01\0\0\0",
        b"\x10" + b"\x80" * 12,
    ],
)
def test_what_is_not_sound_is_doubted(data: bytes) -> None:
    for count in (1, 2, 2**40):
        assert compiled.read(data, 0, len(data), count) is None


def test_a_range_outside_of_the_data_is_doubted() -> None:
    for at, end in ((-1, 7), (3, 2), (0, 8)):
        assert compiled.read(b"\x0c\0\0\0\x01\x01\0", at, end, 1) is None


@UNHURRIED
@given(st.lists(st.lists(KEYS, max_size=20), max_size=6), st.lists(KEYS, max_size=20))
def test_a_map_holds_the_same(rounds: list[list[bytes | None]], asked: list[bytes | None]) -> None:
    mine, theirs = KeyMap(24 * 500, 0.9, 10**6, FIRST), KeyMap(24 * 500, 0.9, 10**6, FIRST)
    offset = FIRST
    for noted in rounds:
        offsets = range(offset, offset + len(noted))
        offset = offsets.stop
        theirs.put(noted, offsets)
        mine.used += compiled.put(mine._cells, mine._slots, FIRST - 1, noted, offsets)
    assert mine._cells == theirs._cells
    assert mine.used == theirs.used
    for first in (0, FIRST, offset):
        of_asked = list(range(first, first + len(asked)))
        assert compiled.are_newest(mine._cells, mine._slots, FIRST - 1, asked, of_asked) == theirs.are_newest(
            asked, of_asked
        )


def test_full_maps_and_wrong_ones_are_refused() -> None:
    cells = array("q", [0]) * 9
    some: list[bytes | None] = [b"%d" % n for n in range(3)]
    assert compiled.put(cells, 3, 0, some, range(1, 4)) == 3
    with pytest.raises(OverflowError, match="full"):
        compiled.put(cells, 3, 0, [b"one more"], [5])
    for slots in (2, 4):
        with pytest.raises(ValueError, match="slots"):
            compiled.put(cells, slots, 0, some, range(3))
    with pytest.raises(ValueError, match="more keys"):
        compiled.put(cells, 3, 0, some, range(1))
    with pytest.raises(TypeError):
        compiled.are_newest(cells, 3, 0, ["text"], [0])  # type: ignore[list-item]
    with pytest.raises((BufferError, TypeError)):
        compiled.put(bytes(72), 3, 0, some, range(3))  # type: ignore[arg-type]
