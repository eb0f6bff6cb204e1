"""What a heartbeat is answered with. A member's share may be a hundred thousand partitions: it goes in step by step."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.consumer.assignors.ordering import in_order
from ottla.groups.consumer.member import Owned
from ottla.protocol.generated.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.steps import Steps

#: Of an answer, in one step: two hundred microseconds. A topic costs as much as some partitions.
PARTITIONS_A_STEP: Final = 1_024
TOPIC_AS_PARTITIONS: Final = 32


class HeartbeatAnswer(NamedTuple):
    response: ConsumerGroupHeartbeatResponse
    #: What the response is to say that the member has; None where it need not say it.
    assigned: Owned | None = None

    def made(self) -> Steps[ConsumerGroupHeartbeatResponse]:
        """The whole response. What a member has does not change: it gets another."""
        if self.assigned is not None:
            entries: list[TopicPartitions] = []
            self.response.assignment = Assignment(topic_partitions=entries)
            room = PARTITIONS_A_STEP
            for topic in (yield from in_order(self.assigned, bytes)):
                partitions = self.assigned[topic]
                entries.append(TopicPartitions(topic_id=topic, partitions=sorted(partitions)))
                room -= TOPIC_AS_PARTITIONS + len(partitions)
                if room <= 0:
                    room = PARTITIONS_A_STEP
                    yield
        return self.response
