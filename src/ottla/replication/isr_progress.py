"""How far one follower is, as far as its leader knows: from what it asks for, and when it asked.

A follower that asks for 5 has everything below 5. It is caught up at a moment at which it has all that the leader has.
One that fetches without rest from a leader that is written to without rest never has that, so a fetch also counts that
reaches where the leader's log ended at the fetch before: then the follower was caught up at that earlier moment.

A fetch session asks for each of its partitions with each of its requests, those included that it does not name because
nothing has changed. What it shows of them is when it asked: `beat`, which all partitions of a session share. A follower
that has all that there is asks for that again with each beat.
"""

from __future__ import annotations

from typing import Final

#: Of a follower that has not been heard of since the leader took its role on.
NEVER: Final = -(2**62)


class Beat:
    """When a fetch session was last heard of."""

    __slots__ = ("ms",)

    def __init__(self, ms: int) -> None:
        self.ms = ms


class FollowerProgress:
    __slots__ = (
        *("_beat", "_caught_up_ms", "_rests", "broker_epoch", "end", "fetched_ms", "id", "joins", "leader_end"),
        *("answered_watermark", "log_start", "refused_until_ms"),
    )

    def __init__(self, replica: int, now_ms: int = NEVER) -> None:
        self.id = replica
        #: The end of what it has; 0 until it asks: it may have nothing.
        self.end = 0
        #: Where its log begins, as it last said; -1 until it asks.
        self.log_start = -1
        #: When it last asked, and where the leader's log ended then.
        self.fetched_ms = NEVER
        self.leader_end = 2**63
        #: The registration that it fetches under; -1 where its requests do not say.
        self.broker_epoch = -1
        #: Whether it is on its way into the ISR, so that the high watermark waits for it.
        self.joins = False
        #: The leader's watermark as it was last answered.
        self.answered_watermark = 0
        #: The controller has not taken it as a member, and is not asked again before.
        self.refused_until_ms = NEVER
        #: A member counts as caught up from the beginning, or it would have to leave before it could ask.
        self._caught_up_ms = now_ms
        self._beat: Beat | None = None
        #: It has all that there is, since its last fetch.
        self._rests = False

    def fetched(self, end: int, leader_end: int, now_ms: int) -> None:
        """It asks for `end`, and the leader's log ends at `leader_end`."""
        if end >= leader_end:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
        elif end >= self.leader_end:
            self._caught_up_ms = max(self._caught_up_ms, self.fetched_ms)
        self.end, self.leader_end, self.fetched_ms = end, leader_end, now_ms
        self._rests = end >= leader_end

    def admitted(self, now_ms: int) -> None:
        """It is a member from now on: its time to lag begins."""
        self._caught_up_ms = max(self._caught_up_ms, now_ms)

    @property
    def last_fetch_ms(self) -> int:
        return self.fetched_ms if self._beat is None else max(self.fetched_ms, self._beat.ms)

    def follows_beat(self, beat: Beat | None) -> None:
        """Its session asks again for what it asked for last, with each beat."""
        if beat is not self._beat:
            self.leader_moved()
            self._beat = beat

    def leader_moved(self) -> None:
        """The leader's log is longer than it was: up to the last beat before that the follower had all of it."""
        if self._rests:
            self._caught_up_ms = self.caught_up_ms()
            self._rests = False

    def caught_up_ms(self) -> int:
        """When it last had all that the leader had."""
        if self._rests and self._beat is not None:
            return max(self._caught_up_ms, self._beat.ms)
        return self._caught_up_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.end == leader_end or now_ms - self.caught_up_ms() <= lag_ms_max
