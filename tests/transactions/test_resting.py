"""Requests that wait until nothing of their transactional id is on its way."""

from __future__ import annotations

import pytest
from tests.transactions.world import ID, A, B, World, producer_of

from ottla.model import ErrorCode
from ottla.transactions import resting
from ottla.transactions.resting import Rest

NONE = ErrorCode.NONE
PATIENCE_MS = 100


class Caller:
    """Waits for an id, and counts how often it is called."""

    def __init__(self, world: World, name: str = ID, patience_ms: int = PATIENCE_MS) -> None:
        self.calls = 0
        self.waits = world.shard.when_at_rest(name, world.clock.monotonic_ms() + patience_ms, self._called)

    def _called(self) -> None:
        self.calls += 1


def ending(world: World) -> tuple[int, int]:
    """A producer whose transaction is decided, and has its markers on their way."""
    producer = producer_of(world.init())
    assert world.add(producer, A) is NONE
    assert world.end(producer).error is NONE
    return producer


def test_it_is_called_when_the_markers_are_written_and_that_is_committed() -> None:
    world = World()
    ending(world)
    caller = Caller(world)
    world.journal.held = True
    world.sent.written()
    assert (caller.waits, caller.calls) == (True, 0)
    world.journal.commit()
    assert caller.calls == 1
    world.advance(10 * PATIENCE_MS)
    assert caller.calls == 1


def test_an_id_at_rest_is_not_waited_for() -> None:
    world = World()
    assert not Caller(world, "unheard-of").waits
    producer = producer_of(world.init())
    assert world.add(producer, A) is NONE
    assert not Caller(world).waits


def test_what_is_written_and_not_committed_is_waited_for() -> None:
    world = World()
    producer = producer_of(world.init())
    world.journal.held = True
    first = world.asks_add(producer, A)
    caller = Caller(world)
    assert world.add(producer, B) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (caller.waits, caller.calls, first.came) == (True, 0, False)
    world.journal.commit()
    assert caller.calls == 1
    assert world.add(producer, A) is NONE


def test_it_is_called_when_its_time_is_over_each_by_itself() -> None:
    world = World()
    ending(world)
    short, long = Caller(world, patience_ms=10), Caller(world, patience_ms=30)
    world.advance(9)
    assert (short.calls, long.calls) == (0, 0)
    world.advance(1)
    assert (short.calls, long.calls) == (1, 0)
    world.advance(20)
    assert (short.calls, long.calls) == (1, 1)
    world.sent.written()
    assert (short.calls, long.calls) == (1, 1)


def test_it_is_called_when_the_partition_is_given_up() -> None:
    world = World()
    ending(world)
    caller, shard = Caller(world), world.shard
    world.move_over()
    assert (caller.calls, len(shard.state.rest)) == (1, 0)
    assert not shard.when_at_rest(ID, PATIENCE_MS, caller._called)


def test_one_that_waits_again_when_it_is_called() -> None:
    """The first of two goes on and writes; the other one waits for that."""
    world = World()
    producer = ending(world)
    until_ms, events = world.clock.monotonic_ms() + PATIENCE_MS, list[str]()

    def go_on() -> None:
        world.journal.held = True  # the journal that commits now goes on after this
        world.asks_add(producer, B)
        events.append("added")

    def wait_again() -> None:
        events.append("called")
        world.shard.when_at_rest(ID, until_ms, lambda: events.append("called again"))

    assert world.shard.when_at_rest(ID, until_ms, go_on)
    assert world.shard.when_at_rest(ID, until_ms, wait_again)
    world.sent.written()
    assert events == ["added", "called", "called again"]
    assert world.transaction().partitions == {B}


def test_more_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for name, count, may in (
        ("WAITING_OF_AN_ID_MAX", 2, [True, True, False]),
        ("WAITING_MAX", 1, [True, False, False]),
    ):
        rest = Rest(world.shard.timers)
        with monkeypatch.context() as patched:
            patched.setattr(resting, name, count)
            assert [rest.wait(ID, PATIENCE_MS, list) for _ in may] == may
        rest.has_come(ID)
        assert len(rest) == 0
