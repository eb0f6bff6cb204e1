"""The two rules of the sticky assignors: balance first, then stay.

Where all members want the same topics, each gets the lower or the upper of two neighbouring numbers of partitions.
Members keep what they have up to their number, as many as possible the upper one, so that no more partitions move than
balance demands. What is left over is dealt to the member that has least, which is round robin in a new group.

Where they want different topics, what is left over is dealt in the same way among those who want it, and then improved:
a member hands a partition on to another, which hands one on to a third, until the last has at least two less than the
first had. Where no such chain is left, no distribution is more even (that is what is known of optimal semi-matchings:
Harvey, Ladner, Lovasz, Tamir, 2006). The shortest chain is taken each time, since each of its links moves a partition;
and before any of those, all chains of partitions that are nobody's yet, so that nothing moves that need not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from ottla.model import TopicPartition

Assigned = dict[str, list[TopicPartition]]

_NOWHERE: Final = ("", "")


def assign_sticky(
    counts: Mapping[str, int], wants: Mapping[str, frozenset[str]], owned: Mapping[TopicPartition, str]
) -> Assigned:
    """`counts` are the topics that are there, `wants` each member's topics, `owned` who had what."""
    there = {
        member: frozenset(topic for topic in topics if counts.get(topic, 0) > 0) for member, topics in wants.items()
    }
    members = sorted(there)
    kept: Assigned = {member: [] for member in members}
    free: list[TopicPartition] = []
    for topic in sorted(set().union(*there.values())):
        for number in range(counts[topic]):
            partition = TopicPartition(topic, number)
            owner = owned.get(partition)
            if owner is not None and topic in there.get(owner, ()):
                kept[owner].append(partition)
            else:
                free.append(partition)
    if len(set(there.values())) <= 1:
        _keep_fair_shares(members, kept, free)
        _deal(free, kept, there)
    else:
        _deal(free, kept, there)
        chains = _Chains(kept, there, owned)
        chains.improve(loose_only=True)
        chains.improve(loose_only=False)
        return chains.distribution()
    return kept


def _keep_fair_shares(members: Sequence[str], kept: Assigned, free: list[TopicPartition]) -> None:
    """Takes from everybody what is above their number, and adds it to what is free."""
    least, longer = divmod(len(free) + sum(map(len, kept.values())), len(members)) if members else (0, 0)
    for member in members:
        share = least
        if len(kept[member]) > least and longer:
            share += 1
            longer -= 1
        free += kept[member][share:]
        del kept[member][share:]
    free.sort()


def _deal(free: Sequence[TopicPartition], kept: Assigned, wants: Mapping[str, frozenset[str]]) -> None:
    """Each partition to the member that has least among those that want it."""
    alike: dict[frozenset[str], list[tuple[int, str]]] = {}
    for member, partitions in kept.items():
        alike.setdefault(wants[member], []).append((len(partitions), member))
    takers: dict[str, list[list[tuple[int, str]]]] = {}
    for wanted, heap in alike.items():
        heapify(heap)
        for topic in wanted:
            takers.setdefault(topic, []).append(heap)
    for partition in free:
        heap = min(takers[partition.topic])
        load, member = heappop(heap)
        kept[member].append(partition)
        heappush(heap, (load + 1, member))


class _Chains:
    def __init__(
        self, assigned: Assigned, wants: Mapping[str, frozenset[str]], owned: Mapping[TopicPartition, str]
    ) -> None:
        self._owned = owned
        #: A member's partitions by topic.
        self._held: dict[str, dict[str, list[TopicPartition]]] = {}
        for member, partitions in assigned.items():
            by_topic = self._held[member] = {}
            for partition in partitions:
                by_topic.setdefault(partition.topic, []).append(partition)
        #: How many of these were not the member's before: handing them on moves nothing.
        self._loose = {
            member: {topic: sum(owned.get(one) != member for one in held) for topic, held in by_topic.items()}
            for member, by_topic in self._held.items()
        }
        self._load = {member: len(partitions) for member, partitions in assigned.items()}
        self._takers: dict[str, list[str]] = {}
        for member in sorted(wants):
            for topic in wants[member]:
                self._takers.setdefault(topic, []).append(member)

    def distribution(self) -> Assigned:
        return {
            member: [partition for partitions in by_topic.values() for partition in partitions]
            for member, by_topic in self._held.items()
        }

    def improve(self, *, loose_only: bool) -> None:
        """The fullest member first. If no chain leads from it, none leads from anybody that it could hand on to."""
        fullest = [(-load, member) for member, load in self._load.items()]
        heapify(fullest)
        finished: set[str] = set()
        while fullest:
            negative, member = heappop(fullest)
            if member in finished or -negative != self._load[member]:
                continue  # is done, or stands in the heap with its new load as well
            came_from, end = self._search(member, finished, self._loose if loose_only else self._held)
            if self._load[member] - self._load[end] < 2:
                finished |= came_from.keys()
                continue
            self._hand_on(came_from, end)
            for changed in (member, end):
                heappush(fullest, (-self._load[changed], changed))

    def _search(
        self, start: str, finished: set[str], links: Mapping[str, Mapping[str, object]]
    ) -> tuple[dict[str, tuple[str, str]], str]:
        """How each member is reached from `start` (from whom, with a partition of which topic), and the emptiest."""
        came_from = {start: _NOWHERE}
        seen: set[str] = set()
        end = start
        waiting = deque([start])
        while waiting:
            giver = waiting.popleft()
            for topic, number in links[giver].items():
                if topic in seen or not number:
                    continue
                seen.add(topic)
                for taker in self._takers[topic]:
                    if taker not in came_from and taker not in finished:
                        came_from[taker] = (giver, topic)
                        waiting.append(taker)
                        if self._load[taker] < self._load[end]:
                            end = taker
        return came_from, end

    def _hand_on(self, came_from: Mapping[str, tuple[str, str]], end: str) -> None:
        taker = end
        while came_from[taker] is not _NOWHERE:
            giver, topic = came_from[taker]
            self._move(giver, taker, topic)
            taker = giver
        self._load[end] += 1
        self._load[taker] -= 1

    def _move(self, giver: str, taker: str, topic: str) -> None:
        """Rather a partition that comes home or was dealt just now than one that stayed where it was."""
        partitions = self._held[giver][topic]
        chosen = min(partitions, key=lambda one: {taker: 0, giver: 2}.get(self._owned.get(one, ""), 1))
        partitions.remove(chosen)
        self._held[taker].setdefault(topic, []).append(chosen)
        owner = self._owned.get(chosen)
        self._loose[giver][topic] -= owner != giver
        self._loose[taker][topic] = self._loose[taker].get(topic, 0) + (owner != taker)
