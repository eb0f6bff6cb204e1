"""Work in steps: what takes long lets others have their turn in its middle.

A broker has one thread, and a frame may carry some hundred thousand elements. Work that grows with what a client sends,
or with what the broker holds, is therefore written as a generator that yields after each small piece: after some ten
microseconds, a hundred at the most. Whoever drives it decides how many pieces follow one another. Between two pieces
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

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

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


def pieces(items: Iterable[T], size: int = PIECE) -> Iterator[tuple[T, ...]]:
    """All items in their order, in tuples of at most `size`."""
    left = iter(items)
    while piece := tuple(islice(left, size)):
        yield piece
