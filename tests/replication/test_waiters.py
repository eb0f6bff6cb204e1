"""Those who wait are asked once a change, answered once, and let go at their deadline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import TopicPartition
from ottla.replication.waiters import ASKED_A_TURN, TURN_MS, Waiters

A, B, C = (TopicPartition("t", p) for p in range(3))


class Recorder:
    """A waiter that completes when `ready` says so and remembers what it was told."""

    def __init__(self) -> None:
        self.ready = False
        self.tried = 0
        self.completed = 0
        self.expired = 0

    def try_complete(self, now_ms: int) -> bool:
        self.tried += 1
        self.completed += self.ready
        return self.ready

    def expire(self, now_ms: int) -> None:
        self.expired += 1


def test_a_change_asks_only_those_who_wait_for_it() -> None:
    waiters, mine, other = Waiters(), Recorder(), Recorder()
    waiters.park(mine, [A], 100)
    waiters.park(other, [B], 100)
    waiters.changed(A)
    waiters.settle(1)
    assert (mine.tried, other.tried) == (1, 0)


def test_many_changes_in_a_round_ask_once() -> None:
    waiters, waiter = Waiters(), Recorder()
    waiters.park(waiter, [A, B], 100)
    for partition in (A, B, A, A):
        waiters.changed(partition)
    waiters.settle(1)
    assert waiter.tried == 1


def test_who_is_done_is_not_asked_again_and_does_not_expire() -> None:
    waiters, waiter = Waiters(), Recorder()
    waiters.park(waiter, [A], 100)
    waiter.ready = True
    waiters.changed(A)
    waiters.settle(1)
    waiters.changed(A)
    waiters.settle(2)
    waiters.expire(1000)
    assert (waiter.tried, waiter.completed, waiter.expired, len(waiters)) == (1, 1, 0, 0)


def test_a_deadline_answers_once_and_not_before() -> None:
    waiters, waiter = Waiters(), Recorder()
    waiters.park(waiter, [A], 100)
    waiters.expire(99)
    assert waiter.expired == 0
    waiters.expire(100)
    waiters.expire(200)
    assert waiter.expired == 1
    assert waiters.next_deadline_ms() is None


def test_a_forgotten_waiter_hears_nothing() -> None:
    waiters, waiter = Waiters(), Recorder()
    waiters.park(waiter, [A], 100)
    waiters.changed(A)
    waiters.forget(waiter)
    waiters.settle(1)
    waiters.expire(100)
    assert (waiter.tried, waiter.expired) == (0, 0)


def test_a_waiter_that_changes_something_when_done_wakes_the_next() -> None:
    waiters, second = Waiters(), Recorder()

    class Chain(Recorder):
        def try_complete(self, now_ms: int) -> bool:
            waiters.changed(B)
            return True

    waiters.park(Chain(), [A], 100)
    waiters.park(second, [B], 100)
    second.ready = True
    waiters.changed(A)
    waiters.settle(1)
    assert second.completed == 1


class Broken(Recorder):
    """Raises whatever is asked of it, and cannot even give up."""

    def try_complete(self, now_ms: int) -> bool:
        raise ValueError("planted")

    def expire(self, now_ms: int) -> None:
        raise ValueError("planted")

    def failed(self, fault: Exception) -> None:
        raise ValueError("planted as well")


def test_a_fault_of_one_costs_no_other_its_change() -> None:
    waiters, first, broken, last = Waiters(), Recorder(), Broken(), Recorder()
    for waiter in (first, broken, last):
        waiter.ready = True
        waiters.park(waiter, [A], 100)
    waiters.changed(A)
    waiters.settle(1)
    assert (first.completed, last.completed, len(waiters)) == (1, 1, 0)


def test_a_fault_of_one_costs_no_other_its_deadline() -> None:
    waiters, first, broken, last = Waiters(), Recorder(), Broken(), Recorder()
    for waiter in (first, broken, last):
        waiters.park(waiter, [A], 100)
    waiters.expire(100)
    assert (first.expired, last.expired, len(waiters)) == (1, 1, 0)


def test_a_partition_that_is_given_up_is_given_up_by_all() -> None:
    class Noting(Recorder):
        def failed(self, fault: Exception) -> None:
            given_up.append(self)

    given_up: list[Recorder] = []
    waiters, first, broken, last = Waiters(), Noting(), Broken(), Noting()
    for waiter in (first, broken, last):
        waiters.park(waiter, [A], 100)
    waiters.give_up(A, ValueError("planted"))
    assert (given_up, len(waiters)) == ([first, last], 0)


def test_a_waiter_that_waits_again_has_the_deadline_of_its_new_wait() -> None:
    """As that of a session does, which stands for one request after the other."""
    waiters, waiter = Waiters(), Recorder()
    waiters.park(waiter, [], 500)
    waiters.forget(waiter)
    waiters.park(waiter, [], 900)
    assert waiters.next_deadline_ms() == 900
    waiters.expire(899)
    assert waiter.expired == 0
    waiters.expire(900)
    assert waiter.expired == 1


def test_another_deadline_leaves_a_waiter_its_partitions_and_its_change() -> None:
    waiters, waiter = Waiters(), Recorder()
    waiters.park(waiter, [A], 10_000)
    waiters.changed(A)
    for turn in range(1000):
        waiters.wait_until(waiter, 2000 - turn)
    assert len(waiters._deadlines) < 200
    waiters.settle(1)
    assert waiter.tried == 1
    waiters.changed(A)
    waiters.settle(2)
    assert waiter.tried == 2
    waiters.expire(1000)
    assert waiter.expired == 0
    waiters.expire(1001)
    assert waiter.expired == 1


def test_deadlines_of_earlier_waits_do_not_pile_up() -> None:
    waiters, waiter = Waiters(), Recorder()
    for turn in range(10_000):
        waiters.park(waiter, [A], 10_000 + turn)
        waiters.forget(waiter)
    waiters.park(waiter, [A], 30_000)
    assert len(waiters._deadlines) < 200
    waiters.expire(29_999)
    assert waiter.expired == 0


def test_deadlines_of_the_departed_do_not_pile_up() -> None:
    waiters = Waiters()
    for _ in range(10_000):
        waiter = Recorder()
        waiters.park(waiter, [A], 10_000)
        waiters.forget(waiter)
    assert len(waiters._deadlines) < 200


@given(st.lists(st.tuples(st.sampled_from(["park", "ready", "change", "time"]), st.integers(0, 4)), max_size=60))
def test_everyone_is_answered_exactly_once_in_the_end(steps: list[tuple[str, int]]) -> None:
    waiters = Waiters()
    parked: list[Recorder] = []
    now = 0
    for action, number in steps:
        if action == "park":
            waiter = Recorder()
            parked.append(waiter)
            waiters.park(waiter, [(A, B, C)[number % 3]], now + number * 10)
        elif action == "ready" and parked:
            parked[number % len(parked)].ready = True
        elif action == "change":
            waiters.changed((A, B, C)[number % 3])
            waiters.settle(now)
        elif action == "time":
            now += number * 7
            waiters.expire(now)
    waiters.expire(now + 1000)
    assert all(waiter.completed + waiter.expired == 1 for waiter in parked)
    assert len(waiters) == 0


def test_a_fault_behind_one_answer_leaves_the_others_marked() -> None:
    waiters, first, second = Waiters(), Recorder(), Recorder()
    for waiter in (first, second):
        waiters.park(waiter, [A], 100)
        waiter.ready = True
    waiters.changed(A)
    plain = waiters.forget

    def broken(_: object) -> None:
        raise ValueError("planted")

    waiters.forget = broken  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="planted"):
        waiters.settle(1)
    waiters.forget = plain  # type: ignore[method-assign]
    waiters.settle(2)
    assert (first.completed, second.completed) == (1, 1)


class SlowRecorder(Recorder):
    """To answer takes a millisecond."""

    def __init__(self, room: CrowdedRoom) -> None:
        super().__init__()
        self.ready = True
        self.room = room

    def try_complete(self, now_ms: int) -> bool:
        self.room.ms += 1
        return super().try_complete(now_ms)

    def expire(self, now_ms: int) -> None:
        self.room.ms += 1
        super().expire(now_ms)


class CrowdedRoom:
    def __init__(self) -> None:
        self.ms = self.calls = 0
        self.waiters = Waiters()
        self.waiters.now_ms = lambda: self.ms
        self.waiters.on_left = self.left
        self.crowd = [SlowRecorder(self) for _ in range(100)]
        for waiter in self.crowd:
            self.waiters.park(waiter, [A], 1000)

    def left(self) -> None:
        self.calls += 1


def test_a_crowd_that_one_record_wakes_has_its_turns() -> None:
    room = CrowdedRoom()
    room.waiters.changed(A)
    turns = 0
    while room.waiters:
        before = sum(waiter.completed for waiter in room.crowd)
        room.waiters.settle(room.ms)
        assert sum(waiter.completed for waiter in room.crowd) - before <= TURN_MS
        turns += 1
        assert room.calls == (turns if room.waiters else turns - 1)
    assert [waiter.tried for waiter in room.crowd] == [1] * 100
    assert turns == 100 // TURN_MS


def test_where_the_clock_stands_still_so_many_are_asked_and_no_more() -> None:
    waiters, crowd = Waiters(), [Recorder() for _ in range(2 * ASKED_A_TURN)]
    waiters.now_ms = lambda: 0
    for waiter in crowd:
        waiter.ready = True
        waiters.park(waiter, [A], 1000)
    waiters.changed(A)
    waiters.settle(0)
    assert len(waiters) == ASKED_A_TURN
    waiters.settle_all(0)
    assert not waiters


def test_a_crowd_that_expires_has_its_turns() -> None:
    room = CrowdedRoom()
    room.ms = 1000
    while (deadline_ms := room.waiters.next_deadline_ms()) is not None:
        assert deadline_ms <= room.ms
        before = sum(waiter.expired for waiter in room.crowd)
        room.waiters.expire(room.ms)
        assert 1 <= sum(waiter.expired for waiter in room.crowd) - before <= TURN_MS
    assert [waiter.expired for waiter in room.crowd] == [1] * 100


def test_who_is_marked_while_others_wait_for_their_turn_comes_behind_them() -> None:
    room = CrowdedRoom()
    room.waiters.changed(A)
    room.waiters.settle(room.ms)
    late = SlowRecorder(room)
    room.waiters.park(late, [B], 1000)
    room.waiters.changed(B)
    while not late.completed:
        room.waiters.settle(room.ms)
    assert all(waiter.completed for waiter in room.crowd)
