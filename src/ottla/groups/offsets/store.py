"""All offsets that the groups of one shard have committed.

An offset is kept as the bytes of its record: that is what a commit makes anyhow and what a load finds, it takes eighty
bytes instead of three hundred, and the garbage collector need not look at it. A caller that needs its fields reads
it with `read_offset_value`.

Offsets of a transaction wait aside until its marker comes. What was written after them and has taken effect before
that is newer, and wins: then the transaction's offset is only remembered as open, because readers are in doubt until
its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sys import intern
from typing import Final, NamedTuple

from ottla.steps import Steps

_NOTHING: Final[Mapping[str, dict[int, bytes]]] = {}

#: Groups whose offsets are let go of in one step.
GROUPS_A_STEP: Final = 16

_Place = tuple[str, str, int]


class _PendingOffset(NamedTuple):
    #: Which was written first, of two transactions' offsets of one partition.
    number: int
    #: None once something newer has taken effect.
    value: bytes | None


class OffsetStore:
    __slots__ = ("_groups", "_number", "_open", "_pending", "count")

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, bytes]]] = {}
        #: Offsets kept, without those that wait for a marker.
        self.count = 0
        #: By producer id.
        self._pending: dict[int, dict[_Place, _PendingOffset]] = {}
        self._number = 0
        #: By group: its partitions in doubt, and how many transactions each waits for.
        self._open: dict[str, dict[tuple[str, int], int]] = {}

    # Outside of transactions.

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, bytes]]:
        """By topic and partition. Not to be kept: it changes."""
        return self._groups.get(group_id, _NOTHING)

    def group_ids(self) -> list[str]:
        """All groups that have offsets, or will have if a transaction is committed."""
        return list({**self._groups, **self._open})

    def get(self, group_id: str, topic: str, partition: int) -> bytes | None:
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def put(self, group_id: str, topic: str, partition: int, value: bytes) -> None:
        self._put(group_id, topic, partition, value)
        if self._open and self.is_open(group_id, topic, partition):
            self._outdate((group_id, topic, partition), self._number)

    def _put(self, group_id: str, topic: str, partition: int, value: bytes) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # One string for each name, however many groups read the topic.
            partitions = topics[intern(topic)] = {}
        if partition not in partitions:
            self.count += 1
        partitions[partition] = value

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """A tombstone: of what waits for markers as well."""
        if group_id in self._open:
            self._drop_pending(group_id, topic, partition)
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        if topics is None or partitions is None or partitions.pop(partition, None) is None:
            return
        self.count -= 1
        if not partitions:
            del topics[topic]
            if not topics:
                del self._groups[group_id]

    # Transactions.

    def put_pending(self, producer_id: int, group_id: str, topic: str, partition: int, value: bytes) -> None:
        pending = self._pending.setdefault(producer_id, {})
        place = (group_id, topic, partition)
        if place not in pending:
            open_places = self._open.setdefault(group_id, {})
            open_places[topic, partition] = open_places.get((topic, partition), 0) + 1
        self._number += 1
        pending[place] = _PendingOffset(self._number, value)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker came: what waited takes effect, or is forgotten."""
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return
        for group_id, topic, partition in pending:
            self._close(group_id, topic, partition)
        if committed:
            for place, (number, value) in pending.items():
                if value is not None:
                    self._put(*place, value)
                    if self.is_open(*place):
                        self._outdate(place, number)

    def has_pending(self, producer_id: int) -> bool:
        """Whether offsets of its transaction wait for its end."""
        return producer_id in self._pending

    def let_go(self) -> Steps[None]:
        """Forgets all of it, step by step: its partition is coordinated elsewhere."""
        self._pending.clear()
        self._open.clear()
        self.count = 0
        while self._groups:
            for _ in range(min(len(self._groups), GROUPS_A_STEP)):
                self._groups.popitem()
            yield

    def has_open(self, group_id: str) -> bool:
        return group_id in self._open

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that has not ended yet holds an offset of this partition."""
        places = self._open.get(group_id)
        return places is not None and (topic, partition) in places

    def open_partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        return iter(self._open.get(group_id, ()))

    def _outdate(self, place: _Place, number: int) -> None:
        for pending in self._pending.values():
            if place in pending and pending[place].number <= number:
                pending[place] = _PendingOffset(pending[place].number, None)

    def _drop_pending(self, group_id: str, topic: str, partition: int) -> None:
        place = (group_id, topic, partition)
        for producer_id, pending in list(self._pending.items()):
            if place in pending:
                del pending[place]
                self._close(group_id, topic, partition)
                if not pending:
                    del self._pending[producer_id]

    def _close(self, group_id: str, topic: str, partition: int) -> None:
        places = self._open[group_id]
        places[topic, partition] -= 1
        if not places[topic, partition]:
            del places[topic, partition]
            if not places:
                del self._open[group_id]
