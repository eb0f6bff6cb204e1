"""The checks of what clients see of transactions, on faked histories: each bad one is caught by its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.model import TopicPartition
from ottla.ports.memory.clock import Timeline
from ottla.testing.sim.history import HistoryFault, Row
from ottla.testing.sim.invariants import InvariantBroken
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.transaction_history import Outcome, SentTransaction, TransactionHistory

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
A, B, C = b"a", b"b", b"c"


def history(outcome: Outcome) -> tuple[TransactionHistory, SentTransaction]:
    """A transaction with a value in each of two partitions; and one that is committed."""
    made = TransactionHistory(Trace(Timeline()))
    one = made.begin("one", "a")
    made.send(one, HERE, [A])
    made.send(one, THERE, [B])
    if outcome is not Outcome.OPEN:
        made.becomes(one, outcome)
    other = made.begin("other", "b")
    made.send(other, HERE, [C])
    made.becomes(other, Outcome.COMMITTED)
    return made, one


def check(outcome: Outcome, here: list[Row], there: list[Row]) -> None:
    history(outcome)[0].check({HERE: here, THERE: there})


@pytest.mark.parametrize(
    ("outcome", "here", "there", "name"),
    [
        (Outcome.ABORTED, [(0, A), (2, C)], [], "NoAbortedRead"),
        (Outcome.OPEN, [(0, A), (2, C)], [(0, B)], "NoAbortedRead"),
        (Outcome.IN_DOUBT, [(0, A), (2, C)], [], "AllOrNothing"),
        (Outcome.COMMITTED, [(2, C)], [(0, B)], "AllOrNothing"),
        (Outcome.COMMITTED, [(2, C)], [], "AllOrNothing"),
        (Outcome.ABORTED, [], [], "AllOrNothing"),
        (Outcome.COMMITTED, [(0, A), (2, C), (4, C)], [(0, B)], "NothingTwice"),
    ],
)
def test_what_may_not_be_is_caught(outcome: Outcome, here: list[Row], there: list[Row], name: str) -> None:
    with pytest.raises(InvariantBroken) as caught:
        check(outcome, here, there)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("outcome", "here", "there"),
    [
        (Outcome.COMMITTED, [(0, A), (2, C)], [(0, B)]),
        (Outcome.ABORTED, [(2, C)], []),
        (Outcome.IN_DOUBT, [(2, C)], []),
        (Outcome.IN_DOUBT, [(0, A), (2, C)], [(0, B)]),
        (Outcome.OPEN, [(2, C)], []),
    ],
)
def test_what_may_be_is_not(outcome: Outcome, here: list[Row], there: list[Row]) -> None:
    check(outcome, here, there)


def test_what_was_shown_and_is_aborted_then_is_caught() -> None:
    made, one = history(Outcome.IN_DOUBT)
    made.see(HERE, [(0, A)])
    with pytest.raises(InvariantBroken, match="NoAbortedRead"):
        made.becomes(one, Outcome.ABORTED)


@pytest.mark.parametrize(
    "bad",
    [
        lambda made: made.see(HERE, [(0, b"x")]),
        lambda made: made.see(HERE, [(0, B)]),
        lambda made: (made.see(HERE, [(0, A)]), made.see(HERE, [(0, C)])),
        lambda made: (made.see(HERE, [(5, A)]), made.check({HERE: [(0, A), (2, C)], THERE: [(0, B)]})),
    ],
    ids=["nobody sent it", "it was sent elsewhere", "another at its offset", "it was seen and is gone"],
)
def test_what_nobody_sent_or_what_has_gone_is_caught(bad: Callable[[TransactionHistory], object]) -> None:
    with pytest.raises(HistoryFault):
        bad(history(Outcome.COMMITTED)[0])


def test_a_lost_one_is_aborted_unless_its_commit_was_asked_for() -> None:
    made, one = history(Outcome.OPEN)
    made.lost(one)
    assert one.outcome is Outcome.ABORTED
    made, one = history(Outcome.IN_DOUBT)
    made.lost(one)
    assert one.outcome is Outcome.IN_DOUBT
