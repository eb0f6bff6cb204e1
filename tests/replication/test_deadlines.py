"""Whoever waits is let go at its deadline, though nobody else talks to the broker and a step of ours fails once."""

from __future__ import annotations

import asyncio

import pytest
from tests.replication.test_flushing import once
from tests.replication.test_waiters import A, B, Recorder

from ottla.ports.memory import memory_ports
from ottla.replication.deadlines import Deadlines
from ottla.replication.waiters import ASKED_A_TURN, Waiters


class DeadlineWorld:
    def __init__(self) -> None:
        self.ports = memory_ports(seed=1, shuffle=False)
        self.loop = self.ports.loop
        self.loop.set_exception_handler(lambda *_: None)
        self.waiters = Waiters()
        self.deadlines = Deadlines(self.waiters, self.ports.clock)

    def run(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def park(self, waiter: Recorder, after_ms: int) -> None:
        async def park() -> None:
            self.waiters.park(waiter, [A], self.ports.clock.monotonic_ms() + after_ms)
            self.deadlines.settle()

        self.loop.run_until_complete(park())


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (Deadlines, "_arm"),
        (Waiters, "settle"),
        (Waiters, "next_deadline_ms"),
        (Waiters, "expire"),
    ],
)
def test_a_fault_leaves_nobody_waiting(owner: type, step: str, behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world, first, late, soon = DeadlineWorld(), Recorder(), Recorder(), Recorder()
    world.park(first, 100)
    world.run(1)
    assert first.expired == 1
    world.park(late, 60_000)
    monkeypatch.setattr(owner, step, once(getattr(owner, step), behind=behind))
    world.park(soon, 1_000)
    world.run(2)
    assert soon.expired == 1
    world.run(60)
    assert late.expired == 1
    assert not world.waiters


def test_a_fault_in_a_round_that_brings_a_change_is_answered_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    world, waiter = DeadlineWorld(), Recorder()
    world.park(waiter, 60_000)
    waiter.ready = True

    async def change() -> None:
        world.waiters.changed(B)
        world.waiters.changed(A)
        world.deadlines.settle()

    with monkeypatch.context() as patch:
        patch.setattr(Waiters, "settle", once(Waiters.settle))
        world.loop.run_until_complete(change())
        world.run(1)
    assert waiter.completed == 1


def test_nothing_is_looked_at_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    world, waiter = DeadlineWorld(), Recorder()
    monkeypatch.setattr(Deadlines, "_arm", once(Deadlines._arm))
    world.park(waiter, 100)
    world.deadlines.close()
    world.run(1)
    assert waiter.expired == 0


@pytest.mark.parametrize("soon_ms", [50, 60_000])
def test_those_who_are_left_for_the_next_turn_have_it_though_another_is_to_be_let_go_sooner(soon_ms: int) -> None:
    world = DeadlineWorld()
    many = [Recorder() for _ in range(2 * ASKED_A_TURN)]
    for waiter in many:
        world.park(waiter, 30_000)
        waiter.ready = True

    async def change() -> None:
        world.waiters.park(Recorder(), [B], world.ports.clock.monotonic_ms() + soon_ms)
        world.waiters.changed(A)
        world.deadlines.settle()

    world.loop.run_until_complete(change())
    world.run(0.01)
    assert sum(waiter.completed for waiter in many) == len(many)


def test_those_who_are_left_for_the_next_turn_have_it_though_a_deadline_passes_before() -> None:
    world = DeadlineWorld()
    world.park(Recorder(), 30_000)
    many = [Recorder() for _ in range(2 * ASKED_A_TURN)]
    for waiter in many:
        world.park(waiter, 60_000)
        waiter.ready = True

    async def change() -> None:
        world.waiters.changed(A)
        world.deadlines.settle()
        world.deadlines._expire()

    world.loop.run_until_complete(change())
    world.run(0.01)
    assert sum(waiter.completed for waiter in many) == len(many)
