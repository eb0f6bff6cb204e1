"""`range`: each topic is cut into one run of partitions for each subscriber.

Who subscribed to the same topics gets the same numbers of each, so that topics with equally many partitions can be
joined. What the members had before plays no part: they are taken in the order of their instance ids, then of their
member ids, and the first ones get one partition more where it does not come out even.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.model import TopicId


def assign(demand: Demand) -> Targets:
    subscribers = _subscriber_counts(demand)
    targets: Targets = {}
    for topic, members in _takers(demand, subscribers).items():
        each, more = divmod(demand.counts[topic], subscribers[topic])
        start = 0
        for place, member in enumerate(members):
            end = start + each + (place < more)
            targets.setdefault(member, {})[topic] = frozenset(range(start, end))
            start = end
    return targets


def _subscriber_counts(demand: Demand) -> dict[TopicId, int]:
    """Most members want the same topics: each subscription is looked through once."""
    counts: dict[TopicId, int] = {}
    for topics, members in Counter(candidate.topics for candidate in demand.candidates).items():
        for topic in topics:
            counts[topic] = counts.get(topic, 0) + members
    return counts


def _takers(demand: Demand, topics: Iterable[TopicId]) -> dict[TopicId, list[str]]:
    """Of each topic the first subscribers, as many as it has partitions: those behind them get none of it.

    A thousand members that want a thousand topics are a million pairs; those that get something are no more than there
    are partitions.
    """
    takers: dict[TopicId, list[str]] = {topic: [] for topic in topics if demand.counts[topic]}
    left = set(takers)
    for candidate in sorted(demand.candidates, key=_order):
        if not left:
            break
        for topic in left & candidate.topics:
            members = takers[topic]
            members.append(candidate.id)
            if len(members) == demand.counts[topic]:
                left.remove(topic)
    return takers


def _order(candidate: Candidate) -> tuple[bool, bytes]:
    """Static members first. Java compares strings by their UTF-16 units."""
    static = candidate.instance_id is not None
    name = candidate.instance_id if candidate.instance_id is not None else candidate.id
    return (not static, name.encode("utf-16-be", "surrogatepass"))
