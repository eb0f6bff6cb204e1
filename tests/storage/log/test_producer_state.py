"""Idempotent producers: what is stored once, what is fenced, what is a gap; by the names of Kafka's own tests."""

from __future__ import annotations

import pytest
from tests.storage.at_once import begin_anew_at, cut_to, expire
from tests.storage.log_world import NOW, World, append, batch, put, read_all

from ottla.model import ErrorCode
from ottla.storage.errors import AppendRefused
from ottla.storage.formats.producer_snapshot import decode
from ottla.storage.log.append import AppendResult
from ottla.storage.log.log import Log
from ottla.storage.log.producers.producer_state import SEQUENCE_MAX

DAY = 24 * 3_600_000


def send(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 1) -> AppendResult:
    return put(log, batch(*[b"v"] * count, producer=(producer, epoch, sequence)))


def refusal(log: Log, sequence: int, count: int = 1, *, epoch: int = 0) -> ErrorCode:
    before = log.describe_producers()
    with pytest.raises(AppendRefused) as error:
        send(log, sequence, count, epoch=epoch)
    log.discard_staged()
    assert log.describe_producers() == before
    return error.value.error


def test_basic_id_mapping() -> None:
    log = World().open()
    assert send(log, 0).first_offset == 0
    assert send(log, 1).first_offset == 1
    assert send(log, 0, epoch=1).first_offset == 2
    assert refusal(log, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(log, 5, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("epoch", [-2, -(2**15)])
def test_who_is_unknown_counts_as_one_of_epoch_minus_one(epoch: int) -> None:
    log = World().open()
    for sequence in (0, 5):
        assert refusal(log, sequence, epoch=epoch) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 5, epoch=-1).first_offset == 0


def test_duplicates_are_answered_with_the_first_offsets() -> None:
    log = World().open()
    sent = [send(log, number * 2, 2) for number in range(7)]
    append(log, b"of another")
    for number in range(2, 7):
        again = send(log, number * 2, 2)
        assert again.duplicate
        assert (again.first_offset, again.last_offset) == (sent[number].first_offset, sent[number].last_offset)
    # Only the last five batches are known.
    assert refusal(log, 2, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    # Neither is part of one, or two in one, the same batch.
    assert refusal(log, 12, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, 10, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 15


def test_a_duplicate_within_one_round() -> None:
    log = World().open()
    first = log.stage(batch(b"a", producer=(1, 0, 0)), leader_epoch=0, now_ms=NOW)
    again = log.stage(batch(b"a", producer=(1, 0, 0)), leader_epoch=0, now_ms=NOW)
    log.stage(batch(b"b", producer=(1, 0, 1)), leader_epoch=0, now_ms=NOW)
    log.write_staged()
    assert (again.duplicate, again.first_offset) == (True, first.first_offset)
    assert read_all(log) == [(0, b"a"), (1, b"b")]


def test_an_append_that_is_taken_back_is_forgotten() -> None:
    log = World().open()
    send(log, 0)
    log.stage(batch(b"a", producer=(1, 0, 1)), leader_epoch=0, now_ms=NOW)
    log.stage(batch(b"a", producer=(2, 0, 0)), leader_epoch=0, now_ms=NOW)
    log.discard_staged()
    assert [(each.producer_id, each.last_sequence) for each in log.describe_producers()] == [(1, 0)]
    assert not send(log, 1).duplicate


def test_producer_sequence_wrap_around() -> None:
    log = World().open()
    send(log, SEQUENCE_MAX)
    assert send(log, 0).first_offset == 1
    assert send(log, SEQUENCE_MAX).duplicate
    assert refusal(log, 0, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producer_sequence_with_wrap_around_batch_record() -> None:
    log = World().open()
    send(log, SEQUENCE_MAX - 9, 20)
    assert log.describe_producers()[0].last_sequence == 9
    assert send(log, SEQUENCE_MAX - 9, 20).duplicate
    assert send(log, 10).first_offset == 20


def test_producer_sequence_invalid_wrap_around() -> None:
    log = World().open()
    send(log, SEQUENCE_MAX - 1)
    assert refusal(log, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_no_validation_on_first_entry_when_loading_log() -> None:
    log = World().open()
    assert send(log, 17).first_offset == 0
    assert send(log, 18).first_offset == 1


def test_a_new_epoch_begins_at_zero() -> None:
    log = World().open()
    send(log, 0, 3)
    assert refusal(log, 3, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=1)
    # What the older epoch wrote is no duplicate any more.
    assert refusal(log, 0, 3) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_negative_sequence_is_invalid() -> None:
    assert refusal(World().open(), -1) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("clean", [True, False])
def test_state_survives_a_restart(clean: bool) -> None:
    world = World()
    log = world.open()
    for number in range(40):
        send(log, number * 2, 2)
        send(log, number, producer=2)
    expected = log.describe_producers()
    if clean:
        world.close(log)
    else:
        log.abandon()
    log = world.open(clean=clean)
    assert log.describe_producers() == expected
    assert send(log, 78, 2).duplicate
    assert not send(log, 80, 2).duplicate
    assert not send(log, 40, producer=2).duplicate


def test_a_damaged_snapshot_is_removed_and_the_log_read() -> None:
    world = World()
    log = world.open()
    for number in range(40):
        send(log, number)
    expected = log.describe_producers()
    world.close(log)
    name = world.path("00000000000000000040.snapshot")
    file = world.disk.open(name)
    file.write(b"\xff", 20)
    file.close()
    log = world.open()
    assert log.describe_producers() == expected
    assert not world.disk.exists(name)
    [warning] = world.warnings
    assert "snapshot" in warning


def test_a_snapshot_is_kept_for_each_segment_and_for_the_end() -> None:
    world = World()
    log = world.open()
    for number in range(60):
        send(log, number)
        world.flush(log)
    for _ in range(3):
        world.close(log)
        log = world.open()
        append(log, b"x")
    world.close(log)
    names = [name for name in world.disk.names(world.folder) if name.endswith(".snapshot")]
    bases = [segment.base_offset for segment in log.segments[1:]]
    assert len(bases) >= 2
    assert [int(name[:20]) for name in names] == [*bases, 63]
    [entry] = decode(world.disk.read_file(world.path(names[-1])))
    assert (entry.producer_id, entry.last_sequence, entry.last_offset, entry.offset_delta) == (1, 59, 59, 0)


def test_a_cut_takes_producers_back() -> None:
    log = World().open()
    for number in range(60):
        send(log, number)
    cut_to(log, 20)
    assert [(each.producer_id, each.last_sequence) for each in log.describe_producers()] == [(1, 19)]
    begin_anew_at(log, 500)
    assert log.describe_producers() == []
    assert send(log, 0).first_offset == 500


def test_silent_producers_expire() -> None:
    world = World()
    log = world.open()
    put(log, batch(b"old", producer=(1, 0, 0), timestamp=NOW - 30 * DAY))
    put(log, batch(b"open", producer=(2, 0, 0), transactional=True))
    log.producers.expire(NOW + DAY - 1, DAY)
    # Its record's time is long past, but it was heard of a moment ago.
    assert [each.producer_id for each in log.describe_producers()] == [1, 2]
    # Retention has to do with records only.
    expire(log, NOW + 2 * DAY, 0)
    assert [each.producer_id for each in log.describe_producers()] == [1, 2]
    log.producers.expire(NOW + DAY, DAY)
    assert [each.producer_id for each in log.describe_producers()] == [2]
    assert send(log, 99).first_offset == 2
