"""Work in steps: what takes long lets others have their turn in its middle.

A broker has one thread, and a frame may carry some hundred thousand elements. Work that grows with what a client sends,
or with what the broker holds, is therefore written as a generator that yields after each small piece: after some ten
microseconds, a hundred at the most. Its driver decides how many pieces follow one another. Between two pieces
anything may happen: what was read before a `yield` is read again behind it, or did not matter.

    def handle(call: Call, request: DeleteGroupsRequest) -> Steps[DeleteGroupsResponse]:
        results = []
        for group in request.groups:
            results.append(deleted(call, group))
            yield
        return DeleteGroupsResponse(results=results)

Pieces that are much smaller than that are grouped: `pieces(items)` yields them in tuples, one tuple a step.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

#: Yields between two pieces, returns the result.
Steps = Generator[None, None, T]

#: Elements of a microsecond or less that make one step.
PIECE: Final = 64


def at_once(steps: Steps[T]) -> T:
    """The result of work that nobody waits behind: in tests, and where it is known to be small."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def counted(items: Iterable[K]) -> Steps[dict[K, int]]:
    """How often each stands among them, in the order of their first times."""
    times: dict[K, int] = {}
    for piece in pieces(items):
        for item in piece:
            times[item] = times.get(item, 0) + 1
        yield
    return times


def pieces(items: Iterable[T], size: int = PIECE) -> Iterator[tuple[T, ...]]:
    """All items in their order, in tuples of at most `size`."""
    left = iter(items)
    while piece := tuple(islice(left, size)):
        yield piece


def taken(items: list[T], size: int = PIECE) -> Iterator[list[T]]:
    """All items in their order, in lists of at most `size`; each is taken out of `items`, which is empty in the end.

    What was asked for need not be held beside the whole of its answer.
    """
    items.reverse()
    while items:
        piece = items[-size:]
        del items[-size:]
        piece.reverse()
        yield piece


def emptied(items: list[Any], size: int = PIECE) -> Steps[None]:
    """Lets go of all items, which nobody else has: each may be the last that holds many more."""
    while items:
        del items[-size:]
        yield


#: Names that are sorted at once: half a millisecond.
_NAMES_A_RUN: Final = 1_024


def in_order_of_names(names: Iterable[str]) -> Steps[list[str]]:
    """There may be hundreds of thousands: they are sorted in runs, and the runs merged."""
    runs: list[list[str]] = []
    for run in pieces(names, _NAMES_A_RUN):
        runs.append(sorted(run))
        yield
    if len(runs) == 1:
        return runs[0]
    in_order: list[str] = []
    for piece in pieces(merge(*runs)):
        in_order += piece
        yield
    return in_order


#: Something that blocks, for a worker.
Work = Callable[[], object]

#: The same with work for workers between: what it yields is None where others may have their turn, or something that
#: blocks and has to be done before the next step. What that raises is raised at the `yield`.
DiskSteps = Generator[Work | None, None, T]


def done_at_once(steps: DiskSteps[T]) -> T:
    """As `at_once`, with the caller waiting for what blocks."""
    try:
        work = next(steps)
        while True:
            if work is None:
                work = next(steps)
                continue
            try:
                work()
            except Exception as fault:
                work = steps.throw(fault)
            else:
                work = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


#: A third threshold of the collector of garbage with which it never looks through everything by itself.
NEVER: Final = 1 << 30


def keep_from_collector() -> None:
    """Between two turns of long work: the collector would look through what it holds in one piece.

    That is 60 ms for what ten thousand partitions take. To keep everything from it takes no time, and what is used no
    more goes as ever.
    """
    gc.freeze()


def give_to_collector() -> None:
    """Long work has ended.

    In a broker all is looked through at rest only (`broker/garbage.py`), and what is kept stays so until then: among it
    is all that the start has made, and nothing tells the one from the other.
    """
    if gc.get_threshold()[2] < NEVER:
        gc.unfreeze()


#: How long an owner of its task goes on before it lets others have their turn: by a clock of milliseconds, between one
#: and this.
TURN_MS: Final = 2
#: Steps in one turn at most: the clock of a simulation stands still meanwhile.
STEPS_A_TURN: Final = 64


async def in_turns(
    steps: DiskSteps[T], now_ms: Callable[[], int], run: Callable[[Work], Awaitable[object]] | None = None
) -> T:
    """Does all steps in this task, a few in each turn of the loop, and has what blocks done by `run`."""
    from asyncio import sleep  # 90 ms to import: a verb that only reads files does without

    ends_ms, left, is_long = now_ms() + TURN_MS, STEPS_A_TURN, False
    try:
        work = next(steps)
        while True:
            if work is None:
                left -= 1
                if not left or now_ms() >= ends_ms:
                    is_long = True
                    keep_from_collector()
                    await sleep(0)
                    ends_ms, left = now_ms() + TURN_MS, STEPS_A_TURN
                work = next(steps)
                continue
            assert run is not None
            try:
                await run(work)
            except Exception as fault:
                work = steps.throw(fault)
            else:
                work = next(steps)
            ends_ms, left = now_ms() + TURN_MS, STEPS_A_TURN
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
        if is_long:
            give_to_collector()


def is_stray(fault: BaseException) -> bool:
    """Whether it is a cancellation that was not meant for this task: something that the task waited for was cancelled.

    A task that works for others then fails in that one thing and goes on.
    """
    from asyncio import CancelledError, current_task

    task = current_task()
    return isinstance(fault, CancelledError) and task is not None and not task.cancelling()
