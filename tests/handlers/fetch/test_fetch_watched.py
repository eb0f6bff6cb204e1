"""The partitions of a fetch: which are looked at, in which order, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.handlers.fetch.asked import AskedPartition, each_asked, each_forgotten, merged, without_empty
from ottla.handlers.fetch.reading import PartitionRead
from ottla.handlers.fetch.room import COPIED_BYTES_MAX, FILE_PIECES_MAX, SENDFILE_BYTES_MIN, Room
from ottla.handlers.fetch.watched import WatchedPartitions
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.hot.fetch import FetchRequest
from ottla.replication.waiters import Waiters
from ottla.steps import PIECE, at_once
from ottla.storage.log.reader import Slice

UNKNOWN_ID = b"i" * 16


class Log:
    start_offset = 0


class Leader:
    """What a reader says of a partition, with `end` offsets of which each is ten bytes long."""

    def __init__(self, end: int = 0) -> None:
        self.end = end
        self.log = Log()


class Shelf:
    """A reader of partitions that are numbers here; notes what it was asked to read."""

    def __init__(self, *ends: int) -> None:
        self.leaders = {(topic, n): Leader(end) for n, end in enumerate(ends) for topic in ("t", UNKNOWN_ID)}
        self.names: dict[bytes, str] = {}
        self.errors: dict[int, ErrorCode] = {}
        self.read_partitions: list[int] = []

    is_follower = False
    beat = None

    def topic_name(self, topic_id: bytes) -> str | None:
        return self.names.get(topic_id)

    def limit(self, leader: Leader) -> int:
        return leader.end

    def begins_try(self) -> None:
        """Nothing of it is cold."""

    def read(
        self, asked: AskedPartition, max_bytes: int, *, whole_first_batch: bool, is_new: bool = False
    ) -> PartitionRead:
        self.read_partitions.append(asked.partition)
        error = self.errors.get(asked.partition, ErrorCode.NONE)
        if isinstance(asked.topic, bytes) and asked.topic not in self.names:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        read = PartitionRead(asked, error)
        if error == ErrorCode.NONE:
            leader: Any = self.leaders[asked.topic, asked.partition]
            read.leader = leader
            read.high_watermark, read.log_start_offset = leader.end, leader.log.start_offset
            size = min(10 * max(0, leader.end - asked.fetch_offset), max_bytes)
            read.slice = Slice(None, 0, size) if size else None
        return read


class Watching:
    def __init__(self, *ends: int, topic: str | bytes = "t") -> None:
        self.waiters = Waiters()
        self.topic = topic
        self.shelf = Shelf(*ends)
        self.partitions = WatchedPartitions(self.waiters)
        for n in range(len(ends)):
            self.ask(n)

    def ask(self, partition: int, offset: int = 0) -> None:
        self.partitions.take(AskedPartition(self.topic, partition, -1, offset, -1, -1, 1000))

    def grow(self, partition: int, end: int) -> None:
        self.shelf.leaders["t", partition].end = end
        self.waiters.changed(TopicPartition("t", partition))

    def look(self, max_bytes: int = 10_000, *, full: bool = False) -> list[PartitionRead]:
        self.shelf.read_partitions.clear()
        shelf: Any = self.shelf
        return at_once(self.partitions.look(shelf, max_bytes, Room(), full=full))

    def fetch(self, max_bytes: int = 10_000) -> list[int]:
        """One incremental fetch: the partitions that its answer has."""
        reads = self.look(max_bytes)
        for read in reads:
            shelf: Any = self.shelf
            self.partitions.answer(read, shelf, moves=True)
        return [read.asked.partition for read in reads]


def test_only_what_has_changed_is_looked_at() -> None:
    watching = Watching(*[0] * 2000)
    assert len(watching.fetch()) == 2000
    assert watching.fetch() == []
    assert watching.shelf.read_partitions == []
    watching.grow(77, 3)
    assert watching.fetch() == [77]
    assert watching.shelf.read_partitions == [77]


def test_a_partition_whose_records_are_not_taken_is_answered_again() -> None:
    watching = Watching(0, 0)
    watching.fetch()
    watching.grow(1, 3)
    assert watching.fetch() == [1]
    assert watching.fetch() == [1]
    watching.ask(1, offset=3)
    assert watching.fetch() == []
    assert watching.fetch() == []
    assert watching.shelf.read_partitions == []


def test_a_change_between_a_look_and_its_answer_is_not_missed() -> None:
    watching = Watching(0)
    watching.fetch()
    watching.shelf.leaders["t", 0].log.start_offset = 0
    watching.grow(0, 1)
    watching.ask(0, offset=1)
    reads = watching.look()
    watching.grow(0, 2)
    for read in reads:
        shelf: Any = watching.shelf
        watching.partitions.answer(read, shelf, moves=True)
    assert watching.fetch() == [0]


def test_a_change_that_the_look_itself_makes_is_not_missed() -> None:
    """A follower's request moves the watermark, and the partition is marked while it is read."""
    watching = Watching(0)
    shelf: Any = watching.shelf
    read = shelf.read

    def moving(*args: Any, **options: Any) -> PartitionRead:
        watching.waiters.changed(TopicPartition("t", 0))
        return read(*args, **options)

    watching.fetch()
    watching.grow(0, 0)
    shelf.read = moving
    watching.look()
    shelf.read = read
    watching.fetch()
    watching.grow(0, 3)
    assert watching.fetch() == [0]


def test_a_new_high_watermark_or_log_start_is_said_once() -> None:
    watching = Watching(5)
    watching.ask(0, offset=5)
    assert watching.fetch() == [0]
    watching.shelf.leaders["t", 0].log.start_offset = 2
    watching.waiters.changed(TopicPartition("t", 0))
    assert watching.fetch() == [0]
    assert watching.fetch() == []


def test_partitions_with_records_go_to_the_end() -> None:
    """As in Kafka: those that got nothing come first in the next answer."""
    watching = Watching(5, 5, 5)
    assert watching.fetch(max_bytes=50) == [0, 1, 2], "the first answer says everything"
    assert watching.fetch(max_bytes=50) == [1]
    assert watching.fetch(max_bytes=50) == [2]
    assert watching.fetch(max_bytes=50) == [0]


def test_a_changed_request_keeps_its_place() -> None:
    watching = Watching(5, 5, 5)
    watching.ask(0, offset=1)
    assert watching.look()[0].asked.fetch_offset == 1


def test_more_than_are_sorted_keep_their_order() -> None:
    watching = Watching(*[1] * 3000)
    assert watching.fetch(max_bytes=30_000) == list(range(3000))
    watching.ask(5, offset=0)
    assert watching.fetch(max_bytes=30_000) == list(range(3000))


def test_what_is_unknown_is_said_once() -> None:
    watching = Watching(0, 0)
    watching.shelf.errors[1] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert watching.fetch() == [0, 1]
    assert watching.fetch() == []
    watching.waiters.changed(TopicPartition("t", 1))
    assert watching.fetch() == [], "it still is"
    watching.ask(1)
    assert watching.fetch() == [1], "its client asks anew"
    del watching.shelf.errors[1]
    watching.waiters.changed(TopicPartition("t", 1))
    assert watching.fetch() == [1]


def test_every_other_error_is_said_each_time() -> None:
    watching = Watching(0, 0)
    watching.shelf.errors[1] = ErrorCode.OFFSET_OUT_OF_RANGE
    watching.fetch()
    assert watching.fetch() == [1]
    assert watching.fetch() == [1]
    del watching.shelf.errors[1]
    assert watching.fetch() == [1], "that it is over is news"
    assert watching.fetch() == []


def test_a_topic_that_comes_to_be_is_found_by_its_id() -> None:
    watching = Watching(0, topic=UNKNOWN_ID)
    assert watching.fetch() == [0]
    assert watching.fetch() == []
    watching.shelf.names[UNKNOWN_ID] = "t"
    watching.waiters.topic_is_known(UNKNOWN_ID)
    assert watching.fetch() == [0]
    assert watching.fetch() == []
    watching.shelf.leaders[UNKNOWN_ID, 0].end = 1
    watching.waiters.changed(TopicPartition("t", 0))
    assert watching.fetch() == [0], "it is watched under its name now"


def test_a_full_look_rests_where_nothing_is_to_be_read() -> None:
    """A fetch that waits looks again at what has changed only, though its answer will say everything."""
    watching = Watching(*[0] * 500)
    assert len(watching.look(full=True)) == 500
    watching.grow(3, 1)
    assert [read.asked.partition for read in watching.look(full=True)] == [3]


def test_a_mark_wakes_the_fetch_that_waits() -> None:
    woken = []
    watching = Watching(0, 0)
    watching.look()
    watching.partitions.on_mark = lambda: woken.append(1)
    watching.grow(0, 1)
    watching.grow(0, 2)
    assert woken == [1], "once until it has looked"
    watching.look()
    watching.grow(0, 3)
    assert woken == [1, 1]


def test_what_is_forgotten_is_watched_no_more() -> None:
    watching = Watching(0, 0, 0)
    watching.look()
    watching.partitions.forget(("t", 1))
    assert len(watching.partitions) == 2
    watching.grow(1, 5)
    assert watching.fetch() == [0, 2]
    at_once(watching.partitions.close_steps())
    assert len(watching.partitions) == 0
    assert not watching.waiters.watched_count


def test_one_partition_of_many_sets() -> None:
    waiters = Waiters()
    many = [Watching(0) for _ in range(5)]
    for each in many:
        each.waiters = waiters
        each.partitions = WatchedPartitions(waiters)
        each.ask(0)
        each.fetch()
    many[2].partitions.forget(("t", 0))
    for each in many:
        each.shelf.leaders["t", 0].end = 1
    waiters.changed(TopicPartition("t", 0))
    assert [each.fetch() for each in many] == [[0], [0], [], [0], [0]]


@pytest.mark.parametrize("in_session", [False, True])
def test_repeated_partitions_are_merged_as_by_kafka(in_session: bool) -> None:
    """The last entry counts, and stands where the first one stood."""
    request = FetchRequest()
    request.topics = [
        ("a", [(0, -1, 10, -1, -1, 5), (1, -1, 11, -1, -1, 5)]),
        ("b", [(0, -1, 12, -1, -1, 5)]),
        ("a", [(0, -1, 13, -1, -1, 6), (2, -1, 14, -1, -1, 5)]),
    ]
    if in_session:
        partitions = WatchedPartitions(Waiters())
        at_once(partitions.take_steps(each_asked(request)))
        found = partitions.asked
    else:
        found = merged(request)
    assert [(one.topic, one.partition, one.fetch_offset, one.max_bytes) for one in found] == [
        ("a", 0, 13, 6),
        ("a", 1, 11, 5),
        ("b", 0, 12, 5),
        ("a", 2, 14, 5),
    ]


def test_topics_that_name_no_partition_are_passed_over_in_steps() -> None:
    request = FetchRequest()
    request.topics = [("none", []) for _ in range(5_000)]
    request.topics.insert(100, ("a", [(0, -1, 10, -1, -1, 5)]))
    request.forgotten = [("none", []) for _ in range(5_000)]
    request.forgotten.append(("b", [1, 2]))
    assert sum(1 for _ in without_empty(request)) >= 10_000 // PIECE
    assert [one.topic for one in each_asked(request)] == ["a"]
    assert list(each_forgotten(request)) == [("b", 1), ("b", 2)]
    assert not request.topics
    assert not request.forgotten


def found(size: int) -> Slice:
    return Slice(None, 0, size)


def test_an_answer_copies_up_to_its_bound_and_sends_the_rest() -> None:
    room = Room()
    small = SENDFILE_BYTES_MIN - 1
    copied = 0
    while room.copies(found(small)):
        copied += small
    assert COPIED_BYTES_MAX - SENDFILE_BYTES_MIN < copied <= COPIED_BYTES_MAX
    assert not room.copies(found(SENDFILE_BYTES_MIN))
    assert [room.sends() for _ in range(FILE_PIECES_MAX + 2)] == [True] * FILE_PIECES_MAX + [False] * 2


def test_without_room_nothing_is_copied() -> None:
    room = Room(0)
    assert not room.copies(found(1))
    assert room.sends()
