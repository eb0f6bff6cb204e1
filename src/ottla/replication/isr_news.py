"""What the log says of in-sync sets: one line for all partitions that have changed alike, whose names are in `debug`.

A follower that dies or comes back changes as many sets as it has partitions, within milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla import logs
from ottla.model import TopicPartition

log_event = logs.logger("replication")

_LAG: Final = "followers have not caught up in time and leave the in-sync replicas"
_CHANGE: Final = "the in-sync replicas have changed"


class IsrNews:
    def __init__(self) -> None:
        self._lagging: dict[tuple[int, ...], list[TopicPartition]] = {}
        #: By the replicas that have joined and those that have left.
        self._changed: dict[tuple[tuple[int, ...], tuple[int, ...]], list[TopicPartition]] = {}

    def lag(self, tp: TopicPartition, followers: Iterable[int], end: int) -> None:
        late = tuple(sorted(followers))
        log_event.debug(_LAG, partition=tp, followers=list(late), end=end)
        self._lagging.setdefault(late, []).append(tp)

    def changed(self, tp: TopicPartition, before: frozenset[int], after: frozenset[int]) -> None:
        log_event.debug(_CHANGE, partition=tp, isr=sorted(after))
        joined, left = tuple(sorted(after - before)), tuple(sorted(before - after))
        self._changed.setdefault((joined, left), []).append(tp)

    def say_lag(self) -> None:
        for followers, partitions in self._lagging.items():
            log_event.info(_LAG, followers=list(followers), **_named(partitions))
        self._lagging.clear()

    def say_changes(self) -> None:
        for (joined, left), partitions in self._changed.items():
            log_event.info(_CHANGE, joined=list(joined), left=list(left), **_named(partitions))
        self._changed.clear()


def _named(partitions: Sequence[TopicPartition]) -> dict[str, object]:
    return {"partitions": len(partitions), "first": partitions[0]}
