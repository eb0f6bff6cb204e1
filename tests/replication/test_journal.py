"""What a journal accepts is in the log with the round, in as few batches as may be, and its caller is told once."""

from __future__ import annotations

import asyncio
import errno
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replication.journal_world import CONFIG, DIRECTORIES, NOW, TP, JournalWorld
from tests.searches import examples

from ottla.model import ErrorCode
from ottla.records.batch import parse_header
from ottla.records.builder import BatchBuilder
from ottla.records.record import Record, encode_batch
from ottla.replication.journal_pieces import whole_batches
from ottla.replication.journals import RECORDS_A_ROUND_MAX
from ottla.steps import done_at_once

NONE, NOT_COORDINATOR = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_writes_of_a_round_are_one_batch_and_are_told_in_their_order() -> None:
    world = JournalWorld()
    with world.round():
        assert world.write("a", (b"k1", b"v1"), (b"k2", None)) == NONE
        assert world.write("b", (b"k3", b"v3")) == NONE
        assert world.told == []
    assert world.told_names() == ["a", "b"]
    assert world.batches() == [[(b"k1", b"v1"), (b"k2", None), (b"k3", b"v3")]]


def test_batches_are_stamped_as_written_by_a_producer() -> None:
    world = JournalWorld()
    with world.round():
        world.write("a", (b"k", b"v"))
    header = parse_header(world.run(world.pieces())[0])
    assert (header.magic, header.attributes, header.max_timestamp, header.producer_id) == (2, 0, NOW, -1)
    assert header.leader_epoch == 0


def test_a_write_outside_of_a_round_has_a_round_of_its_own() -> None:
    world = JournalWorld()

    async def write_and_wait() -> None:
        told = asyncio.get_running_loop().create_future()
        assert world.journal.write([(b"k", b"v")], NOW, told.set_result) == NONE
        assert not told.done()
        assert await told == NONE

    world.run(write_and_wait())
    assert world.leader.log.end_offset == 1


def test_a_write_from_within_an_answer_goes_to_the_next_round() -> None:
    world = JournalWorld()

    async def chain_of_writes() -> None:
        done = asyncio.get_running_loop().create_future()

        def again(error: ErrorCode) -> None:
            assert world.journal.write([(b"k2", b"v")], NOW, done.set_result) == error == NONE

        with world.round():
            world.journal.write([(b"k1", b"v")], NOW, again)
        assert await done == NONE

    world.run(chain_of_writes())
    assert world.batches() == [[(b"k1", b"v")], [(b"k2", b"v")]]


def test_a_round_with_more_than_the_topic_takes_at_once_is_split_between_writes() -> None:
    world = JournalWorld(CONFIG._replace(max_message_bytes=400))
    with world.round():
        for number in range(10):
            assert world.write(str(number), (b"a%d" % number, bytes(50)), (b"b%d" % number, bytes(50))) == NONE
    assert world.told_names() == [str(number) for number in range(10)]
    batches = world.batches()
    assert len(batches) > 3
    assert all(len(batch) % 2 == 0 for batch in batches)
    assert [key for key, _ in chain(*batches)] == [b"%s%d" % (c, n) for n in range(10) for c in (b"a", b"b")]
    assert all(len(piece) <= 4000 for piece in world.run(world.pieces()))


def test_a_write_larger_than_the_topic_takes_is_refused_to_the_byte() -> None:
    builder = BatchBuilder()
    exact = builder.append(NOW, b"key", bytes(300))
    world = JournalWorld(CONFIG._replace(max_message_bytes=exact))
    with world.round():
        assert world.write("fits", (b"key", bytes(300))) == NONE
        assert world.write("does not", (b"key", bytes(301))) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.told_names() == ["fits"]


@pytest.mark.parametrize("codec", range(5))
def test_compression_as_the_broker_is_told(codec: int) -> None:
    world = JournalWorld()
    world.settings = world.settings._replace(compression=codec)
    with world.round():
        world.write("a", *((b"k%d" % n, bytes(1000)) for n in range(10)))
    assert parse_header(world.run(world.pieces())[0]).attributes & 7 == codec
    assert world.batches() == [[(b"k%d" % n, bytes(1000)) for n in range(10)]]


def test_what_grows_when_compressed_is_stored_as_it_is() -> None:
    value = bytes(n * 7919 % 251 for n in range(300))
    exact = BatchBuilder().append(NOW, b"k", value)
    world = JournalWorld(CONFIG._replace(max_message_bytes=exact))
    world.settings = world.settings._replace(compression=1)
    noise = bytes(world.ports.entropy.token(len(value)))
    with world.round():
        assert world.write("a", (b"k", noise)) == NONE
    assert world.batches() == [[(b"k", noise)]]


def test_replicas_that_lag_are_waited_for() -> None:
    world = JournalWorld(replicas=(1, 2))
    with world.round():
        world.write("a", (b"k", b"v"))
    with world.round():
        world.write("b", (b"k", b"v"))
        world.settled("after b")
    world.settled("late")
    assert world.told == []
    world.leader.follower_fetched(2, 1)
    world.replicas.waiters.changed(TP)
    world.empty_round()
    assert world.told_names() == ["a"]
    world.leader.follower_fetched(2, 2)
    world.replicas.waiters.changed(TP)
    world.empty_round()
    assert world.told_names() == ["a", "b", "after b", "late"]
    assert len(world.replicas.waiters) == 0


def test_each_write_waits_no_longer_than_its_time() -> None:
    world = JournalWorld(replicas=(1, 2))
    clock, waiters = world.ports.clock, world.replicas.waiters
    started_ms = clock.monotonic_ms()
    with world.round():
        world.write("a", (b"k", b"v"))
    deadline_ms = waiters.next_deadline_ms()
    assert deadline_ms == started_ms + 5000
    world.settings = world.settings._replace(commit_timeout_ms=9000)
    with world.round():
        world.write("b", (b"k", b"v"))
    waiters.expire(deadline_ms)
    assert world.told == [("a", NOT_AVAILABLE)]
    assert waiters.next_deadline_ms() == started_ms + 9000
    waiters.expire(started_ms + 9000)
    assert world.told == [("a", NOT_AVAILABLE), ("b", NOT_AVAILABLE)]
    assert world.lost == []  # the records are in the log, and may be committed yet
    world.settled("settled")
    assert world.told[2:] == []
    assert waiters.next_deadline_ms() == clock.monotonic_ms() + 9000
    waiters.expire(clock.monotonic_ms() + 9000)
    assert world.told[2:] == [("settled", NOT_AVAILABLE)]
    world.settled("once more")
    world.leader.follower_fetched(2, 2)
    waiters.changed(TP)
    world.empty_round()
    assert world.told[3:] == [("once more", NONE)]
    world.settled("from now on")
    assert world.told[4:] == [("from now on", NONE)]


def test_too_few_replicas_refuse_at_once() -> None:
    world = JournalWorld(CONFIG._replace(min_insync_replicas=2))
    world.lead(epoch=1, replicas=(1, 2, 3), isr=(1,))
    assert world.write("a", (b"k", b"v")) == NOT_AVAILABLE
    assert world.told == []


def test_where_the_topic_flushes_a_write_is_told_after_the_flush() -> None:
    world = JournalWorld(CONFIG._replace(flush_messages=1))

    async def write_and_wait() -> None:
        told = asyncio.get_running_loop().create_future()
        with world.round():
            world.journal.write([(b"k", b"v")], NOW, told.set_result)
        assert not told.done()
        assert await told == NONE
        assert world.leader.log.recovery_point == 1

    world.run(write_and_wait())


def test_a_full_disk_loses_the_round_and_says_so() -> None:
    world = JournalWorld()
    with world.round():
        world.write("kept", (b"k", b"v"))
    world.ports.disk.fail("append", f"*/{TP}/*.log", errno.ENOSPC, times=1)
    with world.round():
        world.write("a", (b"k", b"w"))
        world.settled("behind a")
        world.write("b", (b"k", b"x"))
    assert world.told == [("kept", NONE), ("a", NOT_COORDINATOR), ("behind a", NOT_COORDINATOR), ("b", NOT_COORDINATOR)]
    assert world.lost == [TP]
    with world.round():
        world.write("again", (b"k", b"y"))
    assert world.told[-1] == ("again", NONE)
    assert world.batches() == [[(b"k", b"v")], [(b"k", b"y")]]


def test_while_a_write_has_failed_nothing_is_accepted() -> None:
    world = JournalWorld()
    world.ports.disk.fail("append", f"*/{TP}/*.log", errno.ENOSPC, times=1)
    answers = []
    with world.round():
        world.journal.write(
            [(b"k", b"v")], NOW, lambda _: answers.append(world.journal.write([(b"k", b"w")], NOW, answers.append))
        )
    assert answers == [NOT_COORDINATOR]


def test_a_disk_that_fails_ends_the_epoch_and_everyone_hears_of_it() -> None:
    world = JournalWorld()
    world.ports.disk.fail("append", f"*/{TP}/*.log", errno.EIO)
    with world.round():
        world.write("a", (b"k", b"v"))
    assert world.told == [("a", NOT_COORDINATOR)]
    assert world.write("b", (b"k", b"v")) == NOT_COORDINATOR
    world.settled("after")
    assert world.told[-1] == ("after", NOT_COORDINATOR)
    assert world.run(world.pieces()) == []


def test_a_roll_that_fails_loses_what_was_gathered() -> None:
    world = JournalWorld(CONFIG._replace(segment_bytes=300, max_message_bytes=300))
    with world.round():
        world.write("a", (b"k", bytes(150)))
    world.ports.disk.fail("create", f"*/{TP}/*.log", errno.ENOSPC, times=1)
    with world.round():
        world.write("b", (b"k", bytes(150)))
    assert world.told == [("a", NONE), ("b", NOT_COORDINATOR)]
    assert world.lost == [TP]
    with world.round():
        world.write("again", (b"k", bytes(150)))
    assert world.told[-1] == ("again", NONE)
    assert world.leader.log.end_offset == 2


def test_another_leader_ends_the_waits() -> None:
    world = JournalWorld(replicas=(1, 2))
    old = world.journal
    with world.round():
        world.write("a", (b"k", b"v"))
        world.settled("behind a")
    world.lead(epoch=1, replicas=(1, 2), leader=2)
    assert world.told == [("a", NOT_COORDINATOR), ("behind a", NOT_COORDINATOR)]
    assert old.write([(b"k", b"v")], NOW, lambda _: None) == NOT_COORDINATOR
    assert len(world.replicas.waiters) == 0


def test_a_new_epoch_is_a_new_journal_over_the_same_log() -> None:
    world = JournalWorld()
    with world.round():
        world.write("a", (b"k", b"v"))
        world.lead(epoch=7)
    assert world.told == [("a", NOT_COORDINATOR)]
    assert world.journal.epoch == 7
    with world.round():
        world.write("b", (b"k", b"w"))
    assert world.told[-1] == ("b", NONE)
    assert world.batches() == [[(b"k", b"w")]]


def test_a_log_that_moves_to_another_directory_keeps_its_journal() -> None:
    world = JournalWorld()
    with world.round():
        world.write("a", (b"k", b"v"))
    target = next(path for path in DIRECTORIES if path != world.replicas.directories.directory_of(TP))
    journal = world.journal

    before = world.leader

    async def move() -> None:
        done_at_once(world.replicas.moves.starting(TP, target))
        await asyncio.sleep(10)  # virtual seconds

    world.run(move())
    assert world.leader is not before
    assert world.replicas.directories.directory_of(TP) == target
    with world.round():
        world.write("b", (b"k", b"w"))
    assert world.journal is journal
    assert world.told_names() == ["a", "b"]
    assert world.batches() == [[(b"k", b"v")], [(b"k", b"w")]]


def test_what_is_written_while_its_log_takes_its_new_place_waits() -> None:
    world = JournalWorld()
    world.ports.workers.latency_ms = (10, 10)
    with world.round():
        world.write("a", (b"k", b"v"))
    target = next(path for path in DIRECTORIES if path != world.replicas.directories.directory_of(TP))
    waited = list[bool]()

    async def move() -> None:
        done_at_once(world.replicas.moves.starting(TP, target))
        for _ in range(1_000):
            if world.leader.changing_over is not None:
                break
            await asyncio.sleep(0.001)
        with world.round():
            world.write("b", (b"k", b"w"))
        waited.append("b" not in world.told_names())
        await asyncio.sleep(1)

    world.run(move())
    with world.round():
        pass
    assert waited == [True]
    assert world.lost == []
    assert world.told == [("a", NONE), ("b", NONE)]
    assert world.batches() == [[(b"k", b"v")], [(b"k", b"w")]]


def test_one_who_fails_when_told_does_not_keep_the_others_from_it() -> None:
    world = JournalWorld()

    def fail(_: ErrorCode) -> None:
        raise AssertionError("a fault of a coordinator")

    with world.round():
        world.journal.write([(b"k", b"v")], NOW, fail)
        world.write("b", (b"k", b"w"))
    assert world.told_names() == ["b"]


def test_replay_ends_where_the_log_ended_when_it_began() -> None:
    world = JournalWorld()
    for number in range(3):
        with world.round():
            world.write("a", (b"k%d" % number, bytes(200_000)))

    async def read() -> int:
        seen = 0
        async for piece in world.journal.replay():
            seen += len(piece)
            with world.round():
                world.write("b", (b"later", b""))
        return seen

    seen = world.run(read())
    assert seen < world.leader.log.size
    assert len(world.batches()) == 6


def test_replay_passes_over_what_was_removed_meanwhile() -> None:
    world = JournalWorld(CONFIG._replace(segment_bytes=1000, max_message_bytes=1000))
    world.settings = world.settings._replace(load_bytes_max=500)
    for number in range(6):
        with world.round():
            world.write("a", (b"k%d" % number, bytes(600)))

    async def read() -> list[bytes]:
        pieces = []
        async for piece in world.journal.replay():
            pieces.append(piece)
            if len(pieces) == 1:
                world.leader.log.advance_start(4)
        return pieces

    assert [parse_header(piece).base_offset for piece in world.run(read())] == [0, 4, 5]


def test_replay_passes_over_what_was_compacted_before_this_broker_copied_it() -> None:
    world = JournalWorld()
    world.settings = world.settings._replace(load_bytes_max=1)
    for offset in (0, 10, 20):
        encoded = encode_batch([Record(offset, NOW, b"k%d" % offset, b"v")], base_offset=offset, leader_epoch=0)
        world.leader.log.stage_replica(memoryview(bytearray(encoded)))
        world.leader.log.write_staged()

    async def read() -> list[bytes]:
        pieces = []
        async for piece in world.journal.replay():
            pieces.append(piece)
            assert len(pieces) <= 3
        return pieces

    assert [parse_header(piece).base_offset for piece in world.run(read())] == [0, 10, 20]


@examples(30)
@given(
    rounds=st.lists(st.lists(st.lists(st.integers(0, 600), min_size=1, max_size=4), max_size=5), max_size=12),
    load_bytes_max=st.integers(1, 3000),
    compression=st.sampled_from([0, 4]),
)
def test_what_was_written_is_replayed_in_order(
    rounds: list[list[list[int]]], load_bytes_max: int, compression: int
) -> None:
    world = JournalWorld(CONFIG._replace(segment_bytes=4000, max_message_bytes=3000))
    world.settings = world.settings._replace(load_bytes_max=load_bytes_max, compression=compression)
    expected: list[tuple[bytes, bytes | None]] = []
    count = 0
    for writes in rounds:
        with world.round():
            for sizes in writes:
                records = [(b"%d" % (len(expected) + n), bytes(size) if size else None) for n, size in enumerate(sizes)]
                assert world.write(str(count), *records) == NONE
                expected += records
                count += 1
    assert world.told_names() == [str(number) for number in range(count)]
    assert list(chain(*world.batches())) == expected


@given(st.binary(max_size=300))
def test_any_bytes_have_some_number_of_whole_batches(data: bytes) -> None:
    size, _ = whole_batches(data, 0)
    assert 0 <= size <= len(data)


def test_a_round_encodes_no_more_records_than_it_may() -> None:
    world = JournalWorld()
    names = [str(number) for number in range(8)]
    records = [(b"k%d" % number, b"v") for number in range(RECORDS_A_ROUND_MAX // 4)]

    async def two_rounds() -> None:
        with world.round():
            for name in names:
                assert world.write(name, *records) == NONE
            world.settled("all")
        assert world.told_names() == names[:4]
        assert world.leader.log.end_offset == RECORDS_A_ROUND_MAX
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    world.run(two_rounds())
    assert world.told_names() == [*names, "all"]
    assert world.leader.log.end_offset == 2 * RECORDS_A_ROUND_MAX


def test_a_write_that_is_larger_than_a_round_is_not_torn_apart() -> None:
    world = JournalWorld()
    records = [(b"k%d" % number, b"v") for number in range(2 * RECORDS_A_ROUND_MAX)]

    async def two_rounds() -> None:
        with world.round():
            world.write("small", (b"k", b"v"))
            world.write("large", *records)
        assert world.told_names() == ["small"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    world.run(two_rounds())
    assert world.told_names() == ["small", "large"]
    assert [len(batch) for batch in world.batches()] == [1, 2 * RECORDS_A_ROUND_MAX]


def test_what_was_encoded_before_is_a_batch_of_its_own() -> None:
    world = JournalWorld()
    records = [(b"k%d" % number, None if number % 2 else b"v") for number in range(1_000)]
    built = BatchBuilder()
    for key, value in records:
        built.append(NOW, key, value)
    with world.round():
        world.write("before", (b"a", b"1"))
        assert world.journal.write(records, NOW, lambda error: world.told.append(("built", error)), built) == NONE
        world.write("behind", (b"b", b"2"))
    assert world.told_names() == ["before", "built", "behind"]
    assert world.batches() == [[(b"a", b"1")], records, [(b"b", b"2")]]


def test_what_was_encoded_before_is_refused_to_the_byte() -> None:
    world = JournalWorld()
    limit = world.leader.log.config.max_message_bytes
    for size, outcome in ((limit - 80, NONE), (limit, ErrorCode.UNKNOWN_SERVER_ERROR)):
        built = BatchBuilder()
        built.append(NOW, b"k", bytes(size))
        with world.round():
            assert world.journal.write([(b"k", bytes(size))], NOW, lambda _: None, built) == outcome


def test_a_round_that_is_lost_takes_with_it_what_was_left_for_the_next() -> None:
    """It was decided on top of what is lost, and its coordinator loads anew."""
    world = JournalWorld()
    records = [(b"k%d" % number, b"v") for number in range(RECORDS_A_ROUND_MAX)]
    world.ports.disk.fail("append", f"*/{TP}/*.log", errno.ENOSPC, times=1)

    async def two_rounds() -> None:
        with world.round():
            world.write("first", *records)
            world.write("next", *records)
        assert world.told == [("first", NOT_COORDINATOR), ("next", NOT_COORDINATOR)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    world.run(two_rounds())
    assert world.lost == [TP]
    assert world.leader.log.end_offset == 0
