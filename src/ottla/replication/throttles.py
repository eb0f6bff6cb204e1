"""How fast throttled replicas are copied (KIP-73): a rate on either side, and the replicas that it holds for.

A topic names its throttled replicas by `leader.replication.throttled.replicas` and
`follower.replication.throttled.replicas`; the broker's `*.replication.throttled.rate` is for all of them together. One
that is in sync is never throttled: it would leave the in-sync replicas for it.

The rate is that of Kafka: what was counted in the last samples (`replication.quota.window.*`), over the time that they
span. Moves between log directories have one of their own (`alter.log.dirs.replication.quota.window.*`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ottla.ports import Clock

if TYPE_CHECKING:
    from ottla.replication.leader import Leader

#: Kafka's replication.quota.window.num and replication.quota.window.size.seconds by default.
SAMPLES: Final = 11
SAMPLE_MS: Final = 1_000
ALL_REPLICAS: Final = ("*",)
#: Kafka's default of both rates.
NO_LIMIT: Final = 2**63 - 1


class ReplicationQuota:
    """One side's: what was counted, against the rate of the moment."""

    def __init__(
        self, clock: Clock, bytes_a_second: Callable[[], int], samples: int = SAMPLES, sample_ms: int = SAMPLE_MS
    ) -> None:
        self._clock = clock
        #: The configuration's, as it is now.
        self.bytes_a_second = bytes_a_second
        self._sample_ms = sample_ms
        self._window_ms = samples * sample_ms
        #: Begin and bytes of each sample, the oldest first.
        self._samples: deque[list[int]] = deque(maxlen=samples)

    def record(self, size: int) -> None:
        """So much was sent or fetched for a throttled replica."""
        now_ms = self._clock.monotonic_ms()
        samples = self._samples
        if samples and now_ms < samples[-1][0] + self._sample_ms:
            samples[-1][1] += size
        else:
            samples.append([now_ms, size])

    @property
    def is_exceeded(self) -> bool:
        samples, now_ms = self._samples, self._clock.monotonic_ms()
        while samples and samples[0][0] <= now_ms - self._window_ms:
            samples.popleft()
        if not samples:
            return False
        span_ms = max(now_ms - samples[0][0], self._sample_ms)
        return sum(size for _, size in samples) * 1000 > self.bytes_a_second() * span_ms


class LeaderThrottle:
    """The leaders' side: which followers get no records for now, and what the others got."""

    def __init__(self, broker_id: int, clock: Clock) -> None:
        self._broker_id = broker_id
        self.quota = ReplicationQuota(clock, lambda: NO_LIMIT)

    def holds_back(self, leader: Leader, replica: int) -> bool:
        """Whether this follower is to have nothing of what the leader has."""
        return replica not in leader.isr.members and self._names(leader) and self.quota.is_exceeded

    def sent(self, leader: Leader, size: int) -> None:
        if self._names(leader):
            self.quota.record(size)

    def _names(self, leader: Leader) -> bool:
        return names(leader.log.config.leader_throttled_replicas, leader.tp.partition, self._broker_id)


def names(replicas: Sequence[str], partition: int, broker: int) -> bool:
    """Whether a topic's list of throttled replicas has this one."""
    return bool(replicas) and (tuple(replicas) == ALL_REPLICAS or f"{partition}:{broker}" in replicas)
