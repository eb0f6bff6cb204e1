"""Who led each partition and who was in sync, since this broker was started: what `ottla why` shows of the past.

Every broker hears of every change, so any of them can say it, whoever the controller is or was. Nothing of it is kept
on a disk: the present is in the tree, and where leaderships began is in the logs (leader epochs). It has two bounds:
the changes of one partition, so that one that goes to and fro does not take the place of all others, and those of all
partitions, so that it stays small; the partition that has been quiet for longest is forgotten first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.metadata.updates import PartitionState

#: Of one partition: an hour of what a broker that dies and comes back each ten minutes does to it.
CHANGES_MAX: Final = 24
#: Of all: 5 MB. A change that every partition of a large cluster takes part in may push out what was before.
TOTAL_MAX: Final = 20_000
#: Of the state that was there when the broker began to look: since when it is so nobody knows.
BEFORE: Final = -1


class SeenChange(NamedTuple):
    #: By this broker's clock, when it heard of it; BEFORE of the state before the first change.
    time_ms: int
    state: PartitionState


class PartitionHistory:
    def __init__(self, now_ms: Callable[[], int], total_max: int = TOTAL_MAX) -> None:
        self._now_ms = now_ms
        self._total_max = total_max
        #: By topic and partition, those that changed last at the end. A topic that was made anew begins anew.
        self._changes: dict[tuple[str, int], deque[SeenChange]] = {}
        #: Of all of them together. 0 <= total <= total_max
        self._total = 0

    def of(self, topic: str, partition: int) -> Sequence[SeenChange]:
        """In order; empty where nothing has changed."""
        return tuple(self._changes.get((topic, partition), ()))

    def changed(self, before: PartitionState, after: PartitionState) -> None:
        if (before.leader, before.leader_epoch, before.isr, before.replicas) == (
            after.leader,
            after.leader_epoch,
            after.isr,
            after.replicas,
        ):
            return
        key = (after.topic, after.partition)
        known = self._changes.pop(key, None)
        if known is None or known[-1].state.topic_id != after.topic_id:
            self._total -= len(known or ())
            known = deque([SeenChange(BEFORE, before)])
            self._total += 1
        elif len(known) == CHANGES_MAX:
            known.popleft()
            self._total -= 1
        known.append(SeenChange(self._now_ms(), after))
        self._total += 1
        self._changes[key] = known
        while self._total > self._total_max:
            self._total -= len(self._changes.pop(next(iter(self._changes))))
