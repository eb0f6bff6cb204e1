"""The history checks on faked histories: each bad one is caught, and the good one is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.model import TopicPartition
from ottla.ports.memory.clock import Timeline
from ottla.testing.sim.history import History, HistoryFault
from ottla.testing.sim.members import Commit, CommitHistory
from ottla.testing.sim.trace import Trace

TP = TopicPartition("t", 0)
A, B, C = b"p:0", b"p:1", b"q:0"


def history() -> History:
    """p has sent two values and q one, and the first two were acknowledged at 0 and 1."""
    made = History(Trace(Timeline()))
    made.send(TP, "p", [A, B])
    made.send(TP, "q", [C])
    made.acknowledge(TP, [A, B], 0)
    return made


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([(0, A)], "is gone"),
        ([], "is gone"),
        ([(0, C), (1, A), (2, B)], "acknowledged at 0 and is at 1"),
        ([(0, A), (1, B), (2, A)], "twice"),
        ([(0, B), (1, A)], "behind a later one"),
        ([(0, A), (1, B), (2, b"x")], "nobody sent"),
        ([(0, A), (1, B), (3, C)], "not 0, 1, 2"),
    ],
)
def test_a_bad_log_is_caught(found: list[tuple[int, bytes]], why: str) -> None:
    with pytest.raises(HistoryFault, match=why):
        history().check(TP, found)


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    history().check(TP, [(0, A), (1, B)])
    history().check(TP, [(0, A), (1, B), (2, C)])


def test_what_a_leader_alone_has_acknowledged_may_be_lost_and_not_doubled() -> None:
    one = history()
    one.acknowledge(TP, [C], 2, certain=False)
    one.check(TP, [(0, A), (1, B)])
    with pytest.raises(HistoryFault, match="twice"):
        one.check(TP, [(0, A), (1, B), (2, C), (3, C)])


def test_an_offset_with_two_values_is_caught_as_it_is_seen() -> None:
    one = history()
    one.see(TP, [(0, A)])
    with pytest.raises(HistoryFault, match="offset 0 was"):
        one.see(TP, [(0, B)])


def test_what_was_seen_has_to_stay() -> None:
    one = history()
    one.see(TP, [(2, C)])
    with pytest.raises(HistoryFault, match="was seen at 2"):
        one.check(TP, [(0, A), (1, B)])


def test_values_of_one_that_does_not_wait_may_overtake_one_another() -> None:
    one = history()
    one.send(TP, "r", [b"r:0", b"r:1"])
    rows = [(0, A), (1, B), (2, b"r:1"), (3, b"r:0")]
    with pytest.raises(HistoryFault, match="behind a later one"):
        one.check(TP, rows)
    one.unordered.add("r")
    one.check(TP, rows)


def commits(*noted: tuple[int, int, float, float | None]) -> CommitHistory:
    """Generation, position, when it was sent and acknowledged."""
    made = CommitHistory(Trace(Timeline()))
    for generation, position, sent, acknowledged in noted:
        made.note("g", TP, Commit("m", generation, position, sent, acknowledged))
    return made


@pytest.mark.parametrize(
    "bad",
    [
        lambda: commits((2, 10, 0.0, 1.0), (1, 11, 2.0, 3.0)),
        lambda: commits((1, 10, 0.0, 1.0), (1, 11, 2.0, 3.0)).check("g", TP, 10),
        lambda: commits((1, 10, 0.0, 1.0)).check("g", TP, -1),
        lambda: commits((1, 10, 0.0, 1.0)).check("g", TP, 12),
    ],
    ids=["an old generation", "one that was replaced", "lost", "from nowhere"],
)
def test_a_bad_commit_is_caught(bad: Callable[[], object]) -> None:
    with pytest.raises(HistoryFault):
        bad()


def test_commits_whose_end_nobody_knows_may_have_been_stored() -> None:
    noted = commits((1, 10, 0.0, 1.0), (1, 11, 2.0, None), (2, 12, 3.0, 4.0))
    noted.check("g", TP, 12)
    noted.check("g", TP, 11)
    with pytest.raises(HistoryFault):
        noted.check("g", TP, 10)
    # Sent while the other was under way: either may have been the last.
    commits((1, 10, 0.0, 3.0), (1, 11, 1.0, 2.0)).check("g", TP, 10)
