"""Producers whose transactions are asked about before their first batch, and markers that come meanwhile."""

from __future__ import annotations

import pytest
from tests.storage.log_world import World, batch, marker, put

from ottla.model import ErrorCode
from ottla.storage.errors import AppendRefused
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log
from ottla.storage.log.producers.producer_state import EPOCH_MAX
from ottla.storage.log.producers.verifying import VERIFYING_MAX


def write(log: Log, sequence: int = 0, *, producer: int = 1, epoch: int = 0) -> None:
    put(log, batch(b"v", producer=(producer, epoch, sequence), transactional=True))


def end(log: Log, *, epoch: int = 0) -> None:
    put(log, marker(1, epoch, aborts=True), origin=Origin.COORDINATOR)


def refusal(log: Log, sequence: int, *, epoch: int = 0) -> ErrorCode:
    with pytest.raises(AppendRefused) as refused:
        write(log, sequence, epoch=epoch)
    return refused.value.error


def test_a_marker_between_the_question_and_the_batch_makes_the_answer_void() -> None:
    log = World().open()
    question = log.producers.begin_verifying(1, 0, 0)
    assert log.producers.is_verified(1, 0, question)
    end(log)
    assert not log.producers.is_verified(1, 0, question)
    again = log.producers.begin_verifying(1, 0, 0)
    assert log.producers.is_verified(1, 0, again)
    assert not log.producers.is_verified(1, 0, question)


def test_of_several_that_ask_the_first_batch_is_enough() -> None:
    log = World().open()
    questions = [log.producers.begin_verifying(1, 0, sequence) for sequence in range(2)]
    write(log)
    assert all(log.producers.is_verified(1, 0, question) for question in questions)
    assert log.producers.has_open(1, 0)
    assert not log.producers.has_open(1, 1)
    end(log)
    assert not any(log.producers.is_verified(1, 0, question) for question in questions)


def test_a_batch_behind_one_that_was_refused_is_no_beginning() -> None:
    log = World().open()
    log.producers.begin_verifying(1, 0, 5)
    log.producers.begin_verifying(1, 0, 6)
    assert refusal(log, 6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 5)
    write(log, 6)


def test_an_epoch_for_each_transaction_begins_at_sequence_zero() -> None:
    log = World().open()
    log.producers.begin_verifying(1, 0, 5, begins_at_zero=True)
    assert refusal(log, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.producers.begin_verifying(1, 0, 0, begins_at_zero=True)
    write(log, 0)
    end(log, epoch=1)
    log.producers.begin_verifying(1, 1, 1, begins_at_zero=True)
    assert refusal(log, 1, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 0, epoch=1)


def test_a_later_epoch_asks_anew() -> None:
    log = World().open()
    log.producers.begin_verifying(1, 0, 3)
    log.producers.begin_verifying(1, 1, 7)
    # Of the earlier epoch nothing is remembered any more.
    write(log, 7, epoch=1)


def test_questions_have_a_bound() -> None:
    log = World().open()
    first = log.producers.begin_verifying(0, 0, 0)
    for producer in range(1, VERIFYING_MAX):
        log.producers.begin_verifying(producer, 0, 0)
    assert log.producers.is_verified(0, 0, first)
    log.producers.begin_verifying(VERIFYING_MAX, 0, 0)
    assert not log.producers.is_verified(0, 0, first)


@pytest.mark.parametrize(("epoch", "is_refused"), [(0, True), (1, False)])
def test_a_marker_with_an_epoch_of_its_own(epoch: int, is_refused: bool) -> None:
    log = World().open()
    write(log)
    if is_refused:
        with pytest.raises(AppendRefused):
            log.producers.check_marker(1, epoch, 0, 1, is_bumped=True)
    else:
        log.producers.check_marker(1, epoch, 0, 1, is_bumped=True)
    log.producers.check_marker(1, epoch, 0, 1)


def test_a_marker_that_has_come_may_come_again_and_the_last_epoch_has_no_later_one() -> None:
    log = World().open()
    write(log)
    end(log, epoch=1)
    log.producers.check_marker(1, 1, 0, 2, is_bumped=True)
    write(log, producer=2, epoch=EPOCH_MAX)
    log.producers.check_marker(2, EPOCH_MAX, 0, 3, is_bumped=True)
