"""What a log takes, what it refuses and how, and what it does when the disk refuses."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from tests.storage.log_world import NOW, SMALL, World, append, batch, memory_disk, put, read_all, read_batches

from ottla.config.log import LogConfig
from ottla.model import ErrorCode
from ottla.records.batch import ATTRIBUTES_AT, CONTROL, COUNT_AT, LAST_OFFSET_DELTA_AT, MAGIC_AT, patch_crc
from ottla.records.errors import UnreadableBatch
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.storage.errors import AppendRefused, StorageFault
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log

HOUR = 3_600_000


def refused(log: Log, records: memoryview) -> AppendRefused:
    before = (log.end_offset, log.next_offset, log.size)
    with pytest.raises(AppendRefused) as error:
        log.stage(records, leader_epoch=0, now_ms=NOW)
    log.write_staged()
    assert (log.end_offset, log.next_offset, log.size) == before
    return error.value


def changed(records: memoryview, at: int, value: int, size: int, *, crc: bool = True) -> memoryview:
    records[at : at + size] = value.to_bytes(size, "big", signed=True)
    if crc:
        patch_crc(records, 0)
    return records


def test_offsets_and_epoch_are_stamped_into_the_buffer() -> None:
    log = World().open()
    first = log.stage(batch(b"a", b"b"), leader_epoch=7, now_ms=NOW)
    second = log.stage(batch(b"c"), leader_epoch=7, now_ms=NOW)
    assert (first.first_offset, first.last_offset, first.append_time_ms, first.duplicate) == (0, 1, -1, False)
    assert (second.first_offset, second.last_offset) == (2, 2)
    log.write_staged()
    assert [(header.base_offset, header.leader_epoch) for header, _ in read_batches(log)] == [(0, 7), (2, 7)]
    assert log.epochs.entries() == [(7, 0)]


def test_nothing_staged_is_visible_before_it_is_written() -> None:
    log = World().open()
    log.stage(batch(b"a"), leader_epoch=0, now_ms=NOW)
    assert (log.end_offset, log.next_offset) == (0, 1)
    assert log.read(0, 100, 10).size == 0
    log.discard_staged()
    assert append(log, b"b").first_offset == 0
    assert read_all(log) == [(0, b"b")]


def test_one_append_for_all_that_is_staged() -> None:
    disk = memory_disk()
    log = World(disk, LogConfig()).open()
    append(log, b"warm")
    before = disk.operations
    for _ in range(50):
        log.stage(batch(b"x"), leader_epoch=0, now_ms=NOW)
    log.write_staged()
    assert disk.operations == before + 1


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda b: changed(b, MAGIC_AT, 1, 1, crc=False), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, MAGIC_AT, 3, 1, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda b: changed(b, 70, 1, 1, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda b: changed(b, 0, 5, 8), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, COUNT_AT, 3, 4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, COUNT_AT, 0, 4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, COUNT_AT, -1, 4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(changed(b, COUNT_AT, 1, 4), LAST_OFFSET_DELTA_AT, 0, 4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(changed(b, COUNT_AT, 100, 4), LAST_OFFSET_DELTA_AT, 99, 4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, LAST_OFFSET_DELTA_AT, -1, 4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, ATTRIBUTES_AT, CONTROL, 2), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, ATTRIBUTES_AT, 5, 2), UnreadableBatch.error_code),
        (lambda b: changed(b, 8, 3, 4, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda b: changed(b, 8, -1, 4, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda b: changed(b, 8, 2**31 - 1, 4, crc=False), ErrorCode.INVALID_RECORD),
        (lambda b: b[:-1], ErrorCode.INVALID_RECORD),
        (lambda b: b[:40], ErrorCode.INVALID_RECORD),
        (lambda b: b[:0], ErrorCode.INVALID_RECORD),
        (lambda b: memoryview(bytearray(bytes(b) + bytes(b))), ErrorCode.INVALID_RECORD),
    ],
)
def test_a_batch_that_is_not_sound(spoil: Callable[[memoryview], memoryview], code: ErrorCode) -> None:
    assert refused(World().open(), spoil(batch(b"one", b"two"))).error == code


def test_one_record_that_does_not_fill_its_batch() -> None:
    for size in (0, 40, 63, 64, 100, 8000, 9000):
        log = World(config=LogConfig()).open()
        put(log, batch(b"v" * size))
        padded = memoryview(bytearray(bytes(batch(b"v" * size)) + b"\0"))
        length = len(padded) - 12
        assert refused(log, changed(padded, 8, length, 4)).error == ErrorCode.INVALID_RECORD
        assert read_all(log, max_bytes=10_000) == [(0, b"v" * size)]


def test_a_batch_too_large_for_the_topic_and_for_a_segment() -> None:
    log = World(config=SMALL._replace(max_message_bytes=500)).open()
    assert refused(log, batch(b"x" * 500)).error == ErrorCode.MESSAGE_TOO_LARGE
    log = World(config=SMALL).open()
    assert refused(log, batch(b"x" * 2000)).error == ErrorCode.RECORD_LIST_TOO_LARGE


def test_times_out_of_bounds_name_their_records() -> None:
    log = World(config=SMALL._replace(message_timestamp_before_max_ms=HOUR)).open()
    late = refused(log, batch(b"a", b"b", timestamp=NOW + HOUR))
    assert (late.error, [index for index, _ in late.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])
    early = refused(log, batch(b"a", b"b", timestamp=NOW - HOUR - 1))
    assert (early.error, [index for index, _ in early.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [0])
    assert append(log, b"a", timestamp=NOW - HOUR).first_offset == 0


def test_a_compacted_topic_wants_keys() -> None:
    log = World(config=SMALL._replace(cleanup_policy=frozenset({"compact"}))).open()
    fault = refused(log, batch(b"a", b"b"))
    assert (fault.error, [index for index, _ in fault.record_errors]) == (ErrorCode.INVALID_RECORD, [0, 1])
    assert put(log, batch(b"a", key=b"k")).first_offset == 0


def test_log_append_time_replaces_the_producers() -> None:
    log = World(config=SMALL._replace(message_timestamp_type="LogAppendTime")).open()
    appended = put(log, batch(b"a", b"b", timestamp=NOW + 100 * HOUR), now_ms=NOW + 5)
    assert appended.append_time_ms == NOW + 5
    [(header, data)] = read_batches(log)
    assert header.is_log_append_time
    assert [record.timestamp for record in decode_batch(data, 0)] == [NOW + 5] * 2


@pytest.mark.parametrize(("name", "codec"), [("gzip", 1), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)])
def test_the_topics_compression_replaces_the_producers(name: str, codec: int) -> None:
    log = World(config=SMALL._replace(compression_type=name)).open()
    put(log, batch(b"a" * 300, b"b" * 300, compression=2))
    [(header, data)] = read_batches(log)
    assert header.compression == codec
    assert [bytes(record.value or b"") for record in decode_batch(data, 0)] == [b"a" * 300, b"b" * 300]


def test_a_new_configuration_counts_from_the_next_batch() -> None:
    log = World(config=SMALL).open()
    append(log, b"x" * 400)
    log.reconfigure(SMALL._replace(max_message_bytes=300))
    assert refused(log, batch(b"x" * 400)).error == ErrorCode.MESSAGE_TOO_LARGE


def test_a_replicas_batches_keep_offsets_and_epochs() -> None:
    leader, follower = World().open(), World().open()
    for number in range(30):
        append(leader, b"%d" % number, epoch=number // 10)
    data = bytearray(b"".join(bytes(each) for _, each in read_batches(leader)))
    whole = len(data) - 20
    appended = follower.stage_replica(memoryview(data)[:whole])
    follower.write_staged()
    assert (appended.first_offset, appended.last_offset, follower.end_offset) == (0, 28, 29)
    assert read_all(follower) == read_all(leader)[:29]
    assert follower.epochs.entries() == [(0, 0), (1, 10), (2, 20)] == leader.epochs.entries()
    with pytest.raises(AppendRefused):
        follower.stage_replica(memoryview(data)[:100])
    last = read_batches(leader)[-1][1].tobytes()
    with pytest.raises(AppendRefused):
        follower.stage_replica(memoryview(last[:-1] + b"\xff"))
    follower.stage_replica(memoryview(last))


def test_a_replica_may_have_holes() -> None:
    world = World()
    log = world.open()
    for offset in (3, 10, 2**31 + 50, 2**33):
        encoded = encode_batch([Record(offset, NOW, None, b"v%d" % offset, ())], base_offset=offset, leader_epoch=1)
        log.stage_replica(memoryview(bytearray(encoded)))
        log.write_staged()
    expected = [(offset, b"v%d" % offset) for offset in (3, 10, 2**31 + 50, 2**33)]
    assert read_all(log) == expected
    assert [segment.base_offset for segment in log.segments] == [0, 2**31 + 50, 2**33]
    world.close(log)
    assert read_all(world.open()) == expected


def test_a_full_disk_refuses_and_goes_on_when_there_is_room() -> None:
    disk = memory_disk(capacity_bytes=1200)
    world = World(disk)
    log = world.open()
    append(log, b"first" * 100)
    log.stage(batch(b"1", producer=(1, 0, 0)), leader_epoch=0, now_ms=NOW)
    log.stage(batch(b"x" * 900), leader_epoch=0, now_ms=NOW)
    with pytest.raises(StorageFault) as fault:
        log.write_staged()
    assert not fault.value.directory_failed
    assert (log.end_offset, log.next_offset) == (1, 1)
    assert log.describe_producers() == []
    assert read_all(log) == [(0, b"first" * 100)]
    disk.capacity_bytes = 1 << 20
    assert put(log, batch(b"1", producer=(1, 0, 0))).first_offset == 1
    append(log, b"third")
    assert read_all(log) == [(0, b"first" * 100), (1, b"1"), (2, b"third")]
    world.close(log)
    assert read_all(world.open()) == [(0, b"first" * 100), (1, b"1"), (2, b"third")]


def test_a_disk_that_fails_takes_its_directory_with_it() -> None:
    disk = memory_disk()
    log = World(disk).open()
    append(log, b"a")
    disk.fail("append", "*.log", errno.EIO, times=1)
    log.stage(batch(b"b"), leader_epoch=0, now_ms=NOW)
    with pytest.raises(StorageFault) as fault:
        log.write_staged()
    assert fault.value.directory_failed
    assert read_all(log) == [(0, b"a")]


def test_a_roll_that_finds_the_disk_full_leaves_the_log_whole() -> None:
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    append(log, b"x" * 1500)
    disk.capacity_bytes = disk.total_bytes("/") - disk.free_bytes("/")
    with pytest.raises(StorageFault):
        log.stage(batch(b"y" * 1000), leader_epoch=0, now_ms=NOW)
    log.discard_staged()
    disk.capacity_bytes = 1 << 20
    append(log, b"y" * 1000)
    expected = [(0, b"x" * 1500), (1, b"y" * 1000)]
    assert read_all(log) == expected
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    world.close(log)
    for clean in (True, False):
        log = world.open(clean=clean)
        assert read_all(log) == expected
        log.abandon()


@pytest.mark.parametrize("name", ["*.index", "*.timeindex", "*002.log"])
def test_a_roll_that_fails_halfway_can_be_done_again(name: str) -> None:
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    append(log, b"x" * 800)
    append(log, b"x" * 800)
    disk.fail("*", name, errno.ENOSPC, times=1)
    with pytest.raises(StorageFault) as fault:
        log.stage(batch(b"y" * 800), leader_epoch=0, now_ms=NOW)
    assert not fault.value.directory_failed
    log.discard_staged()
    # As the bound on open files may: it has to be opened for writing again.
    log.active.close()
    append(log, b"z")
    append(log, b"y" * 800)
    expected = [(0, b"x" * 800), (1, b"x" * 800), (2, b"z"), (3, b"y" * 800)]
    assert read_all(log) == expected
    log.abandon()
    for clean in (False, True):
        log = world.open(clean=clean)
        assert read_all(log) == expected
        world.close(log)


def test_a_coordinator_writes_without_sequences() -> None:
    log = World().open()
    assert put(log, batch(b"a", producer=(5, 1, -1)), origin=Origin.COORDINATOR).first_offset == 0
    assert put(log, batch(b"b", producer=(5, 1, -1)), origin=Origin.COORDINATOR).first_offset == 1
    with pytest.raises(AppendRefused) as error:
        put(log, batch(b"c", producer=(5, 0, -1)), origin=Origin.COORDINATOR)
    assert error.value.error == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("hole", [100, 2**31 + 7])
def test_what_was_not_taken_behind_a_hole_leaves_the_hole_open(hole: int) -> None:
    """A leader's batch begins a segment and is not taken; the next leader has records in what was a hole before."""

    def sent(offset: int, size: int = 300) -> memoryview:
        record = Record(offset, NOW, None, b"v" * size, ())
        return memoryview(bytearray(encode_batch([record], base_offset=offset, leader_epoch=1)))

    log = World(config=SMALL._replace(segment_bytes=1000)).open()
    log.stage_replica(sent(0, size=900))
    log.write_staged()
    behind = sent(1 + hole)
    log.stage_replica(behind)
    log.discard_staged()
    assert (len(log.segments), log.end_offset) == (2, 1)
    for offset in (1, 50, 1 + hole):
        log.stage_replica(sent(offset))
        log.write_staged()
    assert [offset for offset, _ in read_all(log)] == [0, 1, 50, 1 + hole]


def test_a_leader_epoch_without_records_goes_when_another_leader_sends_records_of_an_earlier_one() -> None:
    """A broker was elected, stood still, and follows now: with its own leader epoch kept, its next leader would have it
    cut what is committed."""
    log = World().open()
    log.stage_replica(batch(b"a", base_offset=0, leader_epoch=2))
    log.write_staged()
    log.begin_leader_epoch(3)
    assert log.epochs.entries() == [(2, 0), (3, 1)]
    for base, epoch in ((1, 2), (2, 2), (3, 4)):
        log.stage_replica(batch(b"b", base_offset=base, leader_epoch=epoch))
    log.write_staged()
    assert log.epochs.entries() == [(2, 0), (4, 3)]
