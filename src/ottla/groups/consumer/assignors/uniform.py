"""`uniform`: members get as many partitions each as can be, and keep what they had as far as that goes.

Balance comes first: there is no way of handing partitions on, from member to member, that would take one from a member
and leave one more with another that has at least two less. Then as little as possible moves.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.groups.consumer.assignors.ordering import in_order
from ottla.model import TopicId
from ottla.steps import PIECE, Steps, pieces


def assign(demand: Demand) -> Steps[Targets]:
    candidates = yield from in_order(demand.candidates, attrgetter("id"))
    if not candidates:
        return {}
    start = yield from _start(candidates, demand)
    if (yield from _want_the_same(candidates)):
        yield from _share_equally(start)
    else:
        yield from _Balance(candidates, start).reach()
    return (yield from _frozen(start.kept))


#: What each member has while an assignor works: frozen as it came, or a set that is being changed.
_Holding = dict[str, dict[TopicId, AbstractSet[int]]]


class _Start(NamedTuple):
    #: What members may keep: of topics they still subscribe to, partitions that there are, nothing twice.
    kept: _Holding
    #: What nobody has.
    free: dict[TopicId, set[int]]


def _want_the_same(candidates: list[Candidate]) -> Steps[bool]:
    first = candidates[0].topics
    for piece in pieces(candidates):
        if not all(candidate.topics is first or candidate.topics == first for candidate in piece):
            return False
        if len(piece) == PIECE:
            yield
    return True


def _frozen(kept: _Holding) -> Steps[Targets]:
    targets: Targets = {}
    work = 0
    for member, holding in kept.items():
        target = {}
        for topic, numbers in holding.items():
            if numbers:
                # A frozenset is not copied: a member that keeps what it had costs nothing more.
                target[topic] = frozenset(numbers)
            work += 2 + len(numbers) // PIECE
            if work >= PIECE:
                work = 0
                yield
        if target:
            targets[member] = target
    return targets


def _start(candidates: list[Candidate], demand: Demand) -> Steps[_Start]:
    """All members are looked at for each that joins: sets are joined whole, and looked into only where they clash."""
    taken = yield from _empty(candidates)
    sizes = dict.fromkeys(taken, 0)
    kept: _Holding = {}
    for candidate in candidates:
        topics = candidate.topics
        mine = kept[candidate.id] = {}
        for piece in pieces(candidate.before.items()):
            for topic, numbers in piece:
                if topic in topics:
                    mine[topic] = numbers
                    taken[topic] |= numbers
                    sizes[topic] += len(numbers)
            yield
    wanted: dict[TopicId, set[int]] = {}
    work, clash = 0, False
    for topic, had in taken.items():
        all_of_it = wanted[topic] = set(range(demand.counts[topic]))
        clash = clash or len(had) != sizes[topic] or not had <= all_of_it
        work += 2 + len(all_of_it) // PIECE
        if work >= PIECE:
            work = 0
            yield
    in_turn = yield from in_order(wanted, _itself)
    if clash:
        return (yield from _without_clashes(kept, {topic: wanted[topic] for topic in in_turn}))
    free: dict[TopicId, set[int]] = {}
    for places in pieces(in_turn):
        for topic in places:
            free[topic] = wanted[topic] - taken[topic]
        yield
    return _Start(kept, free)


def _empty(candidates: list[Candidate]) -> Steps[dict[TopicId, set[int]]]:
    """A set for each topic that anybody wants."""
    empty: dict[TopicId, set[int]] = {}
    for subscription in {candidate.topics for candidate in candidates}:
        for topics in pieces(subscription):
            for topic in topics:
                if topic not in empty:
                    empty[topic] = set()
            if len(topics) == PIECE:
                yield
    return empty


def _itself(topic: TopicId) -> TopicId:
    return topic


def _without_clashes(kept: _Holding, free: dict[TopicId, set[int]]) -> Steps[_Start]:
    """Only for what somebody else has stored: the first of two owners stays."""
    for holding in kept.values():
        for topics in pieces(list(holding)):
            for topic in topics:
                holding[topic] = holding[topic] & free[topic]
                free[topic] -= holding[topic]
            yield
    return _Start(kept, free)


def _changing(holding: dict[TopicId, AbstractSet[int]], topic: TopicId) -> set[int]:
    """What the member has of this topic, to be changed."""
    numbers = holding.get(topic, frozenset())
    if not isinstance(numbers, set):
        numbers = holding[topic] = set(numbers)
    return numbers


def _share_equally(start: _Start) -> Steps[None]:
    """All want the same topics: shares differ by one at most, and those who have most keep the one that is over."""
    kept, free = start
    sizes: dict[str, int] = {}
    for holdings in pieces(kept.items()):
        for member, holding in holdings:
            sizes[member] = sum(map(len, holding.values()))
        yield
    each, more = divmod(sum(sizes.values()) + sum(map(len, free.values())), len(kept))
    missing: list[tuple[str, int]] = []
    for place, member in enumerate((yield from in_order(kept, lambda member: -sizes[member]))):
        surplus = sizes[member] - each - (place < more)
        if surplus > 0:
            yield from _give_up(kept[member], surplus, free)
        elif surplus < 0:
            missing.append((member, -surplus))
        if place % PIECE == 0:
            yield
    rest = ((topic, number) for topic, numbers in free.items() for number in sorted(numbers))
    for member, count in (yield from in_order(missing, lambda one: one[0])):
        holding = kept[member]
        for piece in pieces(islice(rest, count), PIECE // 2):
            for topic, number in piece:
                _changing(holding, topic).add(number)
            yield


def _give_up(holding: dict[TopicId, AbstractSet[int]], surplus: int, free: dict[TopicId, set[int]]) -> Steps[None]:
    for topic in reversed((yield from in_order(holding, _itself))):
        given = sorted(holding[topic], reverse=True)[:surplus]
        surplus -= len(given)
        _changing(holding, topic).difference_update(given)
        free[topic].update(given)
        if not surplus:
            return
        yield


class _Balance:
    """Members that want different topics: a matching that no chain of hand-overs makes more even.

    Partitions of one topic are alike here, so that a chain goes over topics: a member gives one of a topic to another
    of its subscribers, that one gives one of another topic on, until one is reached that has two less than the first.
    """

    def __init__(self, candidates: list[Candidate], start: _Start) -> None:
        self._kept, self._free = start
        self._candidates = candidates
        self._subscribers: dict[TopicId, list[str]] = {}
        self._size: dict[str, int] = {}
        self._had: dict[str, Candidate] = {}
        #: Where each stands among all: of those who have equally many the first gives first.
        self._place: dict[str, int] = {}
        #: (-size, place, member). An entry whose size is not the member's any more is a leftover.
        self._largest: list[tuple[int, int, str]] = []
        #: Nobody whom they can hand anything on to would gain from it.
        self._done: set[str] = set()
        #: (size, member), with leftovers too, and those who are done.
        self._smallest: list[tuple[int, str]] = []
        #: What givers have, in the order of the ids: sorted once, and kept as they hand on and are given.
        self._topics_of: dict[str, list[TopicId]] = {}

    def reach(self) -> Steps[None]:
        yield from self._look_at_all()
        yield from self._hand_out()
        self._largest = [(-size, self._place[member], member) for member, size in self._size.items()]
        heapify(self._largest)
        self._smallest = [(size, member) for member, size in self._size.items()]
        heapify(self._smallest)
        while self._largest:
            size, _, first = self._largest[0]
            if first in self._done or -size != self._size[first]:
                heappop(self._largest)
                continue
            if chain := (yield from self._chain_from(first)):
                self._hand_over(chain)
            yield
        while self._subscribers:  # as many entries as all members have topics: to free them takes time, too
            self._subscribers.popitem()
            yield

    def _look_at_all(self) -> Steps[None]:
        for place, candidate in enumerate(self._candidates):
            self._place[candidate.id] = place
            self._had[candidate.id] = candidate
            self._size[candidate.id] = sum(map(len, self._kept[candidate.id].values()))
            # In the order of the members in each topic; that of the topics plays no part.
            for topics in pieces(candidate.topics):
                for topic in topics:
                    self._subscribers.setdefault(topic, []).append(candidate.id)
                yield

    def _hand_out(self) -> Steps[None]:
        """What no member has goes to the one with least; topics with few takers first, since they have no choice."""
        free, work = self._free, 0
        # They come in the order of their ids.
        for topic in (yield from in_order(filter(free.get, free), lambda topic: len(self._subscribers[topic]))):
            heap: list[tuple[int, str]] = []
            for members in pieces(self._subscribers[topic]):
                heap += [(self._size[member], member) for member in members]
                yield
            heapify(heap)
            for number in sorted(free[topic]):
                size, member = heap[0]
                _changing(self._kept[member], topic).add(number)
                self._size[member] = size + 1
                heapreplace(heap, (size + 1, member))
                work += 1
                if work % (PIECE // 2) == 0:
                    yield

    def _chain_from(self, first: str) -> Steps[list[tuple[str, TopicId, str]]]:
        """The shortest chain to a member that has two less than `first`, as (giver, topic, taker).

        Where there is none, nobody who can be reached has anything to gain from it either: sizes there are at least one
        below `first`, which has the most of all members that are not done. So all are done.
        """
        goal, least = self._size[first] - 2, self._least()
        if least is None or least > goal:
            # Not even the member that has least would gain from it, wherever that one is.
            self._done.add(first)
            return []
        reached: dict[str, tuple[str, TopicId] | None] = {first: None}
        seen: set[TopicId] = set()
        queue = deque([first])
        while queue:
            giver = queue.popleft()
            best: str | None = None
            for place, topic in enumerate((yield from self._given_by(giver))):
                if place % PIECE == PIECE - 1:
                    yield
                if topic in seen:
                    continue
                seen.add(topic)
                for members in pieces(self._subscribers[topic]):
                    for taker in members:
                        if taker in reached or taker in self._done:
                            continue
                        reached[taker] = (giver, topic)
                        queue.append(taker)
                        if self._size[taker] <= goal and (best is None or self._size[taker] < self._size[best]):
                            best = taker
                    if len(members) == PIECE:
                        yield
                if best is not None and self._size[best] == least:
                    break  # the first of those with least: no other is better
            if best is not None:
                return list(_way_back(reached, best))
        self._done.update(reached)
        return []

    def _least(self) -> int | None:
        """What the one with least has; of those who are not done."""
        smallest = self._smallest
        while smallest and (smallest[0][1] in self._done or self._size[smallest[0][1]] != smallest[0][0]):
            heappop(smallest)
        return smallest[0][0] if smallest else None

    def _given_by(self, giver: str) -> Steps[list[TopicId]]:
        """Its topics, in their order: each hand-over would sort ten thousand of them anew."""
        known = self._topics_of.get(giver)
        if known is None:
            kept = self._kept[giver]
            known = yield from in_order([topic for topic, numbers in kept.items() if numbers], _itself)
            self._topics_of[giver] = known
        return known

    def _hand_over(self, chain: list[tuple[str, TopicId, str]]) -> None:
        """From the end, so that each gives of what it had: what it is given takes that place."""
        for giver, topic, taker in chain:
            before = self._had[giver].before.get(topic, frozenset())
            # Given away first: what it did not have before, since that moves anyway.
            number = max(self._kept[giver][topic], key=lambda one: (one not in before, one))
            left, given = _changing(self._kept[giver], topic), _changing(self._kept[taker], topic)
            left.remove(number)
            if not left and giver in self._topics_of:
                topics = self._topics_of[giver]
                del topics[bisect_left(topics, topic)]
            if not given and taker in self._topics_of:
                insort(self._topics_of[taker], topic)
            given.add(number)
        for member, more in ((chain[-1][0], -1), (chain[0][2], 1)):
            size = self._size[member] = self._size[member] + more
            heappush(self._largest, (-size, self._place[member], member))
            heappush(self._smallest, (size, member))


def _way_back(reached: dict[str, tuple[str, TopicId] | None], last: str) -> Iterator[tuple[str, TopicId, str]]:
    step = reached[last]
    while step is not None:
        giver, topic = step
        yield giver, topic, last
        last, step = giver, reached[giver]
