"""Range: each topic's partitions in order, cut into as many pieces as members want it; the first pieces are one longer.

Topics with equally many partitions and the same members are cut alike, so that one member has the same number of each.
Where brokers and members say which racks they are in, and not all partitions are in all racks, members first get
partitions with a replica in their own rack, as far as their share goes; then the rest is given out in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consuming.group.assignors.assignor import Assignor, Topics, member_order
from ottla.client.consuming.group.wire import Subscription
from ottla.model import TopicPartition


class RangeAssignor(Assignor):
    name = "range"

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        takers: dict[str, list[str]] = {}
        for member in member_order(members):
            for topic in members[member].topics:
                takers.setdefault(topic, []).append(member)
        racks = {member: one.rack for member, one in members.items() if one.rack}
        shares = [
            _Share(topic, takers[topic], topics, racks) for topic in sorted(takers) if topics.counts.get(topic, 0) > 0
        ]
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in members}
        near = any(share.racks_differ for share in shares)
        if near:
            _near_first(shares, assigned)
        for share in shares:
            share.cut(assigned, near=False)
        if near:
            for partitions in assigned.values():
                partitions.sort()
        return assigned


class _Share:
    """One topic while it is given out."""

    def __init__(self, topic: str, takers: Sequence[str], topics: Topics, racks: Mapping[str, str]) -> None:
        self.topic = topic
        self.takers = tuple(takers)
        self.count = topics.counts[topic]
        #: Whom each partition belongs to so far.
        self.free = dict.fromkeys(range(self.count))
        self._least, self._longer = divmod(self.count, len(takers))
        self._got = dict.fromkeys(takers, 0)
        self._racks = {member: racks[member] for member in takers if member in racks}
        self._replicas = [topics.racks.get(TopicPartition(topic, number), frozenset()) for number in range(self.count)]
        everywhere = frozenset().union(*self._replicas)
        self.racks_differ = not everywhere.isdisjoint(self._racks.values()) and any(
            replicas != everywhere for replicas in self._replicas
        )

    def room(self, member: str) -> int:
        """How many more partitions the member may get now."""
        return max(0, self._least + (self._longer > 0) - self._got[member])

    def is_near(self, member: str, number: int) -> bool:
        rack = self._racks.get(member)
        return rack is None or rack in self._replicas[number]

    def give(self, member: str, numbers: Iterable[int], assigned: dict[str, list[TopicPartition]]) -> None:
        for number in numbers:
            del self.free[number]
            assigned[member].append(TopicPartition(self.topic, number))
            self._got[member] += 1
        if self._got[member] > self._least:
            self._longer -= 1

    def cut(self, assigned: dict[str, list[TopicPartition]], *, near: bool) -> None:
        for member in self.takers:
            room = self.room(member)
            numbers: list[int] = []
            for number in self.free:
                if len(numbers) == room:
                    break
                if not near or self.is_near(member, number):
                    numbers.append(number)
            if numbers:
                self.give(member, numbers, assigned)


def _near_first(shares: Sequence[_Share], assigned: dict[str, list[TopicPartition]]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Share]] = {}
    for share in shares:
        alike.setdefault((share.takers, share.count), []).append(share)
    for (takers, count), group in alike.items():
        if len(group) > 1:
            _together(takers, count, group, assigned)
        elif group[0].racks_differ:
            group[0].cut(assigned, near=True)


def _together(
    takers: Sequence[str], count: int, group: Sequence[_Share], assigned: dict[str, list[TopicPartition]]
) -> None:
    """A number goes to one member in all topics, where all its replicas are near."""
    for number in range(count):
        for member in takers:
            if all(share.room(member) and share.is_near(member, number) for share in group):
                for share in group:
                    share.give(member, [number], assigned)
                break
