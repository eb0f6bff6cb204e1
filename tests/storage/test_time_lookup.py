"""Offsets for timestamps, as ListOffsets asks for them."""

from __future__ import annotations

from tests.storage.log_world import NOW, World, batch, put

from ottla.config.log import LogConfig
from ottla.storage.log import Log

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100, retention_ms=-1)


def log_with(*times: int, compression: int = 0, per_batch: int = 2) -> Log:
    """Batches of records at t, t + 1, ..."""
    world = World(config=CONFIG)
    log = world.open()
    for time in times:
        put(log, batch(*[b"v" * 30] * per_batch, timestamp=NOW + time, compression=compression))
    return log


def find(log: Log, time: int, limit: int | None = None) -> tuple[int, int] | None:
    found = log.offset_for_timestamp(NOW + time, log.end_offset if limit is None else limit)
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
    assert log_with().max_timestamp_offset() is None
    found = log_with(50, 10, 70, 20, 70, 30).max_timestamp_offset()
    assert found is not None
    assert (found.timestamp - NOW, found.offset, found.leader_epoch) == (71, 5, 0)


def test_records_without_times() -> None:
    log = World(config=CONFIG).open()
    put(log, batch(b"v", timestamp=-1))
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0, log.end_offset) is None
