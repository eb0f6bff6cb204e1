"""Aborted records, markers, delete horizons, and the headers that stay for producers."""

from __future__ import annotations

from tests.storage.cleaner.cleaning import COMPACTED, Cleaner, batches_of, compacted_world, put_keyed, records_of
from tests.storage.log_world import NOW, World, marker, put

from ottla.records.batch import BatchHeader
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log

CONFIG = COMPACTED._replace(segment_bytes=1 << 20)


def world_and_log() -> tuple[World, Log, Cleaner]:
    world = compacted_world(config=CONFIG)
    return world, world.open(), Cleaner(world)


def end(log: Log, producer_id: int, *, aborts: bool, epoch: int = 0) -> int:
    return put(log, marker(producer_id, epoch, aborts=aborts), origin=Origin.COORDINATOR).first_offset


def seal(log: Log, name: bytes = b"other") -> None:
    """So that what was written before can be cleaned."""
    log.roll(NOW)
    put_keyed(log, (name, b"x"))


def control_batches(log: Log) -> list[BatchHeader]:
    return [header for header, _ in batches_of(log) if header.is_control]


def headers(log: Log) -> list[tuple[int, int]]:
    """First offset and number of records of each batch."""
    return [(header.base_offset, header.count) for header, _ in batches_of(log)]


def test_records_of_an_aborted_transaction_go_and_do_not_supersede() -> None:
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"kept"))
    put_keyed(log, (b"k", b"aborted"), producer=(1, 0, 0), transactional=True)
    end(log, 1, aborts=True)
    seal(log)
    cleaner.clean(log)
    assert [each.value for each in records_of(log)] == [b"kept", b"x"]


def test_records_of_a_committed_transaction_supersede() -> None:
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"before"))
    put_keyed(log, (b"k", b"committed"), producer=(1, 0, 0), transactional=True)
    end(log, 1, aborts=False)
    seal(log)
    cleaner.clean(log)
    assert [each.value for each in records_of(log)] == [b"committed", b"x"]


def test_a_committed_transaction_supersedes_after_its_producer_aborted_one_in_the_clean_part() -> None:
    """The earlier abort still stands in the transaction index when only the dirty part's keys are read."""
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"gone", b"aborted"), producer=(1, 0, 0), transactional=True)
    end(log, 1, aborts=True)
    put_keyed(log, (b"k", b"before"))
    seal(log)
    cleaner.clean(log)
    put_keyed(log, (b"k", b"committed"), producer=(1, 0, 1), transactional=True)
    end(log, 1, aborts=False)
    seal(log)
    cleaner.clean(log)
    assert [each.value for each in records_of(log) if each.key == b"k"] == [b"committed"]


def test_an_open_transaction_is_the_end_of_what_is_cleaned() -> None:
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"before"))
    log.roll(NOW)
    put_keyed(log, (b"k", b"open"), producer=(1, 0, 0), transactional=True)
    seal(log)
    put_keyed(log, (b"k", b"after"))
    seal(log)
    cleaner.clean(log)
    assert [each.value for each in records_of(log)] == [b"before", b"open", b"x", b"after", b"x"]
    assert log.cleaned_to == 1


def test_a_marker_goes_two_passes_after_its_records_when_its_time_has_come() -> None:
    for aborts in (True, False):
        _, log, cleaner = world_and_log()
        put_keyed(log, (b"k", b"gone"), producer=(1, 0, 0), transactional=True)
        ended = end(log, 1, aborts=aborts)
        put_keyed(log, (b"k", b"newest"))
        # The producer goes on elsewhere, so that nothing is kept for its sake.
        log.producers.clear()
        seal(log)

        cleaner.clean(log)
        assert [each.value for each in records_of(log)] == [b"newest", b"x"]
        [found] = control_batches(log)
        assert found.base_offset == ended
        assert found.delete_horizon_ms is None, "its records were there until this pass"
        assert bool(log.aborted_transactions(0, log.end_offset)) is aborts

        seal(log)
        cleaner.clean(log)
        [found] = control_batches(log)
        assert found.delete_horizon_ms == cleaner.now_ms + CONFIG.delete_retention_ms
        assert log.aborted_transactions(0, log.end_offset) == []

        seal(log)
        cleaner.now_ms += CONFIG.delete_retention_ms - 1
        cleaner.clean(log)
        assert len(control_batches(log)) == 1

        seal(log)
        cleaner.now_ms += 1
        cleaner.clean(log)
        assert control_batches(log) == []


def test_a_tombstone_stays_until_its_horizon_which_is_set_once() -> None:
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"v"), (b"k", None))
    seal(log)
    cleaner.clean(log)
    horizon = NOW + CONFIG.delete_retention_ms
    assert batches_of(log)[0][0].delete_horizon_ms == horizon
    [tombstone, _] = records_of(log)
    assert (tombstone.offset, tombstone.value, tombstone.timestamp) == (1, None, NOW + 1)

    for now_ms, is_there in ((horizon - 1, True), (horizon, False)):
        seal(log)
        cleaner.now_ms = now_ms
        cleaner.clean(log)
        assert (records_of(log)[0] == tombstone) is is_there


def test_an_active_producers_last_batch_stays_as_a_header() -> None:
    world, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"1"), producer=(5, 3, 0))
    put_keyed(log, (b"k", b"2"), (b"k", b"3"), producer=(5, 3, 1))
    put_keyed(log, (b"k", b"newest"))
    seal(log)
    cleaner.clean(log)
    assert headers(log) == [(1, 0), (3, 1), (4, 1)]
    header, _ = batches_of(log)[0]
    assert (header.producer_id, header.producer_epoch, header.last_sequence, header.last_offset) == (5, 3, 2, 2)

    # A start after a crash, without any snapshot, reads from it what a repetition is.
    world.flush(log)
    log.snapshots.remove(log.snapshots.offsets)
    log.abandon()
    world.recovery_point = 0
    log = world.open(clean=False)
    again = put_keyed(log, (b"k", b"2"), (b"k", b"3"), producer=(5, 3, 1))
    assert again.duplicate
    assert (again.first_offset, again.last_offset) == (1, 2)

    # Once the producer is forgotten its header goes too.
    log.producers.clear()
    seal(log)
    cleaner.clean(log)
    assert headers(log)[0] == (3, 1)


def test_a_marker_that_alone_tells_a_producers_epoch_stays() -> None:
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"aborted"), producer=(5, 3, 0), transactional=True)
    end(log, 5, aborts=True, epoch=4)  # the epoch is raised as the coordinator fences the producer
    seal(log)
    for _ in range(4):
        cleaner.clean(log)
        seal(log)
        cleaner.now_ms += 2 * CONFIG.delete_retention_ms
    [found] = control_batches(log)
    assert (found.producer_epoch, found.count) == (4, 0)


def test_the_last_batch_of_a_pass_stays_as_a_header() -> None:
    _, log, cleaner = world_and_log()
    put_keyed(log, (b"k", b"newest"))
    put_keyed(log, (b"gone", b"aborted"), producer=(1, 0, 0), transactional=True)
    log.roll(NOW)
    end(log, 1, aborts=True)
    log.producers.clear()
    seal(log)
    cleaner.world.flush(log)
    cleaner.clean(log)
    assert (2, 1) in headers(log), "the marker, which is the last batch"
    for _ in range(3):
        cleaner.now_ms += 2 * CONFIG.delete_retention_ms
        cleaner.clean(log)
    # The upper bound has not moved: it stays, emptied.
    assert (2, 0) in headers(log)


def test_keyless_records_of_a_former_policy_go() -> None:
    world, log, cleaner = world_and_log()
    log.reconfigure(CONFIG._replace(cleanup_policy=frozenset({"delete"})))
    put_keyed(log, (None, b"no key"), (b"k", b"v"))
    log.reconfigure(CONFIG)
    seal(log)
    cleaner.clean(log)
    assert [each.key for each in records_of(log)] == [b"k", b"other"]
    assert world.warnings == []
