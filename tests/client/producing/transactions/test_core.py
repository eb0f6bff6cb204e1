"""What a producer knows of its transactions, without any broker: the table of states, and what follows from it."""

from __future__ import annotations

import random

import pytest
from tests.searches import seeds

from ottla.client.errors import (
    IllegalGeneration,
    InvalidProducerIdMapping,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    TransactionAborted,
    TransactionFailed,
    TransactionTimedOut,
    WrongTransactionState,
)
from ottla.client.producing.sequences import Identities, ProducerIdentity
from ottla.client.producing.transactions.core import CLASSIC, EPOCH_A_TRANSACTION, TransactionCore
from ottla.client.producing.transactions.states import NEXT, TransactionEvent, TransactionState
from ottla.model import TopicPartition

S, E = TransactionState, TransactionEvent
TP = TopicPartition("orders", 0)


def begun(version: int = EPOCH_A_TRANSACTION) -> TransactionCore:
    core = TransactionCore("till-1", Identities(raised_here=False))
    core.initialize()
    core.initialized(ProducerIdentity(7, 0), version)
    core.begin()
    return core


def test_a_missing_entry_raises() -> None:
    core = begun()
    with pytest.raises(KeyError):
        core.begin()
    with pytest.raises(KeyError):
        core.ended(None)


def test_every_state_is_reached_and_left() -> None:
    """But the last, and the one that only somebody else ends."""
    reached = {after for (before, _), after in NEXT.items() if before is not after}
    left = {before for (before, event), after in NEXT.items() if before is not after and event is not E.OVER}
    assert reached | {S.UNINITIALIZED} == set(S)
    assert left == set(S) - {S.OVER}


def test_in_the_first_generation_a_partition_is_added_before_it_is_written_to() -> None:
    core = begun(CLASSIC)
    assert not core.admits(TP, 5)
    assert (core.pending, core.has_end) == ({TP}, False)
    core.start(5)
    core.added([TP])
    assert core.admits(TP, 6)
    assert (core.pending, core.has_end, core.started_ms) == (set(), True, 5)


def test_in_the_second_it_is_added_with_its_first_batch() -> None:
    core = begun()
    assert core.admits(TP, 5)
    assert (core.pending, core.has_end, core.started_ms) == (set(), True, 5)


def test_what_was_refused_leaves_nothing_to_end() -> None:
    core = begun(CLASSIC)
    core.start(5)
    core.refused()
    assert not core.has_end
    core.start(6)
    core.group_added("billing")
    core.start(7)
    core.refused()
    assert core.has_end  # the group's offsets are there


def test_a_partition_is_admitted_while_records_are_taken_or_flushed_only() -> None:
    core = begun()
    core.commit()
    assert core.admits(TP, 5)
    core.ended(ProducerIdentity(7, 1))
    assert not core.admits(TP, 6)
    core.begin()
    core.fail(KafkaError("no"))
    assert not core.admits(TP, 7)


def test_the_first_error_stands() -> None:
    core = begun()
    assert core.fail(IllegalGeneration("gone"))
    assert not core.fail(KafkaError("later"))
    refused = core.refusal("commit")
    assert isinstance(refused, TransactionAbortable)
    assert isinstance(refused.__cause__, IllegalGeneration)


def test_a_time_out_stays_one() -> None:
    core = begun()
    core.fail(TransactionTimedOut("too long"))
    assert type(core.refusal("send")) is TransactionTimedOut


def test_an_error_that_is_raised_twice_is_two() -> None:
    core = begun()
    core.over(ProducerFenced("out"))
    first, second = core.refusal("send"), core.refusal("send")
    assert type(first) is type(second) is ProducerFenced
    assert first is not second


def test_a_fatal_error_names_its_cause() -> None:
    core = begun()
    said = core.over(KafkaError("the coordinator does not let us"))
    assert type(said) is TransactionFailed
    assert "does not let us" in str(said)
    assert type(core.refusal("begin")) is TransactionFailed


def test_numbers_in_doubt_ask_for_another_identity() -> None:
    core = begun(CLASSIC)
    core.batch_failed(stamped=False)
    assert not core.needs_identity
    core.batch_failed(stamped=True)
    core.fail(KafkaError("no"))
    core.abort()
    core.ended(None)
    assert core.needs_identity


def test_the_next_epoch_ends_the_doubt() -> None:
    core = begun()
    core.admits(TP, 0)
    core.batch_failed(stamped=True)
    core.fail(KafkaError("no"))
    core.abort()
    core.ended(ProducerIdentity(7, 1))
    assert not core.needs_identity
    assert core.identity == (7, 1)


def test_a_producer_that_was_forgotten_has_nothing_to_end_and_needs_an_identity() -> None:
    core = begun(CLASSIC)
    core.start(0)
    core.added([TP])
    core.fail(InvalidProducerIdMapping("who?"))
    core.abort()
    assert not core.has_end
    core.ended(None)
    assert core.needs_identity


def test_what_waits_is_told_that_it_was_not_sent() -> None:
    core = begun()
    assert core.dropping() is None
    core.fail(KafkaError("full"))
    told = core.dropping()
    assert isinstance(told, TransactionAborted)
    assert "full" in str(told)
    core.abort()
    assert isinstance(core.dropping(), TransactionAborted)


def test_one_call_at_a_time() -> None:
    core = begun()
    with (
        core.busy("commit", S.OPEN),
        pytest.raises(WrongTransactionState, match="commit of this producer is under way"),
        core.busy("abort", S.OPEN),
    ):
        pass
    assert not core.is_busy


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_whatever_happens_in_whatever_order(seed: int) -> None:
    """Calls and faults at random: nothing is admitted outside of a transaction, and each one begins clean."""
    rng = random.Random(seed)
    core = TransactionCore("till-1", Identities(raised_here=False))
    epoch = 0
    for step in range(300):
        allowed = [event for (state, event) in NEXT if state is core.state and event is not E.OVER]
        event = rng.choice(allowed)
        if event is E.INIT:
            core.initialize()
        elif event is E.INITIALIZED:
            epoch += 1
            core.initialized(ProducerIdentity(7, epoch), rng.choice([CLASSIC, EPOCH_A_TRANSACTION]))
            assert not core.needs_identity
        elif event is E.BEGIN:
            core.begin()
            assert (core.started, core.partitions, core.pending, core.groups) == (False, set(), set(), set())
        elif event is E.FAIL:
            core.fail(KafkaError(f"step {step}"))
        elif event is E.COMMIT:
            core.commit()
        elif event is E.REOPEN:
            core.reopen()
        elif event is E.ABORT:
            core.abort()
        elif event is E.ENDED:
            epoch += 1
            core.ended(rng.choice([None, ProducerIdentity(7, epoch)]))
        elif event is E.DETACH:
            core.detach()
        admitted = core.admits(TopicPartition("orders", rng.randrange(3)), step)
        if admitted:
            assert core.state in {S.OPEN, S.COMMITTING}
        assert core.takes_records == (core.state is S.OPEN)
        assert (core.dropping() is not None) == (core.state in {S.FAILED, S.ABORTING})
