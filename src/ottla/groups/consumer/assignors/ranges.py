"""`range`: each topic is cut into one run of partitions for each subscriber.

Who subscribed to the same topics gets the same numbers of each, so that topics with equally many partitions can be
joined. What the members had before plays no part: they are taken in the order of their instance ids, then of their
member ids, and the first ones get one partition more where it does not come out even.
"""

from __future__ import annotations

from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.model import TopicId


def assign(demand: Demand) -> Targets:
    by_topic: dict[TopicId, list[str]] = {}
    for candidate in sorted(demand.candidates, key=_order):
        for topic in candidate.topics:
            by_topic.setdefault(topic, []).append(candidate.id)
    targets: Targets = {}
    for topic, members in by_topic.items():
        each, more = divmod(demand.counts[topic], len(members))
        start = 0
        for place, member in enumerate(members):
            end = start + each + (place < more)
            if start == end:
                break
            targets.setdefault(member, {})[topic] = frozenset(range(start, end))
            start = end
    return targets


def _order(candidate: Candidate) -> tuple[bool, bytes]:
    """Static members first. Java compares strings by their UTF-16 units."""
    static = candidate.instance_id is not None
    name = candidate.instance_id if candidate.instance_id is not None else candidate.id
    return (not static, name.encode("utf-16-be", "surrogatepass"))
