"""The driver's decisions, exhaustively: any two faults at any steps, and two drivers at work in any order."""

from __future__ import annotations

from functools import partial

import pytest
from tests.spark.sink.exactly_once.model import BATCH, OPEN, ROWS, Brokers, Choices, Crash, driven, tried

from ottla.spark.sink.entries import DONE, PREPARED, LedgerEntry
from ottla.spark.sink.errors import BatchNotCommitted

#: Between two steps. A task's id is used again while its log tells of it, and when it does not any more.
GO_ON, CRASH, TIME_OUT, FENCE_FIRST, FENCE_LAST, FORGET_FIRST, FORGET_LAST = range(7)
FIRST, LAST = 0, 2
DRIVERS_MAX = 12


def fault(chosen: int, brokers: Brokers) -> None:
    match chosen:
        case 1:
            raise Crash
        case 2:
            brokers.let_time_pass()
        case 3 | 4:
            brokers.fence(FIRST if chosen == FENCE_FIRST else LAST)
        case 5 | 6:
            brokers.fence_and_forget(FIRST if chosen == FORGET_FIRST else LAST)


def begun() -> Brokers:
    return Brokers(LedgerEntry(query_id="q", batch=BATCH - 1, rows=1))


def check_end(brokers: Brokers) -> None:
    assert brokers.entry == LedgerEntry(query_id="q", batch=BATCH, rows=sum(ROWS.values()))
    assert set(brokers.seen().values()) == {1}


def one_after_the_other(choices: Choices) -> None:
    """Drivers until one has committed; then what is seen is looked at."""
    brokers = begun()
    for driver in range(1, DRIVERS_MAX):
        try:
            for _ in driven(brokers, driver):
                fault(choices.of(7), brokers)
                assert max(brokers.seen().values()) <= 1
        except Crash:
            continue
        except BatchNotCommitted as error:
            if "nobody can say" in str(error):
                check_nobody_goes_on(brokers)
                return
            continue
        check_end(brokers)
        return
    raise AssertionError("no driver comes to the end")


def check_nobody_goes_on(brokers: Brokers) -> None:
    """Where it is not known what became of a task: its rows might be there twice, or not at all."""
    before = brokers.entry
    assert before is not None
    assert (before.state, before.batch) == (PREPARED, BATCH)
    assert brokers.forgotten & {one.transaction for one in before.tasks}
    with pytest.raises(BatchNotCommitted, match="nobody can say"):
        for _ in driven(brokers, DRIVERS_MAX):
            pass
    assert brokers.entry == before
    assert max(brokers.seen().values()) <= 1


def test_every_row_once_through_any_two_faults() -> None:
    assert tried(one_after_the_other, 2) > 1_000


@pytest.mark.slow
def test_every_row_once_through_any_three_faults() -> None:
    assert tried(one_after_the_other, 3) > 10_000


def side_by_side(choices: Choices, *, faults: bool) -> None:
    """Two drivers of one micro-batch: at each step the same one goes on, or the other. Whoever comes behind them
    finishes what they have left."""
    brokers = begun()
    working = [driven(brokers, 1), driven(brokers, 2)]
    chosen = 0
    while working:
        options = choices.of(4 if faults else len(working))
        if len(working) == 2 and options == 1:
            chosen = 1 - chosen
        elif options == 2:
            brokers.let_time_pass()
        elif options == 3:
            brokers.fence(LAST)
        try:
            next(working[chosen])
        except StopIteration:
            assert brokers.entry is not None
            assert brokers.entry.finished == BATCH
            assert set(brokers.seen().values()) == {1}
            del working[chosen]
            chosen = 0
        except (Crash, BatchNotCommitted):
            del working[chosen]
            chosen = 0
        assert max(brokers.seen().values()) <= 1
        if brokers.entry is not None and brokers.entry.finished == BATCH:
            assert set(brokers.seen().values()) == {1}, "what is said to be done is seen"
    for driver in range(3, DRIVERS_MAX):
        try:
            for _ in driven(brokers, driver):
                pass
        except BatchNotCommitted:
            continue
        break
    check_end(brokers)
    assert brokers.entry is not None
    assert brokers.entry.state == DONE
    assert OPEN not in brokers.transactions.values()


@pytest.mark.parametrize(
    ("switches", "faults"),
    [
        (4, False),
        (2, True),
        pytest.param(6, False, marks=pytest.mark.slow),
        pytest.param(3, True, marks=pytest.mark.slow),
    ],
)
def test_every_row_once_though_an_older_driver_wakes_anywhere(switches: int, faults: bool) -> None:
    assert tried(partial(side_by_side, faults=faults), switches) > 1_000
