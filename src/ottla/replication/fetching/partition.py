"""One partition that is fetched, from a role to the next: where it stands, and what it waits for.

                     the leader is asked where logs part (leaders before Fetch 12), or what it still has
                ┌──▶ LOOKING_UP ──────────────┐
                │                             ▼
    a role ─────┴──────────────────────▶ FETCHING ◀──── its time has come ───┐
                                             │                               │
                                             ├──── an error ───────────▶ WAITING
                                             ├──── its log is cut ─────▶ CUTTING, until its files are
                                             └──── a fault here ───────▶ OUT, until its role changes

One that is FETCHING is asked for unless it is being flushed (`Follower.may_ask`) or throttled.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from ottla.model import TopicPartition
from ottla.protocol.hot.follower_fetch import AskedRow, TopicKey

if TYPE_CHECKING:
    from ottla.replication.follower import Follower

#: A topic's name or id, and the partition's number.
Key = tuple[TopicKey, int]


class FetchState(Enum):
    LOOKING_UP = "looking up"
    FETCHING = "fetching"
    WAITING = "waiting"
    CUTTING = "cutting"
    OUT = "out"


class FetchedPartition:
    __slots__ = ("due_ms", "failures", "follower", "key", "lag", "state", "tp", "when_cut")

    def __init__(self, follower: Follower) -> None:
        self.tp: TopicPartition = follower.tp
        self.follower = follower
        #: As its leader is asked for it now.
        self.key: Key = self.tp
        self.state = FetchState.FETCHING
        #: While it is WAITING: by the monotonic clock.
        self.due_ms = 0
        #: Errors in a row.
        self.failures = 0
        #: Committed records that are not here yet, as the last answer said; None before one has come.
        self.lag: int | None = None
        #: Called once it is not CUTTING any more, in the same role.
        self.when_cut: Callable[[], None] | None = None

    def anew(self) -> FetchedPartition:
        """For another fetcher: what the former one still hears of this one is void."""
        other = FetchedPartition(self.follower)
        if self.state is FetchState.OUT:
            other.state = FetchState.OUT
        elif self.state is FetchState.WAITING and not self.follower.log.is_rolling:
            other.state, other.due_ms, other.failures = FetchState.WAITING, self.due_ms, self.failures
        return other

    @property
    def is_current(self) -> bool:
        """Whether its role is still the one that it is fetched in."""
        return self.follower.active

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record; -1 where there is none. Raises StorageFault.

        A leader epoch in which this broker led and wrote nothing does not count: no other leader need know it.
        """
        log = self.follower.log
        return log.epochs.epoch_at(log.end_offset - 1)

    def name(self, *, by_id: bool) -> Key:
        self.key = (bytes(self.follower.log.topic_id), self.tp.partition) if by_id else self.tp
        return self.key

    def row(self, bytes_max: int) -> AskedRow:
        """What its leader is asked. Raises StorageFault."""
        follower = self.follower
        log = follower.log
        return (self.tp.partition, follower.epoch, log.end_offset, self.last_epoch, log.start_offset, bytes_max)

    def fetched(self, high_watermark: int) -> None:
        """An answer was taken over."""
        self.failures = 0
        self.lag = max(0, high_watermark - self.follower.log.end_offset)
