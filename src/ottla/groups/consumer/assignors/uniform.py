"""`uniform`: members get as many partitions each as can be, and keep what they had as far as that goes.

Balance comes first: there is no way of handing partitions on, from member to member, that would take one from a member
and leave one more with another that has at least two less. Then as little as possible moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from heapq import heapify, heapreplace
from itertools import islice
from typing import NamedTuple

from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.model import TopicId


def assign(demand: Demand) -> Targets:
    candidates = sorted(demand.candidates, key=lambda candidate: candidate.id)
    if not candidates:
        return {}
    start = _start(candidates, demand)
    first = candidates[0].topics
    if all(candidate.topics is first or candidate.topics == first for candidate in candidates):
        _share_equally(start)
    else:
        _Balance(candidates, start).reach()
    targets: Targets = {}
    for member, holding in start.kept.items():
        # A frozenset is not copied: who keeps what it had costs nothing more.
        if target := {topic: frozenset(numbers) for topic, numbers in holding.items() if numbers}:
            targets[member] = target
    return targets


#: What each member has while an assignor works: frozen as it came, or a set that is being changed.
_Holding = dict[str, dict[TopicId, AbstractSet[int]]]


class _Start(NamedTuple):
    #: What members may keep: of topics they still subscribe to, partitions that there are, nothing twice.
    kept: _Holding
    #: What nobody has.
    free: dict[TopicId, set[int]]


def _start(candidates: list[Candidate], demand: Demand) -> _Start:
    """All members are looked at for each that joins: sets are joined whole, and looked into only where they clash."""
    taken: dict[TopicId, set[int]] = {
        topic: set() for topics in {candidate.topics for candidate in candidates} for topic in topics
    }
    sizes = dict.fromkeys(taken, 0)
    kept: _Holding = {}
    for candidate in candidates:
        topics = candidate.topics
        mine = kept[candidate.id] = {topic: numbers for topic, numbers in candidate.before.items() if topic in topics}
        for topic, numbers in mine.items():
            taken[topic] |= numbers
            sizes[topic] += len(numbers)
    wanted = {topic: set(range(demand.counts[topic])) for topic in taken}
    if any(len(numbers) != sizes[topic] or not numbers <= wanted[topic] for topic, numbers in taken.items()):
        return _without_clashes(kept, wanted)
    return _Start(kept, {topic: wanted[topic] - taken[topic] for topic in sorted(wanted)})


def _without_clashes(kept: _Holding, wanted: dict[TopicId, set[int]]) -> _Start:
    """Only for what somebody else has stored: the first of two owners stays."""
    free = {topic: wanted[topic] for topic in sorted(wanted)}
    for holding in kept.values():
        for topic in holding:
            holding[topic] = holding[topic] & free[topic]
            free[topic] -= holding[topic]
    return _Start(kept, free)


def _changing(holding: dict[TopicId, AbstractSet[int]], topic: TopicId) -> set[int]:
    """What the member has of this topic, to be changed."""
    numbers = holding.get(topic, frozenset())
    if not isinstance(numbers, set):
        numbers = holding[topic] = set(numbers)
    return numbers


def _share_equally(start: _Start) -> None:
    """All want the same topics: shares differ by one at most, and those who have most keep the one that is over."""
    kept, free = start
    sizes = {member: sum(map(len, holding.values())) for member, holding in kept.items()}
    each, more = divmod(sum(sizes.values()) + sum(map(len, free.values())), len(kept))
    missing: list[tuple[str, int]] = []
    for place, member in enumerate(sorted(kept, key=lambda member: -sizes[member])):
        surplus = sizes[member] - each - (place < more)
        if surplus > 0:
            _give_up(kept[member], surplus, free)
        elif surplus < 0:
            missing.append((member, -surplus))
    rest = ((topic, number) for topic, numbers in free.items() for number in sorted(numbers))
    for member, count in sorted(missing):
        for topic, number in islice(rest, count):
            _changing(kept[member], topic).add(number)


def _give_up(holding: dict[TopicId, AbstractSet[int]], surplus: int, free: dict[TopicId, set[int]]) -> None:
    for topic in sorted(holding, reverse=True):
        given = sorted(holding[topic], reverse=True)[:surplus]
        surplus -= len(given)
        _changing(holding, topic).difference_update(given)
        free[topic].update(given)
        if not surplus:
            return


class _Balance:
    """Members that want different topics: a matching that no chain of hand-overs makes more even.

    Partitions of one topic are alike here, so that a chain goes over topics: a member gives one of a topic to another
    of its subscribers, that one gives one of another topic on, until one is reached that has two less than the first.
    """

    def __init__(self, candidates: list[Candidate], start: _Start) -> None:
        kept, self._free = start
        self._kept = kept
        self._subscribers: dict[TopicId, list[str]] = {}
        for candidate in candidates:
            for topic in sorted(candidate.topics):
                self._subscribers.setdefault(topic, []).append(candidate.id)
        self._size = {member: sum(map(len, holding.values())) for member, holding in kept.items()}
        self._had = {candidate.id: candidate.before for candidate in candidates}

    def reach(self) -> None:
        self._hand_out()
        done: set[str] = set()
        while len(done) < len(self._size):
            first = max((member for member in self._size if member not in done), key=self._size.__getitem__)
            if chain := self._chain_from(first, done):
                self._hand_over(chain)

    def _hand_out(self) -> None:
        """What nobody has goes to whoever has least; topics with few takers first, since they have no choice."""
        free = self._free
        for topic in sorted(filter(free.get, free), key=lambda topic: (len(self._subscribers[topic]), topic)):
            heap = [(self._size[member], member) for member in self._subscribers[topic]]
            heapify(heap)
            for number in sorted(free[topic]):
                size, member = heap[0]
                _changing(self._kept[member], topic).add(number)
                self._size[member] = size + 1
                heapreplace(heap, (size + 1, member))

    def _chain_from(self, first: str, done: set[str]) -> list[tuple[str, TopicId, str]]:
        """The shortest chain to a member that has two less than `first`, as (giver, topic, taker).

        Where there is none, nobody who can be reached has anything to gain from it either: sizes there are at least one
        below `first`, which has the most of all who are not done. They are all done.
        """
        goal = self._size[first] - 2
        reached: dict[str, tuple[str, TopicId] | None] = {first: None}
        seen: set[TopicId] = set()
        queue = deque([first])
        while queue:
            giver = queue.popleft()
            best: str | None = None
            for topic in sorted(topic for topic, numbers in self._kept[giver].items() if numbers and topic not in seen):
                seen.add(topic)
                for taker in self._subscribers[topic]:
                    if taker in reached or taker in done:
                        continue
                    reached[taker] = (giver, topic)
                    queue.append(taker)
                    if self._size[taker] <= goal and (best is None or self._size[taker] < self._size[best]):
                        best = taker
            if best is not None:
                return list(_way_back(reached, best))
        done.update(reached)
        return []

    def _hand_over(self, chain: list[tuple[str, TopicId, str]]) -> None:
        """From the end, so that each gives of what it had: what it is given takes that place."""
        for giver, topic, taker in chain:
            before = self._before(giver, topic)
            # Given away first: what it did not have before, since that moves anyway.
            number = max(self._kept[giver][topic], key=lambda one: (one not in before, one))
            _changing(self._kept[giver], topic).remove(number)
            _changing(self._kept[taker], topic).add(number)
        self._size[chain[-1][0]] -= 1
        self._size[chain[0][2]] += 1

    def _before(self, member: str, topic: TopicId) -> frozenset[int]:
        return self._had[member].get(topic, frozenset())


def _way_back(reached: dict[str, tuple[str, TopicId] | None], last: str) -> Iterator[tuple[str, TopicId, str]]:
    step = reached[last]
    while step is not None:
        giver, topic = step
        yield giver, topic, last
        last, step = giver, reached[giver]
