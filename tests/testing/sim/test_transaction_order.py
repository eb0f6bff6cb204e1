"""The check for cycles, on faked histories: what no order explains is named, and what Kafka permits is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searches import examples

from ottla.model import TopicPartition
from ottla.ports.memory.clock import Timeline
from ottla.testing.sim.invariants import InvariantBroken
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.transaction_history import Outcome, TransactionHistory
from ottla.testing.sim.transaction_order import Operation, _real_time, cycle_in

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
#: When nobody has ended before somebody else begins.
ALWAYS = (0, 1_000)


def wrote(
    name: str,
    process: str,
    when: tuple[int, int | None],
    positions: Mapping[TopicPartition, int] | None = None,
    **at: int,
) -> Operation:
    """`here` and `there` are the offsets of its records."""
    written = {tp: [at[word]] for word, tp in (("here", HERE), ("there", THERE)) if word in at}
    return Operation(name, process, *when, written=written, positions=positions or {})


def read(
    name: str, process: str, when: tuple[int, int | None], tp: TopicPartition, first: int, behind: int, *shown: int
) -> Operation:
    return Operation(name, process, *when, through={tp: (first, behind, frozenset(shown))})


def told(name: str, process: str, when: tuple[int, int], position: int) -> Operation:
    return Operation(name, process, *when, answered={HERE: position})


BAD = {
    "a record of one that begins later": (
        [wrote("T", "a", (10, 20), here=0)],
        [read("R", "b", (1, 2), HERE, 0, 2, 0)],
        "T -wrote-> R, R -real time-> T",
    ),
    "a record is passed over": (
        [wrote("T", "a", (10, 20), here=4)],
        [read("R", "b", (30, 40), HERE, 0, 9)],
        "T -decided-> R, R -missed-> T",
    ),
    "one of two records is passed over": (
        [wrote("T", "a", ALWAYS, here=4, there=7)],
        [read("R", "b", (1, 2), HERE, 0, 9, 4), read("S", "b", (3, 4), THERE, 0, 9)],
        "T -decided-> S, S -missed-> T",
    ),
    "an older position than was answered": (
        [wrote("T", "a", (1, 2), {HERE: 5}), wrote("U", "a", (3, 4), {HERE: 9})],
        [told("R", "b", (5, 6), 5)],
        "U -real time-> R, R -missed-> U",
    ),
    "an older position than its own, of which no answer came": (
        [wrote("T", "a", (1, 2), {HERE: 5}), wrote("U", "a", (3, None), {HERE: 9})],
        [told("R", "a", (5, 6), 5)],
        "U -then-> R, R -missed-> U",
    ),
    "each has read what the other wrote": (
        [wrote("T", "a", (50, 1_000), here=0), wrote("U", "b", (50, 1_000), there=0)],
        [read("R", "a", (1, None), THERE, 0, 2, 0), read("S", "b", (1, None), HERE, 0, 2, 0)],
        "R -then-> T, T -wrote-> S, S -then-> U, U -wrote-> R",
    ),
    "what one has seen another does not see behind it": (
        [wrote("T", "a", ALWAYS, {HERE: 9}, here=0), wrote("U", "b", (60, None), there=0)],
        [
            read("R", "b", (1, 2), HERE, 0, 2, 0),
            read("S", "c", (70, 80), THERE, 0, 2, 0),
            told("P", "c", (90, 95), 5),
        ],
        "T -wrote-> R, R -real time-> S, S -then-> P, P -missed-> T",
    ),
}


@pytest.mark.parametrize(("transactions", "reads", "said"), BAD.values(), ids=BAD)
def test_what_no_order_explains(transactions: list[Operation], reads: list[Operation], said: str) -> None:
    found = cycle_in(transactions, reads)
    assert found is not None
    # A cycle has no first edge.
    steps = found.split(", ")
    assert said in {", ".join(steps[place:] + steps[:place]) for place in range(len(steps))}, found


GOOD = {
    "nobody has read": ([wrote("T", "a", (1, 2), here=0)], []),
    "two partitions have two transactions in two orders": (
        [wrote("T", "a", ALWAYS, here=0, there=5), wrote("U", "b", ALWAYS, here=3, there=1)],
        [read("R", "c", (2_000, 2_001), HERE, 0, 9, 0, 3), read("S", "c", (2_002, 2_003), THERE, 0, 9, 1, 5)],
    ),
    "a reader has not come so far": (
        [wrote("T", "a", (1, 2), here=4, there=0)],
        [read("R", "b", (3, 4), THERE, 0, 2, 0), read("S", "b", (5, 6), HERE, 0, 4)],
    ),
    "shown while it was not answered yet": (
        [wrote("T", "a", (1, 10), here=0), wrote("U", "b", (2, None), here=2)],
        [read("R", "c", (3, 4), HERE, 0, 4, 0, 2)],
    ),
    "an older position while the later one is under way": (
        [wrote("T", "a", (1, 2), {HERE: 5}), wrote("U", "a", (3, 10), {HERE: 9})],
        [told("R", "b", (5, 6), 5), told("S", "b", (11, 12), 9)],
    ),
}


@pytest.mark.parametrize(("transactions", "reads"), GOOD.values(), ids=GOOD)
def test_what_may_be(transactions: list[Operation], reads: list[Operation]) -> None:
    assert cycle_in(transactions, reads) is None


@given(st.lists(st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(1, 10))), max_size=12))
@examples(300)
def test_real_time_leaves_out_nothing_but_what_follows(times: list[tuple[int, int | None]]) -> None:
    # Each moment is another one.
    operations = [
        Operation(str(place), "p", began * 100 + place, None if took is None else (began + took) * 100 + 50 + place)
        for place, (began, took) in enumerate(times)
    ]
    operations.sort(key=lambda each: each.began)
    pairs = set(_real_time(operations))
    reached = set(pairs)
    for middle, before, after in product(operations, repeat=3):
        if (before, middle) in reached and (middle, after) in reached:
            reached.add((before, after))
    expected = {
        (one, other) for one in operations for other in operations if one.ended is not None and one.ended < other.began
    }
    assert reached == expected


# Through the history of the clients


def history() -> TransactionHistory:
    """Two transactions of one client, each with a record; the second one is committed and was not answered."""
    made = TransactionHistory(Trace(Timeline()))
    for number, outcome in ((0, Outcome.COMMITTED), (1, Outcome.IN_DOUBT)):
        begun = made.begin(f"T{number}", "a")
        made.send(begun, HERE, [b"%d" % number])
        begun.positions[THERE] = 10 * (number + 1)
        made.becomes(begun, outcome)
    return made


ALL = [(0, b"0"), (2, b"1")]


@pytest.mark.parametrize(
    "bad",
    [
        lambda made: made.read("b", made.now(), HERE, 0, 4, ALL[1:]),
        lambda made: made.read("b", made.now(), HERE, 0, 4, ALL[:1]),
        lambda made: made.tell("a", made.now(), {THERE: 10}),
        lambda made: made.tell("b", made.now(), {THERE: 0}),
    ],
    ids=["the first is passed over", "the second is passed over", "its own is not seen", "an answered one is not seen"],
)
def test_a_history_without_an_order_is_caught_by_its_name(bad: Callable[[TransactionHistory], None]) -> None:
    made = history()
    bad(made)
    made.check({HERE: ALL, THERE: []})
    with pytest.raises(InvariantBroken) as caught:
        made.check_order()
    assert caught.value.name == "NoCycle"


def test_a_history_with_an_order_is_not() -> None:
    made = history()
    began = made.now()
    made.read("b", began, HERE, 0, 2, ALL[:1])
    made.tell("b", made.now(), {THERE: 10})
    made.read("b", made.now(), HERE, 2, 4, ALL[1:])
    made.read("b", made.now(), HERE, 4, 4, [])
    made.tell("a", made.now(), {THERE: 20})
    made.check({HERE: ALL, THERE: []})
    made.check_order()
