"""A log whose newest batches lie behind holes, as a follower copies them from a leader that was cleaned."""

from __future__ import annotations

import pytest
from tests.storage.at_once import cut_to, start_move
from tests.storage.directory_world import CONFIG as DIRECTORY_CONFIG
from tests.storage.directory_world import NOW as DIRECTORY_NOW
from tests.storage.directory_world import TOPIC_ID, TP, B
from tests.storage.directory_world import World as DirectoryWorld
from tests.storage.log_world import NOW, SMALL, World, batch

from ottla.records.batch import iterate
from ottla.storage.log.cursor import Cursor
from ottla.storage.log.log import Log

#: First offsets and numbers of records: 10..19 and 25..29 were compacted away.
BATCHES = ((0, 10), (20, 5), (30, 3))


def put_with_holes(log: Log) -> Log:
    """All in the active segment."""
    for first, count in BATCHES:
        values = [b"v%d" % offset for offset in range(first, first + count)]
        log.stage_replica(batch(*values, base_offset=first, leader_epoch=0))
        log.write_staged()
    return log


def first_batches(log: Log, offset: int, limit_offset: int) -> list[int]:
    """First offsets of what a reader gets there."""
    data = log.read(offset, 1 << 20, limit_offset).read()
    return [header.base_offset for _, header in iterate(data, 0, len(data))]


@pytest.mark.parametrize("opened_again", [False, True])
def test_an_offset_in_a_hole_is_answered_with_the_batch_behind_it(*, opened_again: bool) -> None:
    world = World()
    log = put_with_holes(world.open())
    if opened_again:
        world.close(log)
        log = world.open()
    for offset in range(log.end_offset):
        following = [first for first, count in BATCHES if offset < first + count]
        assert first_batches(log, offset, log.end_offset) == following, offset
        # And again, from what was remembered of it.
        assert first_batches(log, offset, log.end_offset) == following, offset


def test_what_lies_before_a_hole_is_read_up_to_a_limit_within_it() -> None:
    """The high watermark may be there, while a new leader's followers are behind the hole yet."""
    log = put_with_holes(World().open())
    for limit in range(1, log.end_offset + 1):
        below = [first for first, count in BATCHES if first + count <= limit]
        assert first_batches(log, 0, limit) == below, limit


def test_a_reader_goes_on_behind_a_hole_batch_by_batch() -> None:
    log = put_with_holes(World().open())
    cursor = Cursor(log)
    offset, seen = 0, []
    while offset < log.end_offset:
        size = cursor.find(offset, 1, log.end_offset)
        data = bytearray(cursor.segment.file.read(size, cursor.position))
        _, header = next(iter(iterate(data, 0, size)))
        assert header.last_offset >= offset
        cursor.has_read(data, 0, size)
        seen.append(header.base_offset)
        offset = header.next_offset
    assert seen == [first for first, _ in BATCHES]


def test_a_follower_goes_on_behind_a_hole() -> None:
    """Its log ends where the hole begins."""
    leader = put_with_holes(World().open())
    follower = World().open()
    while follower.end_offset < leader.end_offset:
        data = leader.read(follower.end_offset, 1, leader.end_offset).read()
        follower.stage_replica(memoryview(bytearray(data)))
        follower.write_staged()
    assert first_batches(follower, 0, follower.end_offset) == [first for first, _ in BATCHES]


def test_a_copy_in_another_directory_goes_on_behind_a_hole() -> None:
    directories = DirectoryWorld().open()
    log = put_with_holes(directories.create(TP, TOPIC_ID, DIRECTORY_CONFIG, now_ms=DIRECTORY_NOW))
    move = start_move(directories, TP, B, DIRECTORY_CONFIG, now_ms=DIRECTORY_NOW)
    assert move is not None
    for _ in BATCHES:
        assert move.copy_step(1) > 0
    assert move.is_level
    assert first_batches(move.log, 0, log.end_offset) == [first for first, _ in BATCHES]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("rolls_behind", [(), (0,), (20,)])
@pytest.mark.parametrize(("cut", "end"), [(12, 10), (27, 25)])
def test_a_log_that_is_cut_within_a_hole_is_not_missed_by_a_start(*, cut, end, rolls_behind, clean) -> None:
    """As that of a follower whose leader was elected though it lacked records, and has no others yet."""
    world = World(config=SMALL._replace(cleanup_policy=frozenset({"compact"})))
    log = world.open()
    for first, count in BATCHES:
        values = [b"v%d" % offset for offset in range(first, first + count)]
        log.stage_replica(batch(*values, base_offset=first, leader_epoch=0))
        log.write_staged()
        if first in rolls_behind:
            log.roll(NOW)
    world.flush(log)
    cut_to(log, cut)
    left = first_batches(log, 0, log.end_offset)
    assert log.end_offset <= cut
    world.flush(log)
    if clean:
        world.close(log)
    again = world.open(clean=clean)
    assert again.end_offset == end
    assert first_batches(again, 0, again.end_offset) == left


def test_a_log_that_is_cut_within_the_hole_that_it_begins_in_ends_at_its_start() -> None:
    world = World(config=SMALL._replace(cleanup_policy=frozenset({"compact"})))
    log = put_with_holes(world.open())
    world.flush(log)
    log.advance_start(11)
    cut_to(log, 12)
    assert (log.start_offset, log.end_offset) == (11, 11)
    world.close(log)
    again = world.open()
    assert (again.start_offset, again.end_offset) == (11, 11)


def test_a_replica_of_a_cleaned_log_opens_after_a_crash_under_another_policy() -> None:
    """Nothing was cleaned here, and its holes are no damage all the same."""
    world = World(config=SMALL._replace(cleanup_policy=frozenset({"compact"})))
    log = put_with_holes(world.open())
    world.flush(log)
    world.cleaned_to = log.cleaned_to
    world.config = SMALL
    for clean in (False, True, False):
        log.abandon()
        log = world.open(clean=clean)
        assert first_batches(log, 0, log.end_offset) == [0, 20, 30]
