"""The table of a transactional id's states."""

from __future__ import annotations

import itertools

import pytest

from ottla.transactions.states import (
    BY_KAFKA_NAME,
    ENDING,
    IDLE,
    NEXT,
    TransactionEvent,
    TransactionStatus,
    after,
)

S, E = TransactionStatus, TransactionEvent


def test_kafka_s_predecessors_of_each_state() -> None:
    """As `TransactionState.validPreviousStates` of Apache Kafka 4.3.1 says it."""
    predecessors = {target: {source for (source, _), to in NEXT.items() if to is target} for target in S}
    assert predecessors == {
        S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
        S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
        S.PREPARE_COMMIT: {S.ONGOING},
        S.PREPARE_ABORT: {S.ONGOING, S.PREPARE_EPOCH_FENCE, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
        S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
        S.COMPLETE_ABORT: {S.PREPARE_ABORT},
        S.DEAD: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
        S.PREPARE_EPOCH_FENCE: {S.ONGOING},
    }


def test_what_is_not_in_the_table_cannot_happen() -> None:
    missing = [pair for pair in itertools.product(S, E) if pair not in NEXT]
    assert len(missing) == len(S) * len(E) - len(NEXT)
    for status, event in missing:
        with pytest.raises(KeyError):
            after(status, event)


def test_a_decided_end_leads_to_its_completion_and_nowhere_else() -> None:
    for status in ENDING:
        assert {event for source, event in NEXT if source is status} == {E.MARKED}
    assert not any(source is S.DEAD for source, _ in NEXT)
    assert not IDLE & ENDING


def test_the_names_are_those_of_kafkas_tools() -> None:
    assert sorted(BY_KAFKA_NAME) == [
        "CompleteAbort",
        "CompleteCommit",
        "Dead",
        "Empty",
        "Ongoing",
        "PrepareAbort",
        "PrepareCommit",
        "PrepareEpochFence",
    ]
    assert all(status.kafka_name == name for name, status in BY_KAFKA_NAME.items())
