"""A coordinator's records in transactions of others, and the markers that end these."""

from __future__ import annotations

import pytest
from tests.replication.journal_world import NOW, TP, JournalWorld

from ottla.coordinators.journal import EndMarker, JournalRecord, TransactionalProducer
from ottla.model import ErrorCode

PRODUCER = TransactionalProducer(producer_id=7, producer_epoch=3)


class World(JournalWorld):
    def pend(self, name: str, producer: TransactionalProducer = PRODUCER, *keys: bytes) -> ErrorCode:
        records = [JournalRecord(key, b"v") for key in keys or (b"k",)]
        return self.journal.write(records, NOW, lambda error: self.told.append((name, error)), None, producer)

    def end(self, name: str, epoch: int = 3, coordinator_epoch: int = 0, version: int = 0) -> ErrorCode:
        marker = EndMarker(7, epoch, coordinator_epoch, is_commit=True, transaction_version=version)
        return self.journal.end_transaction(marker, NOW, lambda error: self.told.append((name, error)))

    def is_open(self) -> bool:
        return self.journal.has_open(PRODUCER)


def test_each_write_of_a_transaction_is_a_batch_in_the_order_of_the_writes() -> None:
    world = World()
    with world.round():
        assert world.write("plain", (b"a", b"1")) == ErrorCode.NONE
        assert world.pend("pending", PRODUCER, b"b", b"c") == ErrorCode.NONE
        assert world.write("behind", (b"d", b"1")) == ErrorCode.NONE
        assert world.end("end") == ErrorCode.NONE
    assert world.told_names() == ["plain", "pending", "behind", "end"]
    keys = [[key for key, _ in batch] for batch in world.batches()]
    assert keys == [[b"a"], [b"b", b"c"], [b"d"], [b"\0\0\0\1"]]
    assert world.leader.log.first_unstable_offset is None
    assert world.leader.log.end_offset == 5


def test_a_transaction_is_open_from_its_first_record_to_its_marker() -> None:
    world = World()
    assert not world.is_open()
    with world.round():
        world.pend("a")
        assert world.is_open()
    assert world.is_open()
    assert not world.journal.has_open(PRODUCER._replace(producer_epoch=4))
    with world.round():
        world.end("end")
        assert not world.is_open(), "what comes later in this round is behind the marker"
    assert not world.is_open()


def test_a_marker_of_this_round_makes_an_answer_of_before_void() -> None:
    world = World()
    asked = world.journal.begin_verifying(PRODUCER)
    assert world.journal.is_verified(PRODUCER, asked)
    with world.round():
        world.end("end")
        assert not world.journal.is_verified(PRODUCER, asked)
    assert not world.journal.is_verified(PRODUCER, asked)


def test_an_answer_of_before_is_void_with_a_marker_of_this_round_though_the_log_has_the_transaction_open() -> None:
    world = World()
    asked = world.journal.begin_verifying(PRODUCER)
    with world.round():
        world.pend("a")
    assert world.journal.is_verified(PRODUCER, asked)
    with world.round():
        world.end("end")
        assert not world.journal.is_verified(PRODUCER, asked)


@pytest.mark.parametrize("is_written", [True, False])
def test_producers_and_coordinators_that_were_replaced(is_written: bool) -> None:
    """Whether what replaced them stands in the log, or is of the same round."""
    world = World()
    with world.round():
        assert world.end("end", epoch=5, coordinator_epoch=2) == ErrorCode.NONE
        if not is_written:
            assert world.pend("late") == ErrorCode.INVALID_PRODUCER_EPOCH
            assert world.end("late", epoch=4, coordinator_epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
            assert world.end("late", epoch=5, coordinator_epoch=1) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with world.round():
        assert world.pend("late") == ErrorCode.INVALID_PRODUCER_EPOCH
        assert world.end("late", epoch=5, coordinator_epoch=1) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert world.end("again", epoch=5, coordinator_epoch=2, version=2) == ErrorCode.NONE
    assert world.told_names() == ["end", "again"]
    assert world.lost == []


@pytest.mark.parametrize("is_written", [True, False])
def test_a_late_second_marker_with_the_next_epoch_does_not_end_the_next_transaction(is_written: bool) -> None:
    """Of protocol version 2: the producer's next transaction has the epoch of the last one's marker."""
    world = World()
    following = PRODUCER._replace(producer_epoch=4)
    with world.round():
        world.pend("a")
        assert world.end("end", epoch=4, version=2) == ErrorCode.NONE
        assert world.end("again", epoch=4, version=2) == ErrorCode.NONE, "nothing has begun since"
        world.pend("b", following)
        if is_written:
            world.empty_round()
        assert world.end("late", epoch=4, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.journal.has_open(following)
    with world.round():
        assert world.end("end of b", epoch=5, version=2) == ErrorCode.NONE
    assert world.leader.log.first_unstable_offset is None


def test_what_the_disk_refuses_was_never_there() -> None:
    world = World()
    with world.round():
        world.pend("kept")
    world.ports.disk.capacity_bytes = 0
    with world.round():
        assert world.end("lost") == ErrorCode.NONE
    world.ports.disk.capacity_bytes = 1 << 40
    assert [name for name, error in world.told if error] == ["lost"]
    assert world.lost == [TP]
    assert world.is_open()
    with world.round():
        assert world.end("again") == ErrorCode.NONE
    assert world.told[-1] == ("again", ErrorCode.NONE)
    assert not world.is_open()
