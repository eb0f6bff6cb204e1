"""What takes long of a heartbeat and decides nothing: it is done before, step by step.

Members may name thousands of topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from ottla.groups.consumer.reconciliation import Reported
from ottla.model import TopicId
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.steps import Steps, pieces

#: Names that are sorted where they are written down; of more the order in which they came is kept.
SORTED_MAX: Final = 512
#: Partitions are put into sets by a call in C; a topic takes about a microsecond.
_TOPIC_WORK: Final = 32
_WORK_A_STEP: Final = 2_048


class PreparedHeartbeat(NamedTuple):
    #: What it subscribes to, and has; None where it does not say.
    names: frozenset[str] | None
    reported: Reported
    #: The names without repetitions, where they are many.
    names_in_order: Sequence[str] | None = None


def prepared(request: ConsumerGroupHeartbeatRequest) -> Steps[PreparedHeartbeat]:
    """Does not yield where it is short."""
    names: dict[str, None] = {}
    for number, piece in enumerate(pieces(request.subscribed_topic_names or ())):
        if number:
            yield
        names.update(dict.fromkeys(piece))
    reported: dict[TopicId, AbstractSet[int]] = {}
    work = 0
    for entry in request.topic_partitions or ():
        topic = TopicId(bytes(entry.topic_id))
        known = reported.get(topic)
        reported[topic] = frozenset(entry.partitions) if known is None else known | frozenset(entry.partitions)
        work += _TOPIC_WORK + len(entry.partitions)
        if work >= _WORK_A_STEP:
            work = 0
            yield
    return PreparedHeartbeat(
        None if request.subscribed_topic_names is None else frozenset(names),
        None if request.topic_partitions is None else reported,
        list(names) if len(names) > SORTED_MAX else None,
    )
