"""Which log is worth a pass, and from where up to where it goes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.storage.at_once import cut_to, expire
from tests.storage.cleaner.cleaning import COMPACTED, Cleaner, compacted_world, put_keyed, records_of
from tests.storage.log_world import NOW, World

from ottla.config.log import LogConfig
from ottla.storage.cleaner.dirt import Dirt, looking_for_dirt
from ottla.storage.log.log import Log

HOUR = 3_600_000
#: A segment for each batch.
CONFIG = COMPACTED._replace(segment_bytes=100)


def log_of(*ages_ms: int, config: LogConfig = CONFIG) -> tuple[World, Log, Cleaner]:
    """Segments of one record each, so old, all on the medium; and an active one."""
    world = compacted_world(config=config)
    log = world.open()
    for age_ms in (*ages_ms, 0):
        put_keyed(log, (b"k", b"v"), timestamp=NOW - age_ms)
    world.flush(log)
    assert [segment.base_offset for segment in log.segments] == list(range(len(ages_ms) + 1))
    return world, log, Cleaner(world)


def bounds(dirt: Dirt) -> tuple[int, int]:
    return dirt.first_dirty_offset, dirt.end_offset


def test_all_but_the_active_segment_is_dirty_at_first() -> None:
    _, log, cleaner = log_of(3, 2, 1)
    dirt = cleaner.dirt(log)
    assert bounds(dirt) == (0, 3)
    assert (dirt.clean_bytes, dirt.dirty_bytes) == (0, sum(segment.size for segment in log.segments[:3]))
    assert dirt.ratio == 1.0
    assert dirt.is_worth(0.99)
    assert not dirt.is_worth(1.0), "more than the ratio, as with Kafka"


def test_the_ratio_is_the_share_of_bytes_behind_the_checkpoint() -> None:
    _, log, cleaner = log_of(4, 3, 2, 1)
    log.cleaned_to = 3
    dirt = cleaner.dirt(log)
    assert bounds(dirt) == (3, 4)
    assert dirt.ratio == 0.25
    assert dirt.is_worth(0.24)
    assert not dirt.is_worth(0.25)


def test_nothing_dirty_is_never_worth_a_pass() -> None:
    _, log, cleaner = log_of(2, 1)
    log.cleaned_to = 2
    assert not cleaner.dirt(log).is_worth(0.0)
    _, empty, cleaner = log_of()
    assert cleaner.dirt(empty).ratio == 0.0
    assert not cleaner.dirt(empty).is_worth(0.0)


@pytest.mark.parametrize(("lag_ms", "end"), [(0, 3), (HOUR, 3), (HOUR + 1, 2), (2 * HOUR + 1, 1), (9 * HOUR, 0)])
def test_min_compaction_lag_ends_before_the_first_segment_that_is_too_young(lag_ms: int, end: int) -> None:
    _, log, cleaner = log_of(3 * HOUR, 2 * HOUR, HOUR, config=CONFIG._replace(min_compaction_lag_ms=lag_ms))
    assert bounds(cleaner.dirt(log)) == (0, end)
    cleaner.clean(log)
    assert [each.offset for each in records_of(log)] == [*range(max(end - 1, 0), 4)]


@pytest.mark.parametrize(("lag_ms", "overdue_ms"), [(2 * HOUR + 1, 0), (2 * HOUR, 0), (2 * HOUR - 1, 1), (HOUR, HOUR)])
def test_max_compaction_lag_makes_a_log_worth_a_pass_however_clean(lag_ms: int, overdue_ms: int) -> None:
    _, log, cleaner = log_of(9 * HOUR, 2 * HOUR, HOUR, config=CONFIG._replace(max_compaction_lag_ms=lag_ms))
    log.cleaned_to = 1
    dirt = cleaner.dirt(log)
    assert dirt.overdue_ms == overdue_ms, "by the oldest that is dirty"
    assert dirt.is_worth(1.0) is (overdue_ms > 0)


def test_what_a_consumer_of_committed_records_may_not_see_yet_is_not_cleaned() -> None:
    _, log, cleaner = log_of(4, 3, 2, 1)
    assert bounds(cleaner.dirt(log, stable_offset=2)) == (0, 2)
    assert bounds(cleaner.dirt(log, stable_offset=0)) == (0, 0)
    log.cleaned_to = 3
    assert bounds(cleaner.dirt(log, stable_offset=2)) == (3, 3)


def test_what_is_not_on_the_medium_supersedes_nothing() -> None:
    world, log, cleaner = log_of(2)
    for _ in range(3):
        put_keyed(log, (b"k", b"not yet"))
    assert bounds(cleaner.dirt(log)) == (0, 2)
    world.flush(log)
    assert bounds(cleaner.dirt(log)) == (0, 4)


def test_a_checkpoint_beyond_the_log_is_not_believed() -> None:
    _, log, cleaner = log_of(2, 1)
    log.cleaned_to = log.end_offset + 1
    dirt = cleaner.dirt(log)
    assert dirt.was_misplaced
    assert bounds(dirt) == (0, 2)
    cleaner.clean(log)
    assert log.cleaned_to == 2


def test_a_checkpoint_below_the_start_of_the_log_moves_up() -> None:
    _, log, cleaner = log_of(3, 2, 1)
    log.cleaned_to = 0
    log.advance_start(2)
    assert bounds(cleaner.dirt(log)) == (2, 3)


def test_both_policies_at_once() -> None:
    """Old segments go by retention whatever is in them; of the rest the newest record of each key stays."""
    both = CONFIG._replace(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=5 * HOUR)
    world, log, cleaner = log_of(9 * HOUR, 8 * HOUR, 2 * HOUR, HOUR, config=both)
    cleaner.clean(log)
    assert [each.offset for each in records_of(log)] == [3, 4]
    for removal in expire(log, NOW, log.end_offset):
        removal.run()
    assert [each.offset for each in records_of(log)] == [3, 4], "an hour old, and the active one"
    for removal in expire(log, NOW + 4 * HOUR + 1, log.end_offset):
        removal.run()
    assert [each.offset for each in records_of(log)] == [4]
    assert world.warnings == []


def test_a_policy_that_changes_back_and_forth() -> None:
    _, log, cleaner = log_of(2, 1, config=CONFIG._replace(cleanup_policy=frozenset({"delete"})))
    log.reconfigure(CONFIG)
    cleaner.clean(log)
    assert [each.offset for each in records_of(log)] == [1, 2]
    log.reconfigure(CONFIG._replace(cleanup_policy=frozenset({"delete"}), retention_ms=1))
    for removal in expire(log, NOW + HOUR, log.end_offset):
        removal.run()
    assert [each.offset for each in records_of(log)] == [2]


def test_max_compaction_lag_bounds_the_active_segments_age() -> None:
    """Else a record of a quiet log waits for segment.ms, a week, before it can be cleaned at all."""
    _, log, _ = log_of(0, config=CONFIG._replace(max_compaction_lag_ms=HOUR))
    assert not log.roll_due(NOW + HOUR)
    assert log.roll_due(NOW + HOUR + 1)
    log.reconfigure(log.config._replace(cleanup_policy=frozenset({"delete"})))
    assert not log.roll_due(NOW + HOUR + 1)


def test_a_segment_that_retention_takes_while_its_times_are_read_is_passed_over() -> None:
    world, log, _ = log_of(3 * HOUR, 2 * HOUR, HOUR)
    world.close(log)
    world.config = CONFIG._replace(
        cleanup_policy=frozenset({"compact", "delete"}), retention_ms=HOUR, max_compaction_lag_ms=1
    )
    log = world.open()
    looking = looking_for_dirt(log, log.end_offset, NOW)
    times = next(work for work in looking if work is not None)
    for removal in expire(log, NOW, log.end_offset):
        removal.run()
    with pytest.raises(FileNotFoundError) as gone:
        times()
    assert log.segments[0].base_offset > 0
    with suppress(StopIteration):
        looking.throw(gone.value)
        while True:
            if (work := next(looking)) is not None:
                work()


def test_a_segment_that_a_cut_opens_again_while_it_is_looked_into_is_written_to() -> None:
    """It ends in a hole, so that nothing of it goes with the cut."""
    world = compacted_world(config=COMPACTED._replace(segment_bytes=170))
    log = world.open()
    for key in (b"a", b"b", b"b", b"c", b"d"):
        put_keyed(log, (key, b"v"), timestamp=NOW - HOUR)
    world.flush(log)
    assert Cleaner(world).clean(log).cleaned_to == 4
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    world.close(log)
    world.config = world.config._replace(min_compaction_lag_ms=1, segment_bytes=1000)
    world.cleaned_to = 0
    log = world.open()
    looking = looking_for_dirt(log, log.end_offset, NOW)
    load = next(looking)
    assert load is not None
    load()
    cut_to(log, 1)
    with suppress(StopIteration):
        next(looking)
    put_keyed(log, (b"e", b"v"))
    assert [record.key for record in records_of(log)] == [b"a", b"e"]
