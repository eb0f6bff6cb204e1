"""The history checks on faked histories: each bad one is caught, and the good one is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.model import TopicPartition
from ottla.ports.memory.clock import Timeline
from ottla.testing.sim.commits import CommitHistory, OwnershipHistory, SentCommit
from ottla.testing.sim.history import History, HistoryFault
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


def test_what_somebody_has_deleted_may_be_gone_and_nothing_else() -> None:
    one = history()
    one.see(TP, [(0, A), (1, B)])
    one.trim(TP, 1)
    one.check(TP, [(0, A), (1, B)])
    one.check(TP, [(1, B)])
    for found in ([], [(0, A)], [(1, A)], [(2, B)]):
        with pytest.raises(HistoryFault):
            one.check(TP, found)


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
        made.note("g", TP, SentCommit("m", generation, position, sent, acknowledged))
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


def test_a_coordinator_that_was_replaced_may_answer_what_it_knew_then() -> None:
    noted = commits((1, 10, 0.0, 1.0), (1, 11, 2.0, 3.0), (1, 12, 4.0, 5.0))
    noted.replaced_at = lambda _, broker: 3.5 if broker == 7 else None
    noted.check("g", TP, 11, noted.as_of("g", 7, 6.0))
    with pytest.raises(HistoryFault, match="the position is 10"):
        noted.check("g", TP, 10, noted.as_of("g", 7, 6.0))
    with pytest.raises(HistoryFault, match="the position is 11"):
        noted.check("g", TP, 11, noted.as_of("g", 8, 6.0))


def by_epoch(member: str, epoch: int, sent: float) -> SentCommit:
    return SentCommit(member, epoch, int(sent), sent, sent + 1, by_epoch=True)


def test_a_member_may_commit_in_an_epoch_that_it_has_left_and_not_over_another_members() -> None:
    noted = commits()
    noted.note("g", TP, by_epoch("m", 4, 0.0))
    noted.note("g", TP, by_epoch("m", 3, 2.0))
    with pytest.raises(HistoryFault, match="an old generation"):
        noted.note("g", TP, by_epoch("n", 3, 4.0))


def ownership() -> OwnershipHistory:
    """m had the partition from 1 to 5."""
    made = OwnershipHistory(Trace(Timeline()))
    made.note_answer("g", "m", 2, [TP])
    made.given_to("g", TP, "m", 1.0)
    made.kept("g", TP, "m", 5.0)
    return made


def test_a_partition_has_one_owner_after_the_other() -> None:
    made = ownership()
    made.note_answer("g", "m", 2, [TP])
    made.note_answer("g", "n", 3, [TP])
    made.committed("g", TP, "m", 2)
    made.committed("g", TP, "n", 3)
    made.given_to("g", TP, "n", 5.0)
    made.kept("g", TP, "n", 9.0)
    assert made.given == 2


@pytest.mark.parametrize(
    "bad",
    [
        lambda made: made.note_answer("g", "n", 2, [TP]),
        lambda made: made.committed("g", TP, "n", 2),
        lambda made: (made.given_to("g", TP, "n", 4.0), made.kept("g", TP, "n", 6.0)),
        lambda made: (made.given_to("g", TP, "n", 5.0), made.kept("g", TP, "n", 6.0), made.kept("g", TP, "m", 5.5)),
    ],
    ids=["in one epoch", "a commit of then", "before the other gave it up", "the other goes on"],
)
def test_two_owners_at_once_are_caught(bad: Callable[[OwnershipHistory], object]) -> None:
    with pytest.raises(HistoryFault):
        bad(ownership())
