"""Work in steps, and what drives it: at once, or a few steps in each turn of the loop with workers for what blocks."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable

import pytest

from ottla.ports.memory.loop import VirtualLoop
from ottla.ports.memory.workers import MemoryWorkers
from ottla.steps import STEPS_A_TURN, DiskSteps, Work, at_once, counted, done_at_once, in_turns, taken


class Refused(Exception):
    pass


def refuse() -> None:
    raise Refused


def job(order: list[str], work: Callable[[], object]) -> DiskSteps[str]:
    order.append("begun")
    yield None
    try:
        yield work
    except Refused:
        order.append("refused")
    yield None
    return "done"


def still() -> int:
    """A clock as in a simulation, while nothing waits."""
    return 0


def run(steps: DiskSteps[str], order: list[str]) -> str:
    loop = VirtualLoop()
    workers = MemoryWorkers(loop, 1)

    async def in_worker(work: Work) -> None:
        order.append("worker")
        await workers.thread(work)

    try:
        return loop.run_until_complete(in_turns(steps, still, in_worker))
    finally:
        loop.close()


def test_what_blocks_is_given_to_workers_and_what_it_raises_comes_back() -> None:
    for work, after in ((lambda: None, []), (refuse, ["refused"])):
        order: list[str] = []
        assert run(job(order, work), order) == "done"
        assert order == ["begun", "worker", *after]
        order.clear()
        assert done_at_once(job(order, work)) == "done"
        assert order == ["begun", *after]


def test_what_is_not_caught_ends_the_job() -> None:
    def fails() -> DiskSteps[str]:
        yield refuse
        return "never"

    with pytest.raises(Refused):
        run(fails(), [])
    with pytest.raises(Refused):
        done_at_once(fails())


def test_others_have_their_turn_between_the_steps() -> None:
    loop = VirtualLoop()
    turns = 0

    def steps() -> DiskSteps[int]:
        for _ in range(10 * STEPS_A_TURN):
            yield None
        return turns

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both() -> int:
        beside = asyncio.ensure_future(other())
        found = await in_turns(steps(), still)
        beside.cancel()
        return found

    assert loop.run_until_complete(both()) >= 9
    loop.close()


def test_counted_in_the_order_of_the_first_times() -> None:
    assert list(at_once(counted("abracadabra")).items()) == [("a", 5), ("b", 2), ("r", 2), ("c", 1), ("d", 1)]


def test_what_is_taken_comes_in_order_and_leaves_its_list() -> None:
    items = list(range(7))
    left = []
    seen = []
    for piece in taken(items, 3):
        seen.append(piece)
        left.append(len(items))
    assert seen == [[0, 1, 2], [3, 4, 5], [6]]
    assert left == [4, 1, 0]
    assert list(taken([])) == []


def test_what_a_long_job_holds_is_kept_from_the_collector() -> None:
    held: list[list[int]] = []
    looked_through: list[int] = []
    here = threading.current_thread()

    def fill() -> DiskSteps[str]:
        for _ in range(100 * STEPS_A_TURN):
            held.append([len(held)])
            yield None
        return "done"

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start" and threading.current_thread() is here:
            looked_through.append(about["generation"])

    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    # Two hundred of the youngest; what other threads make of them within a turn does not come to forty.
    gc.set_threshold(STEPS_A_TURN // 2, 40, 4)
    gc.callbacks.append(note)
    try:
        assert run(fill(), []) == "done"
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
    # In one turn a few of the youngest are; nothing is looked through a second time.
    assert max(looked_through) == 0
    assert gc.get_freeze_count() <= frozen
