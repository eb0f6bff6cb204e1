"""Indexes made anew, compiled and not: the same entries from the same file, whatever is in it."""

from __future__ import annotations

from random import Random
from typing import Final, cast

import pytest
from tests.native.conftest import IS_PURE, NOTHING_COMPILED
from tests.storage.log_world import NOW, World, append

from ottla.config.log import LogConfig
from ottla.ports import File
from ottla.storage.errors import BadBatch
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.indexes import index_pieces
from ottla.storage.log.indexes.index_pieces import COMPILED_WALK, PIECE_BYTES, IndexState, gone_through
from ottla.storage.log.indexes.offset_index import OffsetIndex
from ottla.storage.log.indexes.time_index import TimeIndex
from ottla.storage.log.segment import Segment

indexed = pytest.importorskip("ottla.native.indexed", reason=NOTHING_COMPILED)

CONFIG: Final = LogConfig(segment_bytes=1 << 20, retention_ms=-1)
BASE: Final = 1000


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says."""
    monkeypatch.setattr(index_pieces, "COMPILED_WALK", indexed.walk)


def test_it_is_what_logs_use() -> None:
    assert COMPILED_WALK is (None if IS_PURE else indexed.walk)


def made(segment: Segment, *, compiled: bool) -> tuple[object, ...]:
    """What the indexes hold, and the byte of the batch that ended it."""
    offsets, times = OffsetIndex(), TimeIndex()
    interval = segment.around.index_interval_bytes
    state = IndexState(0, segment.base_offset, 0, -1, -1)
    if compiled:
        state = gone_through(segment.file, segment.size, segment.base_offset, interval, offsets, times)
    position, next_offset, since, largest, at = state
    damaged = -1
    try:
        for start, header in walk(segment.file, position, segment.size):
            if header.base_offset < next_offset or header.last_offset - segment.base_offset >= 2**31:
                damaged = start
                break
            if header.max_timestamp > largest:
                largest, at = header.max_timestamp, header.last_offset
            if since > interval:
                offsets.append(header.last_offset - segment.base_offset, start)
                times.append_if_later(largest, at - segment.base_offset)
                since = 0
            since += header.size
            next_offset = header.next_offset
    except BadBatch as bad:
        damaged = bad.position
    return offsets.offsets, offsets.positions, times.timestamps, times.offsets, since, largest, at, next_offset, damaged


@pytest.mark.parametrize("seed", range(12))
def test_the_entries_are_the_same(seed: int) -> None:
    random = Random(seed)
    world = World(config=CONFIG._replace(index_interval_bytes=random.choice((0, 200, 4096))))
    log = world.open()
    for _ in range(random.choice((3, 40, 300))):
        size = random.choice((1, 1, 30, 30, 9_000)) if seed % 3 else 700  # of 700 bytes a piece holds hundreds
        append(log, b"v" * size, timestamp=NOW + random.choice((-5, 0, 5, 10**6)))
    segment = log.active
    assert made(segment, compiled=True) == made(segment, compiled=False)
    file = world.disk.open(segment.path())
    for _ in range(40):
        position, byte = random.randrange(segment.size), bytes([random.choice((0, 1, 0x7F, 0x80, 0xFF))])
        before = file.read(1, position)
        file.write(byte, position)
        assert made(segment, compiled=True) == made(segment, compiled=False)
        if random.random() < 0.5:
            file.write(before, position)


class CountedReads:
    """A file, and how often it was read."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.count = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def read(self, size: int, position: int) -> bytes:
        self.count += 1
        return self._file.read(size, position)


def test_pieces_that_cut_a_header_are_gone_through_to_the_end() -> None:
    world = World(config=CONFIG)
    log = world.open()
    for number in range(2 * PIECE_BYTES // 170):
        append(log, b"v" * 97, timestamp=NOW + number)
    segment = log.active
    assert segment.size > PIECE_BYTES + 8192
    offsets, file = OffsetIndex(), CountedReads(segment.file)
    state = gone_through(cast("File", file), segment.size, 0, CONFIG.index_interval_bytes, offsets, TimeIndex())
    assert file.count <= 2 + segment.size // PIECE_BYTES  # the interpreter is asked no more often
    assert (state.position, state.next_offset) == (segment.size, log.end_offset)
    assert offsets.positions == segment.offsets.positions


@pytest.mark.parametrize("size", [0, 1, 60, 61])
def test_a_piece_without_a_whole_sound_header_ends_where_it_begins(size: int) -> None:
    state = (0, BASE, 0, -1, -1)
    assert indexed.walk(b"\xff" * size, 1 << 20, BASE, 0, -1, state) == (state, b"", b"", b"", b"")
