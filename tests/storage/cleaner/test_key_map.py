"""The key map against a dictionary, and the memory that it keeps to."""

from __future__ import annotations

from random import Random

import pytest
from tests.storage.cleaner.cleaning import LIMITS, Cleaner, compacted_world, newest, put_keyed, records_of
from tests.storage.log_world import NOW

from ottla.storage.cleaner.key_map import SLOT_BYTES, KeyMap
from ottla.storage.cleaner.rounds import job_for
from ottla.storage.cleaner.survivors import Survivors
from ottla.storage.cleaner.work import CleaningPass

FIRST = 1 << 40


def test_it_knows_what_a_dictionary_knows() -> None:
    for seed in range(30):
        rng = Random(seed)
        count = rng.choice([1, 5, 100, 2000])
        keys = KeyMap(count * SLOT_BYTES * 2, rng.choice([0.1, 0.5, 0.99]), count, FIRST)
        table: dict[bytes, int] = {}
        noted: list[bytes | None] = []
        while keys.room and len(noted) < 3 * count:
            batch = [
                None if rng.random() < 0.1 else b"%d" % rng.randrange(2 * count)
                for _ in range(rng.randint(1, min(keys.room, 50)))
            ]
            offsets = range(FIRST + len(noted), FIRST + len(noted) + len(batch))
            keys.put(batch, offsets)
            table |= {key: offset for key, offset in zip(batch, offsets, strict=True) if key is not None}
            noted += batch
            assert keys.used == len(table)
        offsets = range(FIRST, FIRST + len(noted))
        assert sorted(keys.distances()) == sorted(offset - FIRST for offset in table.values()), f"seed {seed}"
        expected = bytes(key is not None and table[key] == offset for key, offset in zip(noted, offsets, strict=True))
        assert keys.are_newest(noted, offsets) == expected, f"seed {seed}"
        assert keys.are_newest([b"unknown", None], [FIRST, FIRST]) == b"\1\0"

        survivors = Survivors(FIRST, offsets.stop, keys.distances())
        assert survivors.at(offsets) == expected
        start, stop = sorted(rng.choices(range(len(noted)), k=2))
        assert survivors.between(FIRST + start, FIRST + stop) == expected[start : stop + 1]
        assert survivors.between(FIRST, FIRST + len(noted) + 5) == expected + b"\1" * 6


@pytest.mark.parametrize("memory_bytes", [1000, 100_000, 1 << 20])
@pytest.mark.parametrize("load_factor", [0.01, 0.9, 0.99])
def test_slots_fit_in_the_memory_given(memory_bytes: int, load_factor: float) -> None:
    keys = KeyMap(memory_bytes, load_factor, 1 << 60, 0)
    assert keys.memory_bytes == keys._cells.itemsize * len(keys._cells) <= memory_bytes
    assert 1 <= keys.capacity <= max(1, load_factor * memory_bytes / SLOT_BYTES), "one key at least, to get on"
    # Where there are fewer keys than would fit, there are fewer slots.
    few = KeyMap(1 << 30, load_factor, 5, 0)
    assert 5 <= few.capacity < 1000


@pytest.mark.parametrize("memory_bytes", [500, 5000, 1 << 20])
def test_all_that_a_pass_remembers_fits_in_the_memory_given(memory_bytes: int) -> None:
    world = compacted_world()
    log = world.open()
    for number in range(300):
        put_keyed(log, *[(b"k%d" % (number + 7 * each), b"") for each in range(5)])
    world.flush(log)
    limits = LIMITS._replace(memory_bytes=memory_bytes)
    job = job_for(log, Cleaner(world).dirt(log), log.segments[:-1], limits, NOW)
    work = CleaningPass(job, world.disk, lambda _: None)
    work.index()
    assert work._keys is not None
    assert work._filter is not None
    assert work._keys.memory_bytes + len(work._filter._survivors._bits) <= memory_bytes


def test_a_pass_that_memory_is_too_small_for_ends_earlier_and_the_next_goes_on() -> None:
    for memory_bytes in (1, 300, 1000):
        world = compacted_world()
        log = world.open()
        for number in range(100):
            put_keyed(log, (b"k%d" % (number % 40), b"%d" % number))
        table = newest(records_of(log))
        cleaner = Cleaner(world, LIMITS._replace(memory_bytes=memory_bytes))
        end, passes = cleaner.dirt(log).end_offset, 0
        world.flush(log)
        end = cleaner.dirt(log).end_offset
        while log.cleaned_to < end:
            before = log.cleaned_to
            outcome = cleaner.clean(log)
            assert outcome.cleaned_to > before
            assert outcome.keys <= max(memory_bytes // SLOT_BYTES, 7)
            assert newest(records_of(log)) == table
            passes += 1
        assert passes > 1
        left = [each for each in records_of(log) if each.offset < end]
        assert len({each.key for each in left}) == len(left)
