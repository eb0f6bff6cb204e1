"""A shard of the transaction coordinator: what each request makes of an id, and what follows."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.transactions.world import ID, TIMEOUT_MS, A, B, C, World, ongoing, producer_of

from ottla.model import ErrorCode, TopicPartition
from ottla.steps import at_once
from ottla.transactions import shard as shard_module
from ottla.transactions.adding import PARTITIONS_MAX
from ottla.transactions.asked import EndAsked, ProducerAnswer
from ottla.transactions.records import transaction_value, transaction_value_steps
from ottla.transactions.states import TransactionStatus
from ottla.transactions.transaction import PRODUCER_EPOCH_MAX, Transaction

S = TransactionStatus
NONE, FENCED, MAPPING = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT, INVALID_STATE = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
HOUR_MS = 3_600_000


# The classic protocol: one epoch for all of a producer's transactions.


def test_a_transaction_from_its_begin_to_its_end() -> None:
    world = World()
    producer = producer_of(world.init())
    assert producer == (1_000, 0)
    assert world.add(producer, A) is NONE
    assert world.add(producer, A, B) is NONE
    assert world.transaction().partitions == {A, B}
    assert world.end(producer) == (NONE, -1, -1)
    assert world.status is S.PREPARE_COMMIT
    (end,) = world.sent.ends
    assert (end.producer_id, end.producer_epoch, end.committed, end.partitions) == (1_000, 0, True, {A, B})
    assert end.coordinator_epoch == world.journal.epoch
    world.sent.written()
    assert world.status is S.COMPLETE_COMMIT
    assert world.transaction().partitions == frozenset()
    assert world.add(producer, C) is NONE
    assert world.end(producer, commit=False).error is NONE
    world.sent.written()
    assert (world.status, world.sent.ends[1].committed) == (S.COMPLETE_ABORT, False)


def test_the_decision_is_answered_and_sent_when_it_is_committed() -> None:
    world = World()
    producer = ongoing(world)
    world.journal.held = True
    answer = world.asks_end(producer)
    assert not answer.came
    assert (world.sent.ends, world.status) == ([], S.ONGOING)
    world.journal.commit()
    assert answer.value.error is NONE
    assert len(world.sent.ends) == 1


def test_what_is_not_committed_counts_nowhere() -> None:
    world = World()
    producer = producer_of(world.init())
    world.journal.held = True
    answer = world.asks_add(producer, A)
    assert world.verify(producer, A) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert world.add(producer, A) is CONCURRENT
    for version in (0, 2):
        assert world.end(producer, version=version).error is CONCURRENT
        assert world.end(producer, version=version, commit=False).error is CONCURRENT
    assert world.init().error is CONCURRENT
    world.journal.commit()
    assert answer.value is NONE
    assert world.verify(producer, A, B) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]


def test_nothing_begins_before_the_last_one_has_ended() -> None:
    world = World()
    producer = ongoing(world)
    world.end(producer)
    assert world.add(producer, B) is CONCURRENT
    assert world.init().error is CONCURRENT
    assert world.verify(producer, A) == [CONCURRENT]
    assert world.end(producer).error is CONCURRENT
    assert world.end(producer, commit=False).error is CONCURRENT
    world.sent.written()
    assert world.end(producer).error is NONE
    assert world.end(producer, commit=False).error is INVALID_STATE


@pytest.mark.parametrize("moves", [False, True], ids=["stays", "moves"])
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_while_markers_are_under_way(commit: bool, moves: bool) -> None:
    """As Kafka, which has the completion as pending state until all are written, and after a load too."""
    for version in (0, 2):
        world = World()
        (producer_id, epoch) = producer = ongoing(world, version=version)
        assert world.end(producer, commit=commit, version=version).error is NONE
        if moves:
            world.move_over()
        others = [(producer_id, epoch + 5), (producer_id + 1, epoch)]
        for again in (True, False):
            assert world.end((producer_id, world.transaction().producer_epoch), commit=again).error is CONCURRENT
            asked = [world.end(each, commit=again, version=2).error for each in (producer, *others)]
            assert asked == [CONCURRENT] * 3
            # Whose epoch it is comes first in the classic form: one that was fenced does not wait for a marker.
            assert [world.end(each, commit=again).error for each in others] == [FENCED, MAPPING]


def test_an_end_without_a_begin() -> None:
    world = World()
    assert world.end((7, 0)).error is MAPPING
    producer = producer_of(world.init())
    assert world.end(producer).error is INVALID_STATE
    assert world.end(producer, commit=False).error is INVALID_STATE


def test_wrong_producers() -> None:
    world = World()
    producer_id, epoch = ongoing(world)
    for wrong, error in (((producer_id + 1, epoch), MAPPING), ((producer_id, epoch + 1), FENCED)):
        assert world.add(wrong, B) is error
        assert world.end(wrong).error is error
        assert world.verify(wrong, A) == [error]
    assert world.add((producer_id, epoch), B, name="other") is MAPPING
    assert world.verify((producer_id, epoch), A, name="other") == [MAPPING]


def test_more_partitions_than_a_transaction_may_have() -> None:
    world = World()
    producer = producer_of(world.init())
    many = [A._replace(partition=number) for number in range(PARTITIONS_MAX + 1)]
    assert world.add(producer, *many) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.add(producer, *many[:-1]) is NONE
    assert world.add(producer, many[-1]) is ErrorCode.UNKNOWN_SERVER_ERROR


def wide(count: int) -> list[TopicPartition]:
    return [TopicPartition(f"t-{number % 7}", number // 7) for number in range(count)]


def test_a_record_of_many_partitions_is_made_in_steps_and_nothing_else_is_decided_meanwhile() -> None:
    world = World()
    producer = producer_of(world.init())
    assert world.add(producer, *wide(5_000)) is NONE
    world.holds_long = True
    adds = world.asks_add(producer, A)
    (steps,) = world.long
    for _ in range(5_000 // 64):
        next(steps)
        assert not adds.came
    assert world.add(producer, B) is CONCURRENT
    assert world.end(producer).error is CONCURRENT
    assert world.init().error is CONCURRENT
    at_once(steps)
    assert adds.value is NONE
    world.long.clear()
    ends = world.asks_end(producer)
    (steps,) = world.long
    next(steps)
    assert not ends.came
    at_once(steps)
    assert ends.value.error is NONE
    assert world.sent.ends[-1].partitions == {*wide(5_000), A}
    world.move_over()
    assert world.transaction().partitions == {*wide(5_000), A}


def test_a_long_write_that_is_refused_leaves_the_id_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    producer = producer_of(world.init())
    assert world.add(producer, *wide(300)) is NONE
    monkeypatch.setattr(shard_module, "PARTITIONS_OPEN_MAX", 300)
    world.holds_long = True
    adds = world.asks_add(producer, A)
    at_once(world.long.pop())
    assert adds.value is ErrorCode.CONCURRENT_TRANSACTIONS
    monkeypatch.setattr(shard_module, "PARTITIONS_OPEN_MAX", 301)
    adds = world.asks_add(producer, A)
    at_once(world.long.pop())
    assert adds.value is NONE
    adds = world.asks_add(producer, B)
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now())
    at_once(world.long.pop())
    assert adds.value is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("topics", [1, 7, 2_000])
def test_a_record_that_is_made_in_steps_has_the_same_bytes(topics: int) -> None:
    partitions = frozenset(TopicPartition(f"t-{number % topics}", number) for number in range(3_000))
    known = Transaction(5, 1, 60_000, TransactionStatus.ONGOING, partitions, client_version=2)
    assert at_once(transaction_value_steps(known)) == transaction_value(known)


def test_ids_that_no_record_has_room_for_and_more_ids_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "IDS_MAX", 2)
    world = World()
    assert world.init(name="x" * 32_768).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.init(name="x" * 32_767).error is NONE
    assert world.init(name="b").error is NONE
    assert world.init(name="c").error is ErrorCode.POLICY_VIOLATION
    assert world.counts.ids == 2


def test_names_that_are_too_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of 32 KB each would be 64 GB."""
    monkeypatch.setattr(shard_module, "ID_BYTES_MAX", 2_500, raising=False)
    world = World()
    long = "x" * 1_000
    assert [world.init(name=each + long).error for each in "abc"] == [NONE, NONE, ErrorCode.POLICY_VIOLATION]
    assert world.init(name="a" + long).error is NONE
    world.move_over()
    assert world.init(name="c" + long).error is ErrorCode.POLICY_VIOLATION
    assert world.init(name="short").error is NONE
    world.advance(8 * 24 * 3_600_000)
    assert world.init(name="c" + long).error is NONE
    assert world.counts.id_bytes < 1_100


def test_more_partitions_than_all_transactions_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "PARTITIONS_OPEN_MAX", 3, raising=False)
    world = World()
    mine, others = producer_of(world.init(name="mine")), producer_of(world.init(name="another's"))
    assert world.add(mine, A, B, name="mine") is NONE
    assert world.add(others, A, B, name="another's") is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.add(others, A, name="another's") is NONE
    assert world.add(mine, C, name="mine") is ErrorCode.CONCURRENT_TRANSACTIONS
    world.move_over()
    assert world.add(mine, C, name="mine") is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.end(others, name="another's").error is NONE
    world.sent.written()
    assert world.add(mine, C, name="mine") is NONE


# A producer that comes with an id that another one has.


def test_each_producer_fences_the_one_before() -> None:
    world = World()
    first, second = producer_of(world.init()), producer_of(world.init())
    assert (first, second) == ((1_000, 0), (1_000, 1))
    assert world.add(first, A) is FENCED


@pytest.mark.parametrize(("version", "epochs"), [(2, (1, 2)), (1, (1, 2))])
def test_a_new_producer_ends_the_open_transaction_first(version: int, epochs: tuple[int, int]) -> None:
    world = World()
    world.version = version
    producer = ongoing(world)
    assert world.init().error is CONCURRENT
    assert (world.status, world.transaction().producer_epoch) == (S.PREPARE_ABORT, epochs[0])
    assert world.end(producer).error is FENCED
    assert world.init().error is CONCURRENT
    world.sent.written()
    assert world.sent.ends[0][1:4] == (epochs[0], world.journal.epoch, False)
    assert world.end(producer).error is FENCED
    assert producer_of(world.init()) == (1_000, epochs[1])


def test_two_producers_at_the_same_moment() -> None:
    world = World()
    world.holds_ids = True
    first, second = world.asks_init(), world.asks_init()
    for call in world.wanting:
        call(next(world.fresh))
    assert producer_of(first.value) == (1_000, 0)
    assert producer_of(second.value) == (1_000, 1)


def test_a_producer_id_that_cannot_be_had() -> None:
    world = World()
    world.fresh = iter([ErrorCode.COORDINATOR_NOT_AVAILABLE, 5])
    assert world.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert producer_of(world.init()) == (5, 0)


def test_a_producer_id_that_comes_after_the_partition_was_given_up() -> None:
    world = World()
    world.holds_ids = True
    answer = world.asks_init()
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now())
    world.wanting[0](5)
    assert answer.value.error is ErrorCode.NOT_COORDINATOR


# A producer that goes on after an error (KIP-360).


def test_a_producer_that_goes_on() -> None:
    world = World()
    world.init()
    assert producer_of(world.init((1_000, 0))) == (1_000, 1)
    # It has missed the answer.
    assert producer_of(world.init((1_000, 0))) == (1_000, 1)
    assert producer_of(world.init((1_000, 1))) == (1_000, 2)
    assert world.init((1_000, 0)).error is FENCED
    assert world.init((999, 2)).error is FENCED


def test_a_producer_that_goes_on_after_another_has_come() -> None:
    world = World()
    world.init()
    world.init()
    assert world.init((1_000, 0)).error is FENCED


def test_another_id_after_the_last_epoch() -> None:
    world = World()
    world.init()
    last = PRODUCER_EPOCH_MAX - 1
    known = world.shard.state.ids[ID]
    known.committed = world.transaction()._replace(producer_epoch=last)
    assert producer_of(world.init((1_000, last))) == (1_001, 0)
    # It has missed that answer.
    assert producer_of(world.init((1_000, last))) == (1_001, 0)
    known.committed = world.transaction()._replace(producer_epoch=last)
    assert producer_of(world.init()) == (1_002, 0)


# An epoch for each transaction.


def test_each_end_gives_the_next_epoch() -> None:
    world = World()
    producer = ongoing(world, version=2)
    assert world.end(producer, version=2) == (NONE, 1_000, 1)
    (end,) = world.sent.ends
    assert (end.producer_epoch, end.transaction_version) == (1, 2)
    world.sent.written()
    assert (world.status, world.transaction().producer_epoch) == (S.COMPLETE_COMMIT, 1)
    # The answer was missed.
    assert world.end(producer, version=2) == (NONE, 1_000, 1)
    assert world.end(producer, version=2, commit=False).error is INVALID_STATE
    # Nothing was added under the new epoch.
    assert world.end((1_000, 1), version=2).error is INVALID_STATE
    assert world.end((1_000, 1), version=2, commit=False) == (NONE, 1_000, 2)
    world.sent.written()
    assert world.end((1_000, 1), version=2, commit=False) == (NONE, 1_000, 2)
    assert world.end((1_000, 0), version=2, commit=False).error is FENCED


def test_an_abort_where_nothing_was_added_yet() -> None:
    world = World()
    producer = producer_of(world.init())
    assert world.end(producer, version=2).error is INVALID_STATE
    assert world.end(producer, version=2, commit=False) == (NONE, 1_000, 1)
    assert world.sent.ends[0].partitions == frozenset()
    world.sent.written()
    assert world.status is S.COMPLETE_ABORT


def test_an_end_with_the_last_epoch_gives_another_id() -> None:
    world = World()
    world.init()
    last = PRODUCER_EPOCH_MAX - 1
    world.shard.state.ids[ID].committed = world.transaction()._replace(producer_epoch=last)
    assert world.add((1_000, last), A, version=2) is NONE
    assert world.end((1_000, last), version=2) == (NONE, 1_001, 0)
    assert world.sent.ends[0][:2] == (1_000, PRODUCER_EPOCH_MAX)
    # Its next transaction, before this one is over.
    assert world.add((1_001, 0), A, version=2) is CONCURRENT
    assert world.init((1_001, 0)).error is CONCURRENT
    world.sent.written()
    assert world.transaction()[:2] == (1_001, 0)
    assert world.end((1_000, last), version=2) == (NONE, 1_001, 0)
    assert world.add((1_001, 0), A, version=2) is NONE


def test_a_fenced_producer_goes_on_with_the_epoch_of_the_abort() -> None:
    """What KIP-890 allows: nobody else has this epoch."""
    world = World()
    producer = ongoing(world, version=2)
    world.advance(2 * TIMEOUT_MS)
    world.sent.written()
    assert world.end(producer, version=2).error is INVALID_STATE
    assert producer_of(world.init(producer)) == (1_000, 1)


# Time.


def test_an_abandoned_transaction_is_aborted() -> None:
    world = World()
    producer = ongoing(world)
    world.advance(TIMEOUT_MS - 1)
    assert world.status is S.ONGOING
    world.advance(world.config.transactions.abort_check_interval_ms + 1)
    assert (world.status, world.counts.aborted_by_timeout) == (S.PREPARE_ABORT, 1)
    assert world.sent.ends[0][1:4] == (producer[1] + 1, world.journal.epoch, False)
    world.sent.written()
    assert world.end(producer).error is FENCED


def test_a_transaction_that_begins_while_a_producer_id_is_on_its_way_is_not_aborted_for_the_one_before() -> None:
    """Its own time is not over. The id is for the last epoch, in which a client of the classic protocol goes on."""
    world = World()
    last = PRODUCER_EPOCH_MAX - 1
    producer_id, _ = ongoing(world)
    world.shard.state.ids[ID].committed = world.transaction()._replace(producer_epoch=last)
    world.holds_ids = True
    world.advance(TIMEOUT_MS)
    (given,) = world.wanting
    assert world.end((producer_id, last)).error is NONE
    world.sent.written()
    assert world.add((producer_id, last), B) is NONE
    given(next(world.fresh))
    assert (world.status, world.transaction().partitions) == (S.ONGOING, {B})


def test_a_transaction_that_goes_on_is_aborted_by_its_begin_and_the_next_one_by_its_own() -> None:
    world = World()
    producer = ongoing(world)
    world.advance(TIMEOUT_MS // 2)
    world.end(producer)
    world.sent.written()
    assert world.add(producer, A) is NONE
    world.advance(TIMEOUT_MS // 2 + 20_000)
    assert world.add(producer, B) is NONE
    assert world.status is S.ONGOING
    world.advance(TIMEOUT_MS // 2)
    assert world.status is S.PREPARE_ABORT


def test_a_shorter_time_out_than_the_one_before() -> None:
    world = World()
    producer = ongoing(world)
    world.end(producer)
    world.sent.written()
    producer = producer_of(world.init(timeout_ms=1_000))
    world.add(producer, A)
    world.advance(1_000 + world.config.transactions.abort_check_interval_ms)
    assert world.status is S.PREPARE_ABORT


@pytest.mark.parametrize("set_by_ms", [-30 * 24 * HOUR_MS, 30 * 24 * HOUR_MS])
def test_a_clock_that_is_set_aborts_nothing(set_by_ms: int) -> None:
    world = World()
    ongoing(world)
    world.clock.set_by_ms = set_by_ms
    world.advance(TIMEOUT_MS // 2)
    assert world.status is S.ONGOING
    world.advance(TIMEOUT_MS)
    assert world.status is S.PREPARE_ABORT


def test_an_abort_that_the_journal_refuses_is_tried_again() -> None:
    world = World()
    ongoing(world)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.advance(2 * TIMEOUT_MS)
    assert (world.status, world.transaction().producer_epoch) == (S.ONGOING, 0)
    world.journal.refusal = None
    world.advance(shard_module.RETRY_MS)
    assert (world.status, world.transaction().producer_epoch) == (S.PREPARE_ABORT, 1)


def test_ids_that_nobody_uses_are_forgotten() -> None:
    world = World(transactional_id_expiration_ms=str(HOUR_MS))
    world.init(name="idle")
    producer = ongoing(world)
    world.advance(2 * HOUR_MS + 1)
    assert list(world.shard.state.ids) == [ID]
    world.sent.written()
    world.advance(2 * HOUR_MS + 1)
    assert not world.shard.state.ids
    assert world.add(producer, A) is MAPPING
    world.move_over()
    assert (world.shard.state.ids, world.counts.ids) == ({}, 0)


# Journals.


def test_a_write_that_is_refused_changes_nothing() -> None:
    world = World()
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not world.shard.state.ids
    world.journal.refusal = None
    producer = ongoing(world)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.end(producer).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.journal.refusal = None
    assert world.status is S.ONGOING
    assert world.end(producer).error is NONE


def test_a_write_whose_commit_takes_too_long_takes_effect_when_it_is_known() -> None:
    world = World()
    producer = ongoing(world)
    world.journal.held = True
    answer = world.asks_end(producer)
    world.journal.time_out()
    assert answer.value.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.end(producer).error is CONCURRENT
    world.advance(HOUR_MS)
    assert (world.status, world.sent.ends) == (S.ONGOING, [])
    world.journal.commit()
    assert world.status is S.PREPARE_COMMIT
    assert len(world.sent.ends) == 1


def test_a_completion_that_the_journal_refuses_is_written_later() -> None:
    world = World()
    world.end(ongoing(world))
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.sent.written()
    assert (world.status, world.counts.unwritten) == (S.PREPARE_COMMIT, 1)
    world.advance(shard_module.RETRY_MS)
    assert (world.status, world.counts.unwritten) == (S.PREPARE_COMMIT, 1)
    world.journal.refusal = None
    world.advance(shard_module.RETRY_MS)
    assert (world.status, world.counts.unwritten) == (S.COMPLETE_COMMIT, 0)


def test_a_completion_that_is_not_written_is_not_counted_where_the_partition_is_given_up() -> None:
    world = World()
    world.end(ongoing(world))
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.sent.written()
    assert world.counts.unwritten == 1
    world.move_over()
    assert world.counts.unwritten == 0


def test_a_client_is_answered_before_the_markers_go_and_they_go_whatever_becomes_of_the_answer() -> None:
    world = World()
    producer = producer_of(world.init())
    assert world.add(producer, A) is ErrorCode.NONE
    sent: list[int] = []

    def reply(answer: ProducerAnswer) -> None:
        sent.append(len(world.sent.ends))
        raise AssertionError("a fault of ours in an answer")

    with suppress(AssertionError):  # which a journal contains
        world.shard.end(world.now(), EndAsked(ID, *producer, True, 0), reply)
    assert sent == [0]
    assert len(world.sent.ends) == 1
