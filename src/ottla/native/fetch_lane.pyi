from collections.abc import Callable
from typing import Any, Final, Self

#: What `receive` gives where a request needs no more than to stand in its run.
TAKEN: Final = -1

class FetchRun:
    def __new__(cls) -> Self: ...
    # Requests since the round began.
    def __len__(self) -> int: ...
    # Whether answers may be copied. Where not, lanes take nothing.
    has_room: bool
    def lane(
        self,
        fd: int,
        # The connection: `closed` and `answers` are asked of it.
        peer: Any,
        version: int,
        # What stands before the offset, and behind it.
        request: tuple[bytes, bytes],
        # The policy, and the number that it had when the request was allowed.
        policy: tuple[Any, int],
        # The leader, the leader epoch that the request was fenced with, the log that it had, and what that remembers of
        # producers: where a transaction may be open, nothing is taken.
        leader: tuple[Any, int, Any, Any],
        # The log's places; what knows where an offset lies, what takes note of it, and what looks it up.
        places: tuple[Any, Callable[[int], Any], Callable[[int, Any], None], Callable[[int], Any]],
        # What is added to, and how many bytes of records there must be and may be.
        records: tuple[Any, int, int],
        # The answer: what stands between correlation id and numbers, between numbers and records, behind the records;
        # whether one of the numbers is the log's start, and whether lengths are compact.
        answer: tuple[bytes, bytes, bytes, bool, bool],
        /,
    ) -> FetchLane: ...
    # Sends all answers. What did not leave is returned: whose it is and the rest of it, or None for a fault.
    def answer(self) -> list[tuple[Any, bytes | None]]: ...
    # Forgets all answers. Returns those whose they were.
    def give_up(self) -> list[Any]: ...

class FetchLane:
    # The connection.
    @property
    def token(self) -> Any: ...
    # Always 0: what it takes is answered in its round.
    @property
    def waiting(self) -> int: ...
    # Like a socket's recv_into; TAKEN where the answer stands in the run.
    def receive(self, view: memoryview, /) -> int: ...
    # From now on it fails as a closed socket does.
    def close(self) -> None: ...
