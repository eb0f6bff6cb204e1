"""When sessions run out, for sessions whose owner is at the other end of a connection: time is an argument."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

#: Overdue sessions of one look: each costs a transaction.
OVERDUE_A_LOOK_MAX: Final = 256


class _Lease:
    __slots__ = ("end_ms", "listed_ms", "timeout_ms")

    def __init__(self, timeout_ms: int, end_ms: int) -> None:
        self.timeout_ms = timeout_ms
        #: When it runs out.
        self.end_ms = end_ms
        #: Under which time it stands in the list of ends: never behind `end_ms`.
        self.listed_ms = end_ms


class SessionLeases:
    """Times are milliseconds of whatever clock the caller has."""

    def __init__(self) -> None:
        self._leases: dict[int, _Lease] = {}
        #: (when it may have run out, session), a heap. A touch moves nothing here: when its old end comes, the session
        #: is put back. What is not listed under this time any more is dropped then.
        self._ends: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._leases)

    def grant(self, session_id: int, timeout_ms: int, now_ms: int) -> None:
        lease = self._leases[session_id] = _Lease(timeout_ms, now_ms + timeout_ms)
        self._list(session_id, lease)

    def touch(self, session_id: int, now_ms: int) -> None:
        """The owner was heard of. Nothing to a session without a lease."""
        if lease := self._leases.get(session_id):
            lease.end_ms = now_ms + lease.timeout_ms

    def shorten(self, session_id: int, left_ms: int, now_ms: int) -> None:
        """It runs out in `left_ms` unless it is touched, or sooner where it would have anyway."""
        lease = self._leases.get(session_id)
        if lease is not None and now_ms + left_ms < lease.end_ms:
            lease.end_ms = now_ms + left_ms
            self._list(session_id, lease)

    def drop(self, session_id: int) -> None:
        self._leases.pop(session_id, None)

    def overdue(self, now_ms: int) -> list[int]:
        """Sessions that have run out, in the order in which they did; some of them, where they are very many.

        They stay until they are dropped, touched or granted anew, and are named again until then.
        """
        found: dict[int, None] = {}
        ends = self._ends
        while ends and ends[0][0] <= now_ms and len(found) < OVERDUE_A_LOOK_MAX:
            listed_ms, session_id = heappop(ends)
            lease = self._leases.get(session_id)
            if lease is None or lease.listed_ms != listed_ms or session_id in found:
                continue
            if lease.end_ms <= now_ms:
                found[session_id] = None
            else:
                self._list(session_id, lease)
        for session_id in found:
            self._list(session_id, self._leases[session_id])
        return sorted(found, key=lambda session_id: (self._leases[session_id].end_ms, session_id))

    def _list(self, session_id: int, lease: _Lease) -> None:
        lease.listed_ms = lease.end_ms
        heappush(self._ends, (lease.end_ms, session_id))
