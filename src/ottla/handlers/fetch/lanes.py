"""Fetch requests that compiled lanes have received and recognised: answered together when the round ends.

A lane takes what `FetchMemo` would recognise and `FetchHandler._serve_alike` would answer by a copy, without a step in
the interpreter for each request. A connection gets one with the first request that is answered so, unless it has had
a memo of Produce: then its lane is of that kind, or is to be.
"""

from __future__ import annotations

from collections.abc import Sized

from ottla.handlers.calls.peer import Peer
from ottla.handlers.fetch.memo import FetchMemo
from ottla.native import compiled_fetch_run
from ottla.security.policy import Policy


class FetchLanes:
    def __init__(self, policy: Policy) -> None:
        run = compiled_fetch_run()
        self._run = run() if run is not None else None
        #: What stands in it, which has a length: empty while lanes have taken nothing in this round.
        self.taken: Sized = () if self._run is None else self._run
        self._policy = policy

    def open(self, peer: Peer, memo: FetchMemo) -> None:
        """From the next request on the connection has a lane, where it can have one."""
        memo.has_lane = True  # or cannot have one, and is not asked again
        if self._run is None or peer.produce_memo is not None or (fd := peer.fileno()) < 0:
            return
        lane = memo.lane(self._run, self._policy, fd, peer)
        if lane is not None:
            peer.take_lane(lane)

    def may_copy(self, has_room: bool) -> None:
        """From now on answers may be copied or not."""
        if self._run is not None:
            self._run.has_room = has_room

    def answer(self) -> int:
        """Sends what the lanes have made; says how many requests that were."""
        run = self._run
        assert run is not None
        taken = len(run)
        for peer, rest in run.answer():
            peer.left_over(rest)
        return taken

    def give_up(self) -> list[Peer]:
        """Forgets what the round has of them; returns those that are not answered."""
        return [] if self._run is None else self._run.give_up()
