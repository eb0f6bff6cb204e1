"""What waits in the store's queue, and whose turn it is.

Requests are served as they came, but that long ones stand in a line of their own and let others go first: before each
of them go as many short requests as it has operations, and not more. So a short one waits for one of them at most,
however many there are, and a long one for about as much work of others as it is itself. Of long ones the shorter is
first, and none waits for ever: each has the number of operations of long ones that were done when it came, and its own
on top. A session's own requests stay in their order; those of the store's session are of many, and have none.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Final

from ottla.coordination.requests import ReadRequest, WriteRequest
from ottla.coordination.sessions import STORE_SESSION

#: Operations from which on a write is long. A broker's own have some; a topic of ten thousand partitions is made by
#: several of thousands.
LONG_OPS: Final = 256

StoreRequest = ReadRequest | WriteRequest


class WaitingRequests:
    def __init__(self) -> None:
        self._short: deque[StoreRequest] = deque()
        #: Short ones that had their turn, ever.
        self._short_taken = 0
        #: (its number, how many came before it, its operations, how many short ones have their turn before it in any
        #: case, the request), a heap.
        self._long: list[tuple[int, int, int, int, StoreRequest]] = []
        self._came = count()
        #: The highest number that had its turn.
        self._work = 0
        #: Short requests that went before the long one that is first.
        self._let_go = 0
        #: The number of each session's last request in the long line: what comes behind stands in that line too, and
        #: has no lower one.
        self._numbers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._short) + len(self._long)

    def add(self, request: StoreRequest, ops: int = 1) -> None:
        """A request that is so many operations."""
        behind = self._numbers.get(request.session_id)
        if behind is None and ops <= LONG_OPS:
            self._short.append(request)
            return
        # A multi of nothing counts too: no two of a session have one number.
        number = max(self._work, behind or 0) + max(ops, 1)
        if request.session_id != STORE_SESSION:
            self._numbers[request.session_id] = number
        after = self._short_taken + self._short_until(request.session_id) if behind is None else 0
        heappush(self._long, (number, next(self._came), ops, after, request))

    def _short_until(self, session_id: int) -> int:
        """How many short ones there are up to the last of a session."""
        if session_id == STORE_SESSION:
            return 0
        return next(
            (
                left
                for left, short in zip(range(len(self._short), 0, -1), reversed(self._short), strict=True)
                if short.session_id == session_id
            ),
            0,
        )

    @property
    def first(self) -> StoreRequest | None:
        if self._is_turn_of_long:
            return self._long[0][-1]
        return self._short[0] if self._short else None

    @property
    def _is_turn_of_long(self) -> bool:
        if not self._long or not self._short:
            return bool(self._long)
        _, _, ops, after, _ = self._long[0]
        return self._let_go >= ops and self._short_taken >= after

    def take(self) -> StoreRequest:
        """The first one."""
        if not self._is_turn_of_long:
            self._let_go += bool(self._long)
            self._short_taken += 1
            return self._short.popleft()
        number, _, _, _, request = heappop(self._long)
        self._work = max(self._work, number)
        self._let_go = 0
        if self._numbers.get(request.session_id) == number:
            del self._numbers[request.session_id]
        return request
