"""`uniform`: members get as many partitions each as can be, and keep what they had as far as that goes.

Balance comes first: there is no way of handing partitions on, from member to member, that would take one from a member
and leave one more with another that has at least two less. Then as little as possible moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heapreplace

from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.model import TopicId


def assign(demand: Demand) -> Targets:
    candidates = sorted(demand.candidates, key=lambda candidate: candidate.id)
    if not candidates:
        return {}
    kept = _kept(candidates, demand)
    if all(candidate.topics == candidates[0].topics for candidate in candidates):
        _share_equally(candidates, kept, demand)
    else:
        _Balance(candidates, kept, demand).reach()
    targets: Targets = {}
    for member, holding in kept.items():
        if target := {topic: frozenset(partitions) for topic, partitions in holding.items() if partitions}:
            targets[member] = target
    return targets


#: What each member has while an assignor works.
_Holding = dict[str, dict[TopicId, set[int]]]


def _kept(candidates: list[Candidate], demand: Demand) -> _Holding:
    """What members may keep: of topics they still subscribe to, partitions that there are, nothing twice."""
    taken: dict[TopicId, set[int]] = {topic: set() for topic in demand.counts}
    kept: _Holding = {}
    for candidate in candidates:
        mine = kept[candidate.id] = {}
        for topic, partitions in candidate.before.items():
            if topic in candidate.topics:
                still = {number for number in partitions if 0 <= number < demand.counts[topic]} - taken[topic]
                taken[topic] |= still
                mine[topic] = still
    return kept


def _unassigned(candidates: list[Candidate], kept: _Holding, demand: Demand) -> dict[TopicId, list[int]]:
    wanted: set[TopicId] = set()
    for candidate in candidates:
        wanted |= candidate.topics
    free = {}
    for topic in sorted(wanted):
        taken: set[int] = set()
        for topics in kept.values():
            taken |= topics.get(topic, set())
        free[topic] = [number for number in range(demand.counts[topic]) if number not in taken]
    return free


def _share_equally(candidates: list[Candidate], kept: _Holding, demand: Demand) -> None:
    """All want the same topics: shares differ by one at most, and those who have most keep the one that is over."""
    topics = sorted(candidates[0].topics)
    each, more = divmod(sum(demand.counts[topic] for topic in topics), len(candidates))
    sizes = {member: sum(map(len, holding.values())) for member, holding in kept.items()}
    by_size = sorted(kept, key=lambda member: -sizes[member])
    share = {member: each + (place < more) for place, member in enumerate(by_size)}
    for member, holding in kept.items():
        surplus = sizes[member] - share[member]
        for topic in sorted(holding, reverse=True):
            for number in sorted(holding[topic], reverse=True):
                if surplus <= 0:
                    break
                holding[topic].remove(number)
                surplus -= 1
    free = ((topic, number) for topic, numbers in _unassigned(candidates, kept, demand).items() for number in numbers)
    for member, holding in kept.items():
        missing = share[member] - sum(map(len, holding.values()))
        for _ in range(missing):
            topic, number = next(free)
            holding.setdefault(topic, set()).add(number)


class _Balance:
    """Members that want different topics: a matching that no chain of hand-overs makes more even.

    Partitions of one topic are alike here, so that a chain goes over topics: a member gives one of a topic to another
    of its subscribers, that one gives one of another topic on, until one is reached that has two less than the first.
    """

    def __init__(self, candidates: list[Candidate], kept: _Holding, demand: Demand) -> None:
        self._kept = kept
        self._demand = demand
        self._candidates = candidates
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
        free = _unassigned(self._candidates, self._kept, self._demand)
        for topic in sorted(free, key=lambda topic: (len(self._subscribers[topic]), topic)):
            if not free[topic]:
                continue
            heap = [(self._size[member], member) for member in self._subscribers[topic]]
            heapify(heap)
            for number in free[topic]:
                size, member = heap[0]
                self._kept[member].setdefault(topic, set()).add(number)
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
            self._kept[giver][topic].remove(number)
            self._kept[taker].setdefault(topic, set()).add(number)
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
