"""`range`: each topic is cut into one run of partitions for each subscriber.

Members subscribed to the same topics get the same numbers of each, so that topics with equally many partitions can be
joined. What the members had before plays no part: they are taken in the order of their instance ids, then of their
member ids, and the first ones get one partition more where it does not come out even.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.groups.consumer.assignors.ordering import in_order
from ottla.model import TopicId
from ottla.steps import PIECE, Steps, pieces


def assign(demand: Demand) -> Steps[Targets]:
    subscribers = yield from _subscriber_counts(demand)
    takers = yield from _takers(demand, subscribers)
    targets: Targets = {}
    work = 0
    for topic, members in takers.items():
        each, more = divmod(demand.counts[topic], subscribers[topic])
        start = 0
        for place, member in enumerate(members):
            end = start + each + (place < more)
            targets.setdefault(member, {})[topic] = frozenset(range(start, end))
            work += 2 + (end - start) // PIECE
            start = end
            if work >= PIECE:
                work = 0
                yield
    return targets


def _subscriber_counts(demand: Demand) -> Steps[dict[TopicId, int]]:
    """Most members want the same topics: each subscription is looked through once."""
    subscriptions: Counter[frozenset[TopicId]] = Counter()
    for candidates in pieces(demand.candidates):
        subscriptions.update(candidate.topics for candidate in candidates)
        if len(candidates) == PIECE:
            yield
    counts: dict[TopicId, int] = {}
    for wanted, members in subscriptions.items():
        for topics in pieces(wanted):
            for topic in topics:
                counts[topic] = counts.get(topic, 0) + members
            if len(topics) == PIECE:
                yield
    return counts


def _takers(demand: Demand, topics: Iterable[TopicId]) -> Steps[dict[TopicId, list[str]]]:
    """Of each topic the first subscribers, as many as it has partitions: those behind them get none of it.

    A thousand members that want a thousand topics are a million pairs; those that get something are no more than there
    are partitions.
    """
    takers: dict[TopicId, list[str]] = {topic: [] for topic in topics if demand.counts[topic]}
    left = set(takers)
    work = 0
    for candidate in (yield from in_order(demand.candidates, _order)):
        if not left:
            break
        for wanted in pieces(left & candidate.topics):
            for topic in wanted:
                members = takers[topic]
                members.append(candidate.id)
                if len(members) == demand.counts[topic]:
                    left.remove(topic)
            work += 8 + len(wanted)
            if work >= PIECE:
                work = 0
                yield
    return takers


def _order(candidate: Candidate) -> bytes:
    """Static members first. Java compares strings by their UTF-16 units."""
    if candidate.instance_id is not None:
        return b"\0" + candidate.instance_id.encode("utf-16-be", "surrogatepass")
    return b"\1" + candidate.id.encode("utf-16-be", "surrogatepass")
