"""Small parts of a log by themselves: indexes as bytes, epochs, the bound on open files, the reader from outside."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.at_once import cut_to
from tests.storage.log_world import NOW, SMALL, World, append, batch, put, read_all

from ottla.config.log import LogConfig
from ottla.records.record import decode_batch
from ottla.storage.errors import BadBatch, DamagedIndex, OffsetOutsideLog
from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.indexes import txn_index
from ottla.storage.log.indexes.offset_index import OffsetIndex
from ottla.storage.log.indexes.time_index import TimeIndex
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.open_files import OpenFiles
from ottla.storage.log.reader import LogReader

UINT31 = st.integers(1, 2**31 - 1)


@given(st.lists(st.tuples(UINT31, UINT31), max_size=50))
def test_offset_index_bytes(pairs: list[tuple[int, int]]) -> None:
    offsets = sorted({offset for offset, _ in pairs})
    positions = sorted({position for _, position in pairs})
    index = OffsetIndex()
    for offset, position in zip(offsets, positions, strict=False):
        index.append(offset, position)
    data = index.encode()
    expected = b"".join(
        offset.to_bytes(4, "big") + position.to_bytes(4, "big")
        for offset, position in zip(offsets, positions, strict=False)
    )
    assert data == expected
    again = OffsetIndex.decode(data + bytes(80), 2**31)
    assert (again.offsets, again.positions) == (index.offsets, index.positions)
    for probe in [0, *offsets, 2**31 - 1]:
        below = [number for number, offset in enumerate(index.offsets) if offset <= probe]
        assert again.floor(probe) == (below[-1] if below else -1)


@given(st.binary(max_size=120))
def test_indexes_of_any_bytes(data: bytes) -> None:
    for decode in (
        lambda: OffsetIndex.decode(data, 2**31),
        lambda: TimeIndex.decode(data),
        lambda: txn_index.decode(data, 0),
    ):
        try:
            decode()
        except DamagedIndex:
            continue


def test_time_index_bytes() -> None:
    index = TimeIndex()
    for timestamp, offset in ((NOW, 3), (NOW, 4), (NOW - 1, 5), (NOW + 7, 6), (-1, 7)):
        index.append_if_later(timestamp, offset)
    expected = NOW.to_bytes(8, "big") + b"\0\0\0\3" + (NOW + 7).to_bytes(8, "big") + b"\0\0\0\6"
    assert index.encode() == expected
    again = TimeIndex.decode(expected + bytes(24))
    assert (again.timestamps, again.offsets) == (index.timestamps, index.offsets)
    assert [again.floor_offset(NOW + each) for each in (-1, 0, 1, 7, 8)] == [0, 0, 3, 3, 6]


def test_txn_index_bytes() -> None:
    entries = [AbortedTransaction(7, 1, 5, 3), AbortedTransaction(8, 3, 9, 10)]
    data = txn_index.encode(entries)
    assert data[:34] == b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (7, 1, 5, 3))
    assert txn_index.decode(data, 0) == entries
    for damaged in (data[:-1], data[34:] + data[:34], b"\0\1" + data[2:]):
        with pytest.raises(DamagedIndex):
            txn_index.decode(damaged, 0)


def test_epochs_and_where_they_end() -> None:
    cache = EpochCache([(1, 0), (3, 10), (4, 20)])
    assert cache.latest == 4
    answers = {epoch: cache.end_offset_for(epoch, 33) for epoch in range(-1, 6)}
    assert answers == {-1: None, 0: (0, 0), 1: (1, 10), 2: (1, 10), 3: (3, 20), 4: (4, 33), 5: None}
    assert [cache.epoch_at(offset) for offset in (0, 9, 10, 25)] == [1, 1, 3, 4]
    cache.assign(4, 25)
    assert not cache.dirty
    cache.assign(6, 33)
    cache.assign(7, 33)
    # The sixth wrote nothing.
    assert cache.entries()[-2:] == [(4, 20), (7, 33)]
    cache.truncate_from_end(20)
    assert cache.entries() == [(1, 0), (3, 10)]
    cache.truncate_from_start(4)
    assert cache.entries() == [(1, 4), (3, 10)]
    cache.truncate_from_start(15)
    assert cache.entries() == [(3, 15)]
    assert EpochCache().end_offset_for(0, 5) is None
    assert EpochCache().latest == -1


def test_an_epoch_is_known_before_it_has_records_and_costs_no_file() -> None:
    cache = EpochCache([(1, 0)])
    cache.begin(3, 10)
    assert (cache.entries(), cache.dirty) == ([(1, 0), (3, 10)], False)
    assert {epoch: cache.end_offset_for(epoch, 10) for epoch in (1, 2, 3, 4)} == {
        1: (1, 10),
        2: (1, 10),
        3: (3, 10),
        4: None,
    }
    # The third wrote nothing, so that it leaves no trace, in Kafka neither.
    cache.begin(4, 10)
    cache.begin(4, 10)
    assert (cache.entries(), cache.dirty) == ([(1, 0), (4, 10)], False)
    cache.assign(4, 10)
    assert (cache.entries(), cache.dirty, cache.is_pending) == ([(1, 0), (4, 10)], True, False)
    cache.dirty = False
    cache.begin(5, 12)
    cache.truncate_from_end(12)
    assert (cache.entries(), cache.is_pending) == ([(1, 0), (4, 10)], False)
    # A leader of an older leader epoch, as after the loss of a controller's memory: what contradicts it goes.
    cache.dirty = False
    cache.begin(2, 15)
    assert (cache.entries(), cache.dirty) == ([(1, 0), (2, 15)], True)
    empty = EpochCache()
    empty.begin(0, 0)
    assert (empty.end_offset_for(0, 0), empty.epoch_at(0), empty.dirty) == ((0, 0), 0, False)


class FakeOpen:
    """Counts, where a segment would hold a file."""

    def __init__(self) -> None:
        self.used = False
        self.is_open = True
        self.is_clean = True

    def release_files(self) -> None:
        self.is_open = False


def test_the_longest_unused_files_close() -> None:
    files = OpenFiles(limit=3)
    opened = [FakeOpen() for _ in range(6)]
    for each in opened[:3]:
        files.opened(each)
    opened[0].used = True
    opened[1].is_clean = False
    files.opened(opened[3])
    assert [each.is_open for each in opened[:4]] == [True, True, False, True]
    files.opened(opened[4])
    files.opened(opened[5])
    assert opened[1].is_open
    assert len(files) == 3


def test_a_reader_from_outside_follows_a_log_that_is_written_to() -> None:
    world = World(config=SMALL)
    log = world.open()
    reader = LogReader(world.disk, world.folder)
    rng = Random(5)
    seen: list[tuple[int, bytes]] = []
    offset = 0
    for number in range(200):
        append(log, b"%d" % number * rng.randint(1, 30), b"!")
        if rng.random() < 0.2:
            for stored in reader.batches(offset):
                seen += [(record.offset, bytes(record.value or b"")) for record in decode_batch(stored.data, 0)]
                offset = stored.header.next_offset
    for stored in reader.batches(offset):
        seen += [(record.offset, bytes(record.value or b"")) for record in decode_batch(stored.data, 0)]
    assert seen == read_all(log)
    assert reader.segments() == [segment.base_offset for segment in log.segments]
    limited = [stored.header.last_offset for stored in reader.batches(10, limit=20)]
    assert (limited[0], limited[-1]) == (11, 19)
    sealed = LogReader(world.disk, world.folder, sealed_only=True)
    assert [*sealed.batches()][-1].header.next_offset == log.active.base_offset


class CountedReads:
    """A disk of which only the bytes matter that are read from log files."""

    def __init__(self, disk: Any) -> None:
        self._disk = disk
        self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def open_read_only(self, path: str) -> Any:
        return CountedFile(self, self._disk.open_read_only(path))


class CountedFile:
    def __init__(self, disk: CountedReads, file: Any) -> None:
        self._disk, self._file = disk, file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int, position: int) -> bytes:
        data: bytes = self._file.read(size, position)
        self._disk.bytes += len(data)
        return data


def test_a_reader_from_outside_goes_on_where_it_was() -> None:
    world = World(config=LogConfig(index_interval_bytes=4096))
    log = world.open()
    for number in range(2000):
        append(log, b"%d" % number * 200)
    disk = CountedReads(world.disk)
    reader = LogReader(disk, world.folder)
    assert len([*reader.batches()]) == 2000
    assert disk.bytes >= log.size > 1_000_000
    for _ in range(20):
        offset = log.end_offset
        append(log, b"news")
        disk.bytes = 0
        assert [stored.header.base_offset for stored in reader.batches(offset)] == [offset]
        assert [*reader.batches(offset + 1)] == []
        assert disk.bytes < 10_000
    # The owner cuts its log and writes other batches: the place that was remembered is none any more.
    cut_to(log, 1500)
    append(log, b"other" * 700)
    append(log, b"other")
    assert [stored.header.base_offset for stored in reader.batches(1501)] == [1501]
    assert [stored.header.base_offset for stored in reader.batches(1499)] == [1499, 1500, 1501]


@pytest.mark.parametrize("damage", ["", "cut", "other", "gone"])
def test_a_reader_from_outside_begins_where_the_index_says(damage: str) -> None:
    world = World(config=LogConfig(index_interval_bytes=4096))
    log = world.open()
    for number in range(4000):
        append(log, b"%d" % number * 200)
    log.close()
    index = log.active.path(".index")
    data = world.disk.read_file(index)
    assert len(data) > 100
    if damage == "gone":
        world.disk.remove(index)
    elif damage:
        file = world.disk.open(index)
        file.truncate(len(data) - 3) if damage == "cut" else file.write(b"\0\0\0\7" * (len(data) // 4), 0)
    disk = CountedReads(world.disk)
    for offset in (3000, 10, 3999):
        found = [stored.header.base_offset for stored in LogReader(disk, world.folder).batches(offset, offset + 1)]
        assert found == [offset]
    if not damage:
        assert disk.bytes < 3 * (1 << 20) + 1000


def test_a_reader_stops_before_what_is_not_whole_and_says_what_is_damaged() -> None:
    world = World(config=LogConfig())
    log = world.open()
    for number in range(5):
        append(log, b"%d" % number)
    place = log.active.locate(4)
    assert place is not None
    reader = LogReader(world.disk, world.folder)
    file = world.disk.open(log.active.path())
    for length in range(log.size - 1, place.position - 1, -1):
        file.truncate(length)
        assert len([*reader.batches()]) == 4
    # Set aside for what is still to come.
    file.truncate(log.size + 1000)
    assert len([*reader.batches()]) == 4
    file.write(b"\xff", 100)
    with pytest.raises(BadBatch):
        [*reader.batches()]
    with pytest.raises(OffsetOutsideLog):
        [*reader.batches(-1)]


def test_a_reader_meets_a_batch_larger_than_it_reads_at_once() -> None:
    world = World(config=LogConfig(max_message_bytes=1 << 24))
    log = world.open()
    put(log, batch(b"x" * 3_000_000))
    append(log, b"a")
    assert [stored.header.next_offset for stored in LogReader(world.disk, world.folder).batches()] == [1, 2]


def test_an_empty_log_opens_without_reading_a_file() -> None:
    world = World()
    world.close(world.open())
    world.disk.fail("open", "*", 5)  # type: ignore[attr-defined]
    world.disk.fail("read", "*", 5)  # type: ignore[attr-defined]
    assert world.open().end_offset == 0
