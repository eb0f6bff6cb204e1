"""Long work of a coordinator: some of it one after another, the rest side by side."""

from __future__ import annotations

import asyncio

from ottla.coordinators.long_work import LongWork
from ottla.steps import Steps


def work(name: str, steps: int, done: list[str]) -> Steps[None]:
    for _ in range(steps):
        done.append(name)
        yield


def broken(done: list[str]) -> Steps[None]:
    done.append("broken")
    yield
    raise ZeroDivisionError


def run(begin: object, turns: int = 1_000) -> list[str]:
    done: list[str] = []

    async def main() -> None:
        long_work = LongWork(lambda: 0)
        begin(long_work, done)  # type: ignore[operator]
        assert not done  # whoever hands it over goes on first
        for _ in range(turns):
            await asyncio.sleep(0)
        await long_work.close()

    asyncio.run(main())
    return done


def test_work_side_by_side_goes_by_steps() -> None:
    def begin(long_work: LongWork, done: list[str]) -> None:
        long_work.side_by_side(work("a", 100, done))
        long_work.side_by_side(work("b", 3, done))

    done = run(begin)
    assert done[:6] == ["a", "b"] * 3
    assert len(done) == 103


def test_work_one_by_one_ends_before_the_next_begins_and_holds_up_nothing_else() -> None:
    def begin(long_work: LongWork, done: list[str]) -> None:
        long_work.one_by_one(work("first", 500, done))
        long_work.one_by_one(work("second", 1, done))
        long_work.side_by_side(work("beside", 5, done))

    done = run(begin)
    assert done.index("second") == len(done) - 1
    assert max(at for at, name in enumerate(done) if name == "beside") < 12


def test_a_fault_ends_what_it_belongs_to_and_nothing_else() -> None:
    def begin(long_work: LongWork, done: list[str]) -> None:
        long_work.side_by_side(broken(done))
        long_work.one_by_one(broken(done))
        long_work.side_by_side(work("other", 10, done))
        long_work.one_by_one(work("next", 10, done))

    done = run(begin)
    assert done.count("other") == done.count("next") == 10


def test_clients_that_are_being_answered_are_answered_at_the_end() -> None:
    def begin(long_work: LongWork, done: list[str]) -> None:
        long_work.side_by_side(work("answer", 1_000, done))
        long_work.one_by_one(work("target", 1_000, done))

    done = run(begin, turns=2)
    assert done.count("answer") == 1_000
    assert done.count("target") < 1_000
