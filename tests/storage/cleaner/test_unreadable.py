"""Batches with a right checksum and garbage in them: a pass keeps them as they are, and goes on."""

from __future__ import annotations

from random import Random

import pytest
from tests.storage.cleaner.cleaning import LIMITS, Cleaner, compacted_world, put_keyed
from tests.storage.log_world import NOW, read_batches

from ottla.records.batch import BatchHeader
from ottla.records.builder import build_batch
from ottla.records.checksum import crc32c
from ottla.records.record import Record, decode_batch
from ottla.storage.cleaner import unreadable
from ottla.storage.log.log import Log


def garbage(payload: bytes, *, count: int = 3, delta: int = 2, attributes: int = 0, producer: int = -1) -> memoryview:
    raw = bytearray(
        build_batch(
            payload,
            count=count,
            last_offset_delta=delta,
            base_timestamp=NOW,
            max_timestamp=NOW,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
        )
    )
    raw[21:23] = attributes.to_bytes(2, "big")
    raw[17:21] = crc32c(raw[21:]).to_bytes(4, "big")
    return memoryview(raw)


def put_garbage(log: Log, raw: memoryview) -> bytes:
    """As a leader's batch, so that nothing of it is looked at."""
    raw[:8] = log.end_offset.to_bytes(8, "big")
    log.stage_replica(raw)
    log.write_staged()
    return bytes(raw)


def bytes_of(log: Log) -> list[tuple[BatchHeader, bytes]]:
    return [(header, bytes(data)) for header, data in read_batches(log)]


@pytest.mark.parametrize(
    "raw",
    [
        garbage(b"\xff" * 40),
        garbage(b""),
        garbage(b"\x00" * 200),
        garbage(b"no gzip", attributes=1),
        garbage(b"no snappy", attributes=2),
        garbage(b"no lz4", attributes=3),
        garbage(b"no zstd", attributes=4),
        garbage(b"of no codec", attributes=7),
        garbage(b"\x01" * 30, count=9, delta=2),
        garbage(b"\x01" * 30, count=-1),
        garbage(b"\x01" * 30, producer=77),
        garbage(b"\x01" * 30, attributes=0x20, producer=77),
    ],
    ids=[
        *("ones", "nothing", "zeros", "gzip", "snappy", "lz4", "zstd", "no codec", "too many", "negative"),
        *("idempotent", "control"),
    ],
)
def test_garbage_stays_and_the_rest_is_cleaned(raw: memoryview) -> None:
    world = compacted_world()
    log = world.open()
    stored = [put_garbage(log, memoryview(bytearray(raw)))]
    for number in range(30):
        put_keyed(log, (b"k%d" % (number % 3), b"v%d" % number))
        if number % 10 == 5:
            stored.append(put_garbage(log, memoryview(bytearray(raw))))
    cleaner = Cleaner(world)
    for _ in range(3):
        log.roll(NOW)
        cleaner.clean(log)
        cleaner.remove()
        assert log.cleaned_to == log.active.base_offset
        batches = bytes_of(log)
        assert [data for _, data in batches if data in stored] == stored
        others = [header for header, data in batches if data not in stored]
        assert len(others) <= 5
        # Dirt for another pass, over what is clean by now.
        put_keyed(log, (b"k0", b"again"))


def test_it_is_told_of() -> None:
    world = compacted_world()
    log = world.open()
    put_keyed(log, (b"a", b"1"))
    put_garbage(log, garbage(b"\xff" * 40))
    put_keyed(log, (b"a", b"2"))
    log.roll(NOW)
    outcome = Cleaner(world).clean(log)
    assert outcome.unreadable is not None
    assert outcome.unreadable[0] == 1
    assert [(each.offset, each.value) for each in records_of_sound(log)] == [(4, b"2")]


def records_of_sound(log: Log) -> list[Record]:
    return [record for header, data in read_batches(log) if header.count == 1 for record in decode_batch(data, 0)]


def test_more_of_them_than_are_noted_take_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable, "NOTED_MAX", 5)
    world = compacted_world()
    log = world.open()
    stored = []
    for number in range(12):
        stored.append(put_garbage(log, garbage(b"\xff" * 40)))
        put_keyed(log, (b"a", b"%d" % number))
    log.roll(NOW)
    cleaner = Cleaner(world)
    passes = 0
    while log.cleaned_to < log.active.base_offset:
        passes += 1
        assert passes < 10
        cleaner.clean(log)
    assert passes == 3
    batches = [data for _, data in bytes_of(log)]
    assert [data for data in batches if data in stored] == stored
    assert len(batches) <= len(stored) + passes + 1


@pytest.mark.parametrize("seed", range(60))
def test_any_bytes(seed: int) -> None:
    rng = Random(seed)
    world = compacted_world()
    log = world.open()
    for number in range(20):
        put_keyed(log, (b"k%d" % (number % 3), b"v%d" % number))
        payload = rng.choice((rng.randbytes, lambda size: bytes(rng.choices((0, 1, 2, 127, 128, 255), k=size))))(
            rng.randrange(80)
        )
        delta = rng.randrange(6)
        raw = garbage(
            payload,
            count=rng.choice((delta + 1, 1, rng.randrange(-2, 9))),
            delta=delta,
            attributes=rng.choice((0, 0, 0, 1, 2, 3, 4, 5, 7, 8, 0x40)),
        )
        put_garbage(log, raw)
    cleaner = Cleaner(world, LIMITS._replace(buffer_bytes=rng.choice((4096, 1 << 20))))
    log.roll(NOW)
    while log.cleaned_to < log.active.base_offset:
        cleaner.clean(log)
        cleaner.remove()
    keys = {}
    for header, data in read_batches(log):
        if header.count == 1 and header.last_offset_delta == 0 and b"v" in bytes(data):
            keys[bytes(data)[66:68]] = header.base_offset
    assert {b"k0", b"k1", b"k2"} <= set(keys)
