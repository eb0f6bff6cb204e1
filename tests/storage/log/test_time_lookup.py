"""Offsets for timestamps, as ListOffsets asks for them."""

from __future__ import annotations

import pytest
from tests.storage.at_once import expire, first_at_or_after, of_largest_timestamp
from tests.storage.log_world import NOW, World, batch, put

from ottla.config.log import LogConfig
from ottla.records.batch import set_max_timestamp
from ottla.records.record import Record, encode_batch
from ottla.storage.log.indexes.time_lookup import (
    HEADERS_AT_ONCE,
    SEGMENTS_AT_ONCE,
    Elsewhere,
    Lookup,
    LookupPause,
    TimestampOffset,
)
from ottla.storage.log.log import Log

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100, retention_ms=-1)


def log_with(*times: int, compression: int = 0, per_batch: int = 2, config: LogConfig = CONFIG) -> Log:
    """Batches of records at t, t + 1, ..."""
    world = World(config=config)
    log = world.open()
    for time in times:
        put(log, batch(*[b"v" * 30] * per_batch, timestamp=NOW + time, compression=compression))
    return log


def find(log: Log, time: int, limit: int | None = None) -> tuple[int, int] | None:
    found = first_at_or_after(log, NOW + time, log.end_offset if limit is None else limit)
    return None if found is None else (found.timestamp - NOW, found.offset)


def test_rising_times() -> None:
    log = log_with(*range(0, 1000, 10))
    assert len(log.segments) > 5
    assert find(log, -5) == (0, 0)
    assert find(log, 0) == (0, 0)
    assert find(log, 1) == (1, 1)
    assert find(log, 2) == (10, 2)
    assert find(log, 555) == (560, 112)
    assert find(log, 991) == (991, 199)
    assert find(log, 992) is None
    assert find(log, 555, limit=112) is None
    assert find(log, 555, limit=113) == (560, 112)


def test_times_in_any_order() -> None:
    log = log_with(50, 10, 70, 20, 60, 90, 30)
    assert find(log, 0) == (50, 0)
    assert find(log, 52) == (70, 4)
    assert find(log, 72) == (90, 10)


def test_inside_compressed_batches() -> None:
    log = log_with(0, 100, 200, compression=3, per_batch=10)
    assert find(log, 5) == (5, 5)
    assert find(log, 104) == (104, 14)


def test_only_what_was_not_deleted() -> None:
    log = log_with(0, 10, 20)
    log.advance_start(3)
    assert find(log, 0) == (11, 3)


def test_the_largest_timestamp() -> None:
    assert of_largest_timestamp(log_with()) is None
    found = of_largest_timestamp(log_with(50, 10, 70, 20, 70, 30))
    assert found is not None
    assert (found.timestamp - NOW, found.offset, found.leader_epoch) == (71, 5, 0)


def largest(log: Log) -> tuple[int, int] | None:
    found = of_largest_timestamp(log)
    return None if found is None else (found.timestamp - NOW, found.offset)


def test_the_largest_timestamp_of_what_was_not_deleted() -> None:
    log = log_with(90, 10, 70, 20, 60, 80, 30, config=LogConfig(retention_ms=-1))
    assert len(log.segments) == 1
    assert largest(log) == (91, 1)
    log.advance_start(1)
    assert largest(log) == (91, 1)
    log.advance_start(2)
    assert largest(log) == (81, 11)
    # Inside of a batch: its header speaks for both of its records.
    log.advance_start(11)
    assert largest(log) == (81, 11)
    log.advance_start(12)
    assert largest(log) == (31, 13)
    log.advance_start(14)
    assert largest(log) is None


def test_the_largest_timestamp_falls_within_a_batch_that_is_partly_deleted() -> None:
    log = World(config=LogConfig()).open()
    raw = bytearray(
        encode_batch([Record(number, NOW + time, None, b"v", ()) for number, time in enumerate((50, 90, 40, 70, 70))])
    )
    put(log, memoryview(raw))
    found = {}
    for start in range(6):
        log.advance_start(start)
        found[start] = largest(log)
    assert found == {0: (90, 1), 1: (90, 1), 2: (70, 3), 3: (70, 3), 4: (70, 4), 5: None}


def test_the_largest_timestamp_of_segments_that_are_deleted_and_not_gone_yet() -> None:
    log = log_with(900, *range(0, 200, 10), 500, *range(200, 300, 10))
    assert len(log.segments) == 5
    assert largest(log) == (901, 1)
    log.advance_start(log.segments[2].base_offset)
    assert largest(log) == (501, 43)
    log.advance_start(43)
    assert largest(log) == (501, 43)
    log.advance_start(44)
    assert largest(log) == (291, log.end_offset - 1)


def test_a_batch_that_is_partly_deleted_may_be_opened_elsewhere() -> None:
    log = log_with(0, per_batch=1200, config=LogConfig())
    log.advance_start(600)
    put(log, batch(b"v", timestamp=NOW + 500))
    (only,), found = steps(log.look_up_largest())
    assert isinstance(only, Elsewhere)
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 1199, 1199)


def test_many_segments_are_asked_with_pauses() -> None:
    log = log_with(*range(0, 1000, 10), config=LogConfig(segment_bytes=200, index_interval_bytes=100))
    count = len(log.segments)
    assert count > 5 * SEGMENTS_AT_ONCE
    for lookup in (log.look_up_largest(), log.look_up(NOW + 5000, log.end_offset)):
        taken, _ = steps(lookup)
        assert [type(step) for step in taken] == [LookupPause] * (count // SEGMENTS_AT_ONCE)


def test_segments_may_go_between_two_pauses() -> None:
    log = log_with(*range(0, 1000, 10), 20_000, config=LogConfig(segment_bytes=200, index_interval_bytes=100))
    flush = log.prepare_flush()
    assert flush is not None
    flush.run()
    log.flushed(flush)
    for lookup in (log.look_up_largest(), log.look_up(NOW + 20_000, log.end_offset)):
        next(lookup)
        log.advance_start(log.segments[20].base_offset)
        assert expire(log, NOW, log.end_offset)
        _, found = steps(lookup)
        assert found is not None
        assert found.offset - 200 == found.timestamp - NOW - 20_000


def test_records_without_times() -> None:
    log = World(config=CONFIG).open()
    put(log, batch(b"v", timestamp=-1))
    assert of_largest_timestamp(log) is None
    assert first_at_or_after(log, 0, log.end_offset) is None


def steps(lookup: Lookup) -> tuple[list[LookupPause | Elsewhere], TimestampOffset | None]:
    """What a look-up leaves to its driver, and what it finds."""
    taken: list[LookupPause | Elsewhere] = []
    try:
        step = next(lookup)
        while True:
            taken.append(step)
            step = lookup.send(None if isinstance(step, LookupPause) else step.work(*step.arguments()))
    except StopIteration as end:
        return taken, end.value


def lying_batch(count: int, latest: int) -> memoryview:
    """Its header claims a time that no record has."""
    raw = bytearray(batch(*[b"v"] * count, timestamp=NOW))
    set_max_timestamp(raw, 0, NOW + latest, log_append_time=False)
    return memoryview(raw)


def test_what_is_little_is_done_at_once() -> None:
    taken, found = steps(log_with(0, 5000, per_batch=900, config=LogConfig()).look_up(NOW + 850, 1800))
    assert taken == []
    assert found is not None
    assert found.offset == 850


def test_a_batch_of_many_records_is_opened_elsewhere() -> None:
    log = log_with(0, 5000, per_batch=1200, config=LogConfig())
    (only,), found = steps(log.look_up(NOW + 850, 2400))
    assert isinstance(only, Elsewhere)
    assert only.arguments()[1:] == (NOW + 850, 0, False)
    assert found is not None
    assert found.offset == 850
    (only,), found = steps(log.look_up_largest())
    assert isinstance(only, Elsewhere)
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 6199, 2399)


def test_many_batches_whose_headers_lie_are_opened_elsewhere() -> None:
    world = World(config=LogConfig())
    log = world.open()
    for _ in range(100):
        put(log, lying_batch(3, 50))
    put(log, batch(b"there", timestamp=NOW + 40))
    taken, found = steps(log.look_up(NOW + 30, log.end_offset))
    assert found is not None
    assert found.offset == 300
    # Twenty are opened in place.
    assert [type(step) for step in taken] == [Elsewhere] * (len(taken))
    assert 75 <= len(taken) <= 85
    assert first_at_or_after(log, NOW + 30, log.end_offset) == found


def test_headers_are_read_with_pauses() -> None:
    log = World(config=LogConfig()).open()
    put(log, lying_batch(1, 50))
    for _ in range(2 * HEADERS_AT_ONCE):
        put(log, batch(b"v", timestamp=NOW))
    taken, found = steps(log.look_up(NOW + 30, log.end_offset))
    assert found is None
    assert [type(step) for step in taken] == [LookupPause] * 3


def test_a_segment_may_go_while_it_is_searched() -> None:
    log = log_with(0, 10_000, 20_000, per_batch=1200, config=LogConfig(segment_bytes=60_000, retention_ms=-1))
    assert len(log.segments) == 3
    lookup = log.look_up(NOW + 500, log.end_offset)
    step = next(lookup)
    assert isinstance(step, Elsewhere)
    log.advance_start(3000)
    for segment in log.segments[:2]:
        segment.leave()
    with pytest.raises(StopIteration) as end:
        lookup.send(step.work(*step.arguments()))
    assert end.value.value.offset == 500
