"""What waits in the store's queue, and whose turn it is.

Requests are served as they came, but that long ones let others go first. A request has the number of the work that was
done when it came, and a long one as many more as it has operations: so it waits for as much work of others as it is
itself, however many of its kind are before it, and no longer. A session's own requests stay in their order.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Final

from ottla.coordination.requests import ReadRequest, WriteRequest

#: Operations from which on a write is long. A broker's own have some; a topic of ten thousand partitions is made by
#: several of thousands.
LONG_OPS: Final = 256

StoreRequest = ReadRequest | WriteRequest


class WaitingRequests:
    def __init__(self) -> None:
        #: (its number, how many came before it, the request), a heap.
        self._heap: list[tuple[int, int, StoreRequest]] = []
        self._came = count()
        #: Requests that were taken; or more, where a long one was.
        self._work = 0
        #: The number of each session's last long request, while that waits: what comes behind has no lower one.
        self._long: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, request: StoreRequest) -> None:
        number = max(self._work, self._long.get(request.session_id, 0))
        if isinstance(request, WriteRequest) and len(request.ops) > LONG_OPS:
            number += len(request.ops)
            self._long[request.session_id] = number
        heappush(self._heap, (number, next(self._came), request))

    @property
    def first(self) -> StoreRequest | None:
        return self._heap[0][2] if self._heap else None

    def take(self) -> StoreRequest:
        """The first one."""
        number, _, request = heappop(self._heap)
        self._work = max(self._work + 1, number)
        if self._long.get(request.session_id) == number:
            del self._long[request.session_id]
        return request
