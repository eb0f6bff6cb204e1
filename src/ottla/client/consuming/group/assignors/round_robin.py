"""Round robin: all partitions of all topics in order, to one member after the other that wants them."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.consuming.group.assignors.assignor import Assignor, Topics, member_order
from ottla.client.consuming.group.wire import Subscription
from ottla.model import TopicPartition


class RoundRobinAssignor(Assignor):
    name = "roundrobin"

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in members}
        order = member_order(members)
        wanted = sorted(set().union(*(one.topics for one in members.values())))
        turn = 0
        for topic in wanted:
            for partition in topics.partitions(topic):
                # Ends: somebody wants the topic.
                while topic not in members[order[turn]].topics:
                    turn = (turn + 1) % len(order)
                assigned[order[turn]].append(partition)
                turn = (turn + 1) % len(order)
        return assigned
