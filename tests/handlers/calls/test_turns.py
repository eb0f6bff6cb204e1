"""Long work goes in turns: slices, lines for small and large, pauses, faults, and work that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from ottla.handlers.calls.turns import (
    LARGE_AT_ONCE,
    SMALL_AT_ONCE,
    SMALL_BYTES_MAX,
    STEPS_A_LOOK,
    JobResult,
    Turns,
    behind,
)
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.steps import Steps, at_once, pieces


class Clock:
    """A millisecond passes with each look."""

    def __init__(self) -> None:
        self.ms = 0

    def wall_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        self.ms += 1
        return self.ms


class Gate:
    """What work waits for."""

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Callable[[], None]] = []

    def wait(self, resume: Callable[[], None]) -> None:
        self.waiting.append(resume)

    def let_go(self) -> None:
        self.open = True
        waiting, self.waiting = self.waiting, []
        for resume in waiting:
            resume()


def counting(count: int, seen: list[str], name: str = "") -> Steps[str]:
    for _ in range(count):
        seen.append(name)
        yield
    return name


class Room:
    def __init__(self) -> None:
        self.turns = Turns(Clock())
        self.ended: list[Any] = []
        self.failed: list[Exception] = []

    def begin(self, steps: Generator[Any, None, Any], size: int = 0) -> Any:
        return self.turns.go_on(steps, self.ended.append, self.failed.append, size)

    async def idle(self) -> None:
        for _ in range(10_000):
            if not len(self.turns):
                return
            await asyncio.sleep(0)
        raise AssertionError("it never ends")


@pytest.fixture
def room() -> Room:
    return Room()


def test_small_work_ends_in_its_first_slice(room: Room) -> None:
    assert room.turns.slice(counting(3, [], "a")) == JobResult("a")


def test_a_slice_ends_with_its_time(room: Room) -> None:
    seen: list[str] = []
    assert room.turns.slice(counting(10**6, seen)) is None
    assert len(seen) <= 3 * STEPS_A_LOOK


def test_a_slice_ends_where_the_clock_stands_still(room: Room) -> None:
    room.turns._clock.monotonic_ms = lambda: 0  # type: ignore[method-assign]
    seen: list[str] = []
    assert room.turns.slice(counting(10**6, seen)) is None
    assert len(seen) < 10_000


def test_all_in_progress_have_their_turns(room: Room) -> None:
    seen: list[str] = []

    async def scenario() -> None:
        for name in "abc":
            room.begin(counting(100, seen, name))
        await room.idle()

    asyncio.run(scenario())
    assert sorted(room.ended) == ["a", "b", "c"]
    assert len(set(seen[: 9 * STEPS_A_LOOK])) == 3


def test_no_more_is_begun_than_memory_is_for(room: Room) -> None:
    open_now: set[int] = set()
    most = 0

    def work(number: int) -> Steps[int]:
        nonlocal most
        open_now.add(number)
        most = max(most, len(open_now))
        yield from counting(200, [])
        open_now.discard(number)
        return number

    async def scenario(count: int, size: int) -> None:
        for number in range(count):
            room.begin(work(number), size)
        await room.idle()

    asyncio.run(scenario(3 * SMALL_AT_ONCE, 10))
    assert most == SMALL_AT_ONCE
    most = 0
    asyncio.run(scenario(3 * LARGE_AT_ONCE, SMALL_BYTES_MAX + 1))
    assert most == LARGE_AT_ONCE
    assert len(room.ended) == 3 * (SMALL_AT_ONCE + LARGE_AT_ONCE)


def test_small_ones_do_not_wait_behind_large_ones(room: Room) -> None:
    async def scenario() -> None:
        for _ in range(5):
            room.begin(counting(100_000, [], "large"), SMALL_BYTES_MAX + 1)
        room.begin(counting(100, [], "small"))
        while not room.ended:  # noqa: ASYNC110 - it is the loop's turns that are counted
            await asyncio.sleep(0)
        assert room.ended == ["small"]
        large = room.turns._large
        for job in [*large.begun, *large.waiting]:
            room.turns.give_up(job)

    asyncio.run(scenario())
    assert len(room.turns) == 0


def test_a_fault_ends_its_own_work_alone(room: Room) -> None:
    def broken() -> Steps[None]:
        yield from counting(50, [])
        raise ValueError("planted")

    async def scenario() -> None:
        room.begin(broken())
        room.begin(counting(100, [], "whole"))
        await room.idle()

    asyncio.run(scenario())
    assert [str(each) for each in room.failed] == ["planted"]
    assert room.ended == ["whole"]


def test_what_work_had_gathered_when_it_failed_is_freed_some_at_a_time(room: Room) -> None:
    """A request that takes more memory than it may is refused when it has gathered tens of megabytes."""
    many, most = 20_000, 0
    freed = [0]

    class Counted(OffsetFetchRequestGroup):
        __slots__ = ()

        def __del__(self) -> None:
            freed[0] += 1

    Counted.__slots__ = OffsetFetchRequestGroup.__slots__

    def gathered() -> Steps[None]:
        groups = []
        for number in range(many):
            groups.append(Counted(group_id=str(number)))
            if number % 100 == 0:
                yield
        raise DecodeError("planted")

    failed: list[str] = []

    async def scenario() -> None:
        nonlocal most
        room.turns.go_on(gathered(), room.ended.append, lambda fault: failed.append(str(fault)))
        while len(room.turns):
            before = freed[0]
            await asyncio.sleep(0)
            most = max(most, freed[0] - before)

    asyncio.run(scenario())
    assert len(failed) == 1
    assert freed[0] == many
    assert most <= many // 4


@pytest.mark.parametrize("ends", ["fails", "is given up"])
def test_messages_of_which_only_a_part_was_decoded_are_freed(room: Room, ends: str) -> None:
    """Of a request that is refused in the midst of its elements: the message has no field of them yet."""

    def decoding() -> Steps[None]:
        message = object.__new__(OffsetFetchRequest)
        elements = [object.__new__(OffsetFetchRequestGroup) for _ in range(1_000)]
        yield from counting(50, [])
        if ends == "fails":
            raise DecodeError("planted")
        while elements or message:
            yield

    async def scenario() -> None:
        job = room.begin(decoding())
        await asyncio.sleep(0)
        if ends != "fails":
            room.turns.give_up(job)
        await room.idle()

    asyncio.run(scenario())
    assert [str(each) for each in room.failed] == (["planted"] if ends == "fails" else [])


def test_a_fault_of_freeing_ends_that(room: Room, log_lines: list[str]) -> None:
    class Broken(OffsetFetchRequestGroup):
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            raise ValueError("planted in a part")

    Broken.__slots__ = OffsetFetchRequestGroup.__slots__

    def gathered() -> Steps[None]:
        parts = [Broken(group_id="g") for _ in range(1_000)]
        yield from counting(50, [])
        raise DecodeError(f"planted beside {len(parts)}")

    async def scenario() -> None:
        room.begin(gathered())
        room.begin(counting(500, [], "whole"))
        await room.idle()

    asyncio.run(scenario())
    assert [str(each) for each in room.failed] == ["planted beside 1000"]
    assert room.ended == ["whole"]
    assert any("planted in a part" in line for line in log_lines)


def test_a_fault_of_whoever_takes_the_result(room: Room) -> None:
    def refuse(_: Any) -> None:
        raise ValueError("planted")

    async def scenario() -> None:
        room.turns.go_on(counting(5, []), refuse, room.failed.append)
        room.begin(counting(100, [], "whole"))
        await room.idle()

    asyncio.run(scenario())
    assert [str(each) for each in room.failed] == ["planted"]
    assert room.ended == ["whole"]


def test_a_fault_of_whoever_hears_of_a_fault(room: Room) -> None:
    def broken() -> Steps[None]:
        yield from counting(50, [])
        raise ValueError("planted")

    def deaf(_: Exception) -> None:
        raise ValueError("planted as well")

    async def scenario() -> None:
        room.turns.go_on(broken(), room.ended.append, deaf)
        room.begin(counting(100, [], "whole"))
        await room.idle()

    asyncio.run(scenario())
    assert room.ended == ["whole"]


def test_a_fault_of_what_work_waits_for_ends_that_work_alone(room: Room) -> None:
    class Broken:
        def wait(self, resume: Callable[[], None]) -> None:
            raise ValueError("planted")

    closed = []

    def work() -> Generator[Any, None, None]:
        try:
            yield
            yield Broken()
        finally:
            closed.append(True)

    async def scenario() -> None:
        room.begin(work())
        room.begin(counting(100, [], "whole"))
        await room.idle()

    asyncio.run(scenario())
    assert [str(each) for each in room.failed] == ["planted"]
    assert room.ended == ["whole"]
    assert closed == [True]


def test_a_cancelled_coroutine_holds_up_no_other_work(room: Room) -> None:
    """It is cancelled in the turn of the loop in which its work ends."""

    async def scenario() -> None:
        def ends() -> Steps[None]:
            yield from counting(5000, [])
            task.cancel()

        task = asyncio.ensure_future(room.turns.to_end(ends()))
        await asyncio.sleep(0)
        room.begin(counting(10_000, [], "whole"))
        await asyncio.gather(task, return_exceptions=True)
        await room.idle()

    asyncio.run(scenario())
    assert room.ended == ["whole"]
    assert not room.failed


def test_work_that_pauses_takes_nobody_s_place(room: Room) -> None:
    gate = Gate()

    def pausing() -> Generator[Any, None, str]:
        yield
        while not gate.open:
            yield gate
        return "paused"

    async def scenario() -> None:
        for _ in range(LARGE_AT_ONCE):
            room.begin(pausing(), SMALL_BYTES_MAX + 1)
        room.begin(counting(100, [], "other"), SMALL_BYTES_MAX + 1)
        await room.idle()
        assert room.ended == ["other"]
        gate.let_go()
        await room.idle()

    asyncio.run(scenario())
    assert room.ended == ["other", *["paused"] * LARGE_AT_ONCE]


@pytest.mark.parametrize("paused", [False, True])
def test_what_is_given_up_is_closed_and_calls_nobody(room: Room, *, paused: bool) -> None:
    gate, closed = Gate(), []

    def work() -> Generator[Any, None, None]:
        try:
            while True:
                yield gate if paused else None
        finally:
            closed.append(True)

    async def scenario() -> None:
        job = room.begin(work())
        await asyncio.sleep(0)
        room.turns.give_up(job)
        gate.let_go()
        await room.idle()
        room.turns.give_up(job)

    asyncio.run(scenario())
    assert closed == [True]
    assert not room.ended
    assert not room.failed


def test_work_may_give_itself_up(room: Room) -> None:
    """One of its steps ends the connection that it is for."""
    closed = []

    def work() -> Steps[None]:
        try:
            yield from counting(5000, [])
            room.turns.give_up(job)
            yield from counting(10**9, [])
        finally:
            closed.append(True)

    async def scenario() -> None:
        nonlocal job
        job = room.begin(work())
        room.begin(counting(100, [], "whole"))
        await room.idle()

    job: Any = None
    asyncio.run(scenario())
    assert (room.ended, room.failed, closed) == (["whole"], [], [True])


def test_a_coroutine_waits_for_the_result(room: Room) -> None:
    async def scenario() -> list[str]:
        return [await room.turns.to_end(counting(count, [], str(count))) for count in (1, 500)]

    assert asyncio.run(scenario()) == ["1", "500"]


def test_a_coroutine_that_is_cancelled_gives_its_work_up(room: Room) -> None:
    async def scenario() -> None:
        task = asyncio.ensure_future(room.turns.to_end(counting(10**9, [])))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert len(room.turns) == 0


def test_pieces_and_at_once() -> None:
    assert list(pieces(range(5), 2)) == [(0, 1), (2, 3), (4,)]
    assert list(pieces([], 2)) == []
    assert at_once(counting(3, [], "a")) == "a"


class Held(OffsetFetchRequestGroup):
    """An element of a long request that counts how many of it are freed."""

    __slots__ = ()
    freed = 0

    def __del__(self) -> None:
        Held.freed += 1


Held.__slots__ = OffsetFetchRequestGroup.__slots__


def long_work(count: int) -> Steps[None]:
    """A driver of its own, as requests have: what is gathered stands in the frames of several generators."""

    def decoded() -> Steps[None]:
        request = OffsetFetchRequest(groups=[Held(group_id="g") for _ in range(count)])
        answered: list[Held] = []
        by_name: dict[int, Held] = {}
        yield
        for number in range(count):
            answered.append(Held(group_id="a"))
            by_name[number] = Held(group_id="b")
            if number % 64 == 0:
                yield
        while request is not None:
            yield

    def driven(steps: Steps[None]) -> Steps[None]:
        while True:
            yield next(steps)

    yield from driven(decoded())


async def freed_a_turn(room: Room) -> list[int]:
    freed = []
    while len(room.turns):
        before = Held.freed
        await asyncio.sleep(0)
        freed.append(Held.freed - before)
    return freed


@pytest.mark.parametrize("size", [0, SMALL_BYTES_MAX + 1])
def test_what_work_has_gathered_is_freed_in_turns_when_it_is_given_up(room: Room, size: int) -> None:
    count = 20_000

    async def scenario() -> list[int]:
        job = room.begin(long_work(count), size)
        for _ in range(count // 64):
            await asyncio.sleep(0)
        Held.freed = 0
        room.turns.give_up(job)
        del job
        assert Held.freed == 0
        return await freed_a_turn(room)

    freed = asyncio.run(scenario())
    assert Held.freed == 3 * count
    assert max(freed) <= 3 * count // 4
    assert room.ended == room.failed == []


@pytest.mark.parametrize("ends", ["its own frame", "a frame that it waits for", "the names of a closure"])
def test_what_work_has_gathered_is_freed_in_turns_when_it_has_ended(room: Room, ends: str) -> None:
    """A handler returns its answer, and all else that it had gathered goes with its frame."""
    count = 40_000

    def gathered() -> Steps[int]:
        asked: dict[int, Held] = {}
        nested = [(1, [Held(group_id="n") for _ in range(count)])]
        for number in range(count):
            asked[number] = Held(group_id="a")
            if number % 64 == 0:
                yield

        def size() -> int:
            return len(asked) + len(nested)

        if ends == "the names of a closure":
            yield
            return size()
        return len(asked) + len(nested)

    def driven() -> Steps[int]:
        found = yield from gathered()
        yield from counting(5_000, [])
        return found

    async def scenario() -> list[int]:
        Held.freed = 0
        room.begin(driven() if ends == "a frame that it waits for" else gathered())
        return await freed_a_turn(room)

    freed = asyncio.run(scenario())
    assert room.ended == [count + 1]
    assert Held.freed == 2 * count
    assert max(freed) <= count // 2


def test_work_that_gives_itself_up_is_freed_in_turns_too(room: Room) -> None:
    count = 20_000
    jobs: list[Any] = []

    def working() -> Steps[None]:
        held = [Held(group_id="g") for _ in range(count)]
        yield
        Held.freed = 0
        room.turns.give_up(jobs.pop())
        while held:
            yield

    async def scenario() -> list[int]:
        jobs.append(room.begin(working()))
        return await freed_a_turn(room)

    freed = asyncio.run(scenario())
    assert Held.freed == count
    assert max(freed) < count


def test_a_pause_that_ends_the_first_slice_is_waited_for() -> None:
    room, gate = Room(), Gate()

    def waiting() -> Generator[Any, None, str]:
        while not gate.open:
            yield gate
        return "went on"

    async def work() -> None:
        steps = waiting()
        room.begin(behind(room.turns.slice(steps), steps))  # type: ignore[arg-type]
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(gate.waiting) == 1
        assert room.ended == []
        gate.let_go()
        for _ in range(5):
            await asyncio.sleep(0)
        assert room.ended == ["went on"]

    asyncio.run(work())
