"""When sessions run out, for sessions whose owner is at the other end of a connection: time is an argument."""

from __future__ import annotations


class SessionLeases:
    def __init__(self) -> None:
        #: session -> (timeout, when it runs out), in monotonic milliseconds.
        self._leases: dict[int, tuple[int, int]] = {}

    def grant(self, session_id: int, timeout_ms: int, now_ms: int) -> None:
        self._leases[session_id] = (timeout_ms, now_ms + timeout_ms)

    def touch(self, session_id: int, now_ms: int) -> None:
        """The owner was heard of. Nothing to a session without a lease."""
        if lease := self._leases.get(session_id):
            self._leases[session_id] = (lease[0], now_ms + lease[0])

    def drop(self, session_id: int) -> None:
        self._leases.pop(session_id, None)

    def overdue(self, now_ms: int) -> list[int]:
        """Sessions that have run out, in order of their ids. They stay until they are dropped."""
        return sorted(session_id for session_id, (_, end_ms) in self._leases.items() if end_ms <= now_ms)
