"""A follower's log: it takes what the leader sends, knows what is committed, and cuts what the leader never had."""

from __future__ import annotations

from random import Random

import pytest
from tests.replication.roles_world import DIRECTORIES, OTHER, TP, US, RolesWorld
from tests.storage.at_once import cut_to_leader, write_checkpoints
from tests.storage.log_world import batch, read_all

from ottla.config.log import LogConfig
from ottla.model import ErrorCode
from ottla.replication.follower import Follower
from ottla.storage.errors import AppendRefused
from ottla.storage.formats import offset_checkpoint
from ottla.storage.log.log import Log

#: The leader epoch that it follows in: later than those of the records.
EPOCH = 9
#: Epoch and first value of the records of a leader epoch, in order.
Epochs = list[tuple[int, int]]


def following(high_watermark: int = 0) -> RolesWorld:
    world = RolesWorld()
    world.role(epoch=EPOCH, leader=OTHER, replicas=(US, OTHER))
    world.follower.high_watermark = high_watermark
    return world


def sent(offset: int, *values: bytes, epoch: int) -> memoryview:
    """A batch as a leader of this leader epoch has it in its log."""
    return batch(*values, base_offset=offset, leader_epoch=epoch)


def filled(epochs: Epochs) -> RolesWorld:
    """A follower with `count` batches of one record each for (epoch, count)."""
    world = following()
    offset = 0
    for epoch, count in epochs:
        for _ in range(count):
            world.follower.append(sent(offset, b"%d" % epoch, epoch=epoch), 0)
            offset += 1
    return world


def written(log: Log) -> str:
    """The leader epoch of each record."""
    return "".join(value.decode() for _, value in read_all(log))


# Appending


def test_batches_keep_the_leaders_offsets_and_epochs() -> None:
    world = following()
    follower = world.follower
    data = memoryview(bytearray(bytes(sent(0, b"a", b"b", epoch=3)) + bytes(sent(2, b"c", epoch=4))))
    before = bytes(data)
    follower.append(data, leader_high_watermark=2)
    assert follower.log.read(0, 10_000, 3).read() == before
    assert (follower.log.end_offset, follower.high_watermark) == (3, 2)
    assert follower.log.epochs.entries() == [(3, 0), (4, 2)]


def test_a_last_batch_that_the_answer_cut_is_left_for_the_next() -> None:
    follower = following().follower
    data = bytes(sent(0, b"a", epoch=1)) + bytes(sent(1, b"b", epoch=1))
    follower.append(memoryview(bytearray(data[:-3])), leader_high_watermark=2)
    assert (follower.log.end_offset, follower.high_watermark) == (1, 1)
    follower.append(sent(1, b"b", epoch=1), leader_high_watermark=2)
    assert (follower.log.end_offset, follower.high_watermark) == (2, 2)


def test_what_does_not_go_on_from_the_end_is_refused_and_changes_nothing() -> None:
    follower = following().follower
    follower.append(sent(0, b"a", b"b", epoch=1), leader_high_watermark=1)
    with pytest.raises(AppendRefused, match="lies below 2"):
        follower.append(sent(1, b"x", epoch=1), leader_high_watermark=2)
    flipped = sent(2, b"x", epoch=1)
    flipped[65] ^= 1
    with pytest.raises(AppendRefused, match="checksum"):
        follower.append(flipped, leader_high_watermark=2)
    half = memoryview(bytearray(bytes(sent(2, b"c", epoch=1)) + bytes(sent(1, b"x", epoch=1))))
    with pytest.raises(AppendRefused, match="lies below 3"):
        follower.append(half, leader_high_watermark=2)
    follower.append(sent(2, b"c", epoch=1), leader_high_watermark=1)
    assert (follower.log.end_offset, follower.high_watermark) == (3, 1)
    cut_to_leader(follower, 1, 2)
    assert (follower.log.end_offset, follower.high_watermark) == (2, 1)


# What is committed


def test_the_watermark_follows_the_leaders_as_far_as_the_log_goes_and_never_back() -> None:
    follower = filled([(1, 4)]).follower
    for told, known in ((2, 2), (1, 2), (9, 4), (0, 4)):
        follower.leader_committed(told)
        assert follower.high_watermark == known
    follower.append(memoryview(b""), leader_high_watermark=9)
    assert follower.high_watermark == 4
    follower.append(sent(4, b"e", epoch=1), leader_high_watermark=9)
    assert follower.high_watermark == 5


def test_a_follower_begins_with_the_watermark_that_was_known_within_its_log() -> None:
    log = filled([(1, 4)]).follower.log
    log.advance_start(2)
    for known, at in ((0, 2), (3, 3), (9, 4)):
        assert Follower(TP, log, 1, OTHER, known, lambda *_: None).high_watermark == at


# Cutting


@pytest.mark.parametrize(
    ("own", "answer", "left"),
    [
        # The leader knows our last leader epoch, and less of it.
        ([(1, 3), (2, 3)], (2, 5), "11122"),
        # As much of it, and more: nothing is cut.
        ([(1, 3), (2, 3)], (2, 6), "111222"),
        ([(1, 3), (2, 3)], (2, 60), "111222"),
        # It knows an earlier one only, of which we have more, or less.
        ([(1, 3), (3, 3)], (1, 2), "11"),
        ([(1, 3), (3, 3)], (1, 3), "111"),
        ([(1, 3), (3, 3)], (1, 8), "111"),
        # It answers with a leader epoch between two of ours: what we have of the later one is not its.
        ([(1, 3), (5, 3)], (3, 8), "111"),
        ([(1, 3), (5, 3)], (3, 2), "11"),
        # One below all of ours.
        ([(4, 3), (5, 3)], (2, 8), ""),
        # One above all of ours, which nobody asked for: the leader's end counts.
        ([(1, 3)], (7, 2), "11"),
        ([(1, 3)], (7, 9), "111"),
    ],
)
def test_what_the_leader_does_not_have_is_cut(own: Epochs, answer: tuple[int, int], left: str) -> None:
    follower = filled(own).follower
    assert cut_to_leader(follower, *answer) == len(left)
    assert written(follower.log) == left


def test_committed_records_above_the_own_watermark_are_kept() -> None:
    """KIP-101: the follower's watermark lags behind by a fetch, and cutting there would lose what is committed."""
    follower = filled([(1, 5)]).follower
    follower.leader_committed(3)
    assert cut_to_leader(follower, 1, 5) == 5
    assert follower.high_watermark == 3


def test_a_cut_takes_the_watermark_and_the_epochs_along() -> None:
    follower = filled([(1, 3), (2, 3)]).follower
    follower.leader_committed(6)
    cut_to_leader(follower, 1, 2)
    assert follower.high_watermark == 2
    assert follower.log.epochs.entries() == [(1, 0)]
    follower.append(sent(2, b"7", epoch=7), leader_high_watermark=3)
    assert (written(follower.log), follower.high_watermark) == ("117", 3)
    assert follower.log.epochs.entries() == [(1, 0), (7, 2)]


def test_a_cut_inside_a_batch_takes_the_whole_batch() -> None:
    follower = following().follower
    follower.append(sent(0, b"1", epoch=1), 1)
    follower.append(sent(1, b"1", b"1", b"1", epoch=1), 4)
    assert cut_to_leader(follower, 1, 3) == 1
    assert follower.high_watermark == 1


@pytest.mark.parametrize("inside", [False, True])
def test_no_checkpoint_speaks_of_more_than_a_cut_leaves(inside: bool) -> None:
    """Or a start after a power cut would miss what was cut, and take the partition offline."""
    world = following()
    follower = world.follower
    for offset in range(0, 20, 2):
        follower.append(sent(offset, b"1", b"1", epoch=1), 20)
    flush = follower.log.prepare_flush()
    assert flush is not None
    flush.run()
    follower.log.flushed(flush)
    directories = world.replicas.directories
    write_checkpoints(directories, world.replicas.high_watermarks())
    assert offset_checkpoint.read(world.ports.disk, f"{DIRECTORIES[0]}/recovery-point-offset-checkpoint") == {TP: 20}
    end = cut_to_leader(follower, 1, 11 if inside else 10)
    assert end == 10
    assert offset_checkpoint.read(world.ports.disk, f"{DIRECTORIES[0]}/recovery-point-offset-checkpoint") == {TP: 10}
    world.ports.disk.crash(Random(3))
    world.start()
    assert world.replicas.directories.offline == {}
    log = world.replicas.directories.get(TP)
    assert log is not None
    assert log.end_offset >= 10


def test_two_logs_become_one_however_they_parted() -> None:
    """Any two histories of leader epochs: asking, cutting and fetching make the follower's log the leader's."""
    for seed in range(60):
        rng = Random(seed)
        common = [(1, rng.randrange(4)), (2, rng.randrange(4))]
        leader = filled([*common, *((epoch, rng.randrange(4)) for epoch in (4, 6, 8))]).follower.log
        follower = filled([*common, *((epoch, rng.randrange(4)) for epoch in (3, 5, 7))]).follower
        # Its own leader epoch, which it knows without a record: no follower can ask for a later one.
        leader.begin_leader_epoch(9)
        for _ in range(10):
            latest = follower.log.epochs.latest
            answer = leader.epochs.end_offset_for(latest, leader.end_offset) if latest >= 0 else None
            end = follower.log.end_offset
            if answer is None or cut_to_leader(follower, *answer) == end:
                break
        end = follower.log.end_offset
        assert written(leader)[:end] == written(follower.log), f"seed {seed}"
        if end < leader.end_offset:
            data = leader.read(end, 1 << 20, leader.end_offset).read()
            follower.append(memoryview(bytearray(data)), leader.end_offset)
        assert written(follower.log) == written(leader), f"seed {seed}"
        assert follower.log.epochs.entries() == leader.epochs.entries()[:-1], f"seed {seed}"


# What it may ask for, and where it begins


def test_batches_of_a_later_leader_epoch_than_its_own_are_refused() -> None:
    """KAFKA-18723: the answer of a leader that was elected meanwhile, to a follower that has not cut its log for it."""
    follower = following().follower
    both = bytes(sent(0, b"1", epoch=1)) + bytes(sent(1, b"2", epoch=EPOCH + 1))
    with pytest.raises(AppendRefused, match="leader epoch 10"):
        follower.append(memoryview(bytearray(both)), leader_high_watermark=2)
    assert (follower.log.end_offset, follower.log.next_offset, follower.high_watermark) == (0, 0, 0)
    follower.append(sent(0, b"1", epoch=EPOCH), leader_high_watermark=1)
    assert follower.log.end_offset == 1


def test_a_follower_vouches_for_what_is_on_the_disk_where_its_topic_is_flushed_before_the_answer() -> None:
    world = RolesWorld(LogConfig(flush_messages=1))
    world.role(epoch=1, leader=OTHER, replicas=(US, OTHER))
    follower = world.follower
    asked: list[int] = []
    follower.on_may_ask = lambda: asked.append(follower.log.end_offset)

    async def fetched() -> None:
        follower.append(sent(0, b"a", epoch=1), 0)
        assert not follower.may_ask
        follower.append(sent(1, b"b", epoch=1), 0)
        await world.replicas.flushes_end()

    world.ports.loop.run_until_complete(fetched())
    assert follower.may_ask
    assert asked[-1] == 2
    assert world.replicas.followers[TP].log.recovery_point == 2


def test_where_the_disk_comes_later_a_follower_asks_at_once() -> None:
    follower = following().follower
    follower.append(sent(0, b"a", epoch=1), 0)
    assert follower.may_ask


def test_what_a_crash_has_left_is_flushed_before_a_follower_asks() -> None:
    world = RolesWorld(LogConfig(flush_messages=1))
    world.role(epoch=1, leader=OTHER, replicas=(US, OTHER))

    async def lived() -> None:
        world.follower.log.stage_replica(sent(0, b"a", epoch=1))
        world.follower.log.write_staged()
        world.role(epoch=2, leader=OTHER, replicas=(US, OTHER))
        assert not world.follower.may_ask
        await world.replicas.flushes_end()

    world.ports.loop.run_until_complete(lived())
    assert world.follower.may_ask


def test_nobody_asks_for_a_follower_whose_role_has_moved_on() -> None:
    world = RolesWorld(LogConfig(flush_messages=1))
    world.role(epoch=1, leader=OTHER, replicas=(US, OTHER))
    former = world.follower
    asked: list[int] = []
    former.on_may_ask = lambda: asked.append(1)

    async def fetched() -> None:
        former.append(sent(0, b"a", epoch=1), 0)
        world.role(epoch=2, leader=OTHER, replicas=(US, OTHER))
        await world.replicas.flushes_end()

    world.ports.loop.run_until_complete(fetched())
    assert (asked, former.active, world.follower.may_ask) == ([], False, True)


def test_the_leaders_start_is_followed_as_far_as_the_log_goes() -> None:
    follower = filled([(1, 6)]).follower
    for start, at in ((-1, 0), (0, 0), (3, 3), (2, 3), (9, 3)):
        follower.append(memoryview(b""), 5, start)
        assert follower.log.start_offset == at
    assert follower.high_watermark == 5


def test_a_follower_that_starts_over_begins_where_it_is_told() -> None:
    world = filled([(1, 4)])
    follower = world.follower
    follower.leader_committed(4)
    follower.start_over(20)
    assert (follower.log.start_offset, follower.log.end_offset, follower.high_watermark) == (20, 20, 20)
    follower.append(sent(20, b"1", epoch=1), 21, 20)
    assert (written(follower.log), follower.high_watermark) == ("1", 21)
    follower.start_over(3)
    assert (follower.log.start_offset, follower.log.end_offset, follower.high_watermark) == (3, 3, 3)


@pytest.mark.parametrize("again_at", [2, 40])
def test_a_power_cut_behind_a_new_beginning_leaves_a_log_that_opens(again_at: int) -> None:
    world = filled([(1, 10)])
    follower = world.follower
    follower.leader_committed(10)
    flush = follower.log.prepare_flush()
    assert flush is not None
    flush.run()
    follower.log.flushed(flush)
    write_checkpoints(world.replicas.directories, world.replicas.high_watermarks())
    follower.start_over(again_at)
    follower.append(sent(again_at, b"1", epoch=1), again_at, again_at)
    world.ports.disk.crash(Random(7))
    world.start()
    assert world.replicas.directories.offline == {}
    assert world.role(epoch=2, leader=OTHER, replicas=(US, OTHER), is_new=False) == ErrorCode.NONE


def test_a_leader_that_knows_no_such_epoch_has_said_nothing_to_cut_by() -> None:
    follower = filled([(1, 4)]).follower
    assert cut_to_leader(follower, -1, -1) == 4
