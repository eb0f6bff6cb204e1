"""Deadlines: each is called once at its time, wherever it was moved to before."""

from __future__ import annotations

from random import Random

import pytest
from tests.searches import seeds

from ottla.coordinators.caller import Now
from ottla.coordinators.timers import LOOKS_AT_ONCE_MAX, Timers


def at(ms: int) -> Now:
    return Now(0, ms)


class Called:
    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.names: list[str] = []

    def set(self, name: str, when_ms: int) -> None:
        self.timers.set(name, when_ms, lambda _: self.names.append(name))


@pytest.fixture
def called() -> Called:
    return Called(Timers())


def test_due_at_its_moment_and_not_before(called: Called) -> None:
    called.set("a", 10)
    called.timers.expire(at(9))
    assert called.names == []
    called.timers.expire(at(10))
    called.timers.expire(at(11))
    assert called.names == ["a"]
    assert len(called.timers) == 0
    assert called.timers.next_deadline_ms() is None


def test_in_the_order_of_their_moments(called: Called) -> None:
    for name, when in (("c", 30), ("a", 10), ("b", 20), ("d", 30)):
        called.set(name, when)
    called.timers.expire(at(30))
    assert called.names == ["a", "b", "c", "d"]


def test_put_off_and_brought_forward(called: Called) -> None:
    called.set("later", 10)
    called.set("sooner", 50)
    called.timers.put_off("later", 40)
    called.set("sooner", 20)
    called.timers.expire(at(30))
    assert called.names == ["sooner"]
    called.timers.expire(at(50))
    assert called.names == ["sooner", "later"]


def test_moved_forth_and_back_is_called_once(called: Called) -> None:
    called.set("a", 10)
    called.set("a", 5)
    called.set("a", 10)
    called.timers.expire(at(7))
    assert called.names == []
    called.timers.expire(at(20))
    assert called.names == ["a"]


def test_cancelled_is_not_called_and_may_be_set_again(called: Called) -> None:
    called.set("a", 10)
    called.timers.cancel("a")
    called.timers.cancel("a")
    assert "a" not in called.timers
    called.set("a", 20)
    called.timers.expire(at(15))
    assert called.names == []
    called.timers.expire(at(20))
    assert called.names == ["a"]


@pytest.mark.parametrize("after_ms", [0, 1])
def test_one_that_sets_itself_again_waits_for_its_turn(after_ms: int) -> None:
    timers, called = Timers(), []

    def again(now: Now) -> None:
        called.append("a")
        timers.set("a", now.monotonic_ms + after_ms, again)

    timers.set("a", 0, again)
    timers.set("b", 0, lambda _: called.append("b"))
    for ms in range(3):
        timers.expire(at(ms))
    assert called == ["a", "b", "a", "a"]
    assert timers.next_deadline_ms() == 2 + after_ms


def test_one_that_fails_keeps_nobody_from_their_turn(called: Called) -> None:
    def again(now: Now) -> None:
        called.set("a", now.monotonic_ms)

    def fails(_: Now) -> None:
        raise ValueError("a fault of ours")

    called.timers.set("a", 8, again)
    called.set("b", 9)
    called.timers.set("c", 10, fails)
    called.set("d", 10)
    with pytest.raises(ValueError, match="of ours"):
        called.timers.expire(at(10))
    assert called.names == ["b"]
    called.timers.expire(at(10))
    assert sorted(called.names) == ["a", "b", "d"]
    assert len(called.timers) == 0


def test_who_waits_is_told_of_a_sooner_moment_only() -> None:
    timers, told = Timers(), []
    timers.on_sooner = told.append
    for name, when in (("a", 30), ("b", 40), ("c", 20), ("a", 10)):
        timers.set(name, when, lambda _: None)
    timers.put_off("a", 50)
    assert told == [30, 20, 10]


def test_cancelled_ones_do_not_pile_up() -> None:
    timers = Timers()
    for number in range(10_000):
        timers.set(number, 1_000_000, lambda _: None)
        timers.cancel(number)
    assert len(timers._heap) < 200


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_like_a_plain_dictionary(seed: int) -> None:
    random, timers, called = Random(seed), Timers(), []
    model: dict[int, int] = {}
    now = 0
    for _ in range(500):
        key = random.randrange(8)
        match random.randrange(4):
            case 0:
                model[key] = now + random.randrange(20)
                timers.set(key, model[key], lambda _, key=key: called.append(key))
            case 1:
                if key in model:
                    model[key] = now + random.randrange(20)
                timers.put_off(key, model.get(key, now + 5))
            case 2:
                model.pop(key, None)
                timers.cancel(key)
            case _:
                now += random.randrange(5)
                due = {key for key, when in model.items() if when <= now}
                timers.expire(at(now))
                assert sorted(called) == sorted(due)
                called.clear()
                for key in due:
                    del model[key]
        assert len(timers) == len(model)


def test_timers_that_were_put_off_are_looked_at_some_at_a_time() -> None:
    timers = Timers()
    called: list[int] = []
    for number in range(3 * LOOKS_AT_ONCE_MAX):
        timers.set(number, 10, lambda _, number=number: called.append(number))
        timers.put_off(number, 100)
    looks = 0
    while (due := timers.next_deadline_ms()) is not None and due <= 10:
        assert timers.expire(Now(0, 10)) == 0
        looks += 1
    assert looks == 3
    assert timers.next_deadline_ms() == 100
    while timers.expire(Now(0, 100)):
        pass
    assert len(called) == 3 * LOOKS_AT_ONCE_MAX
