"""StopReplica (5), versions 0 to 4: the controller has replicas given up here, and some of them deleted.

From version 3 on each partition says whether its log goes, and under which leader epoch: a role of a later one stays,
and is answered FENCED_LEADER_EPOCH. -2 stands for a deletion, which ends every role, and -1 for a controller that does
not say. Before version 3 one flag is for all partitions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Final

from ottla.controller.announcing.announced import Refused
from ottla.controller.announcing.origin import Origin
from ottla.controller.deciding.orders import ReplicaStop
from ottla.coordination.errors import CoordinationError
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import from_broker, tree_is_away
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition
from ottla.protocol.generated.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from ottla.steps import Steps, pieces

_BY_TOPIC_SINCE: Final = 1
_STATES_SINCE: Final = 3


def handle(call: Call, request: StopReplicaRequest) -> Steps[StopReplicaResponse | Awaitable[StopReplicaResponse]]:
    stops: list[ReplicaStop] = []
    for piece in pieces(_stops(call.version, request)):
        stops += [stop for stop in piece if stop is not None]
        yield
    refusal = from_broker(call, is_kraft=request.is_kraft_controller)
    if refusal is not ErrorCode.NONE:
        return (yield from _answer(stops, refusal))
    return _carry_out(call, request, stops)


async def _carry_out(call: Call, request: StopReplicaRequest, stops: Sequence[ReplicaStop]) -> StopReplicaResponse:
    origin = Origin(BrokerId(request.controller_id), Epoch(request.controller_epoch), request.broker_epoch)
    refused: Refused
    try:
        refused = await call.services.announced.stop_replicas(origin, stops)
    except CoordinationError as fault:
        refused = tree_is_away("StopReplica", fault)
    return await call.services.turns.to_end(_answer(stops, refused), is_first=True)


def _stops(version: int, request: StopReplicaRequest) -> Iterator[ReplicaStop | None]:
    """None stands for each topic: there may be any number without partitions, which are looked at in steps too."""
    delete = request.delete_partitions
    if version < _BY_TOPIC_SINCE:
        for found in request.ungrouped_partitions:
            yield ReplicaStop(TopicPartition(found.topic_name, found.partition_index), delete=delete)
    elif version < _STATES_SINCE:
        for topic in request.topics:
            yield None
            for partition in topic.partition_indexes:
                yield ReplicaStop(TopicPartition(topic.name, partition), delete=delete)
    else:
        for states in request.topic_states:
            yield None
            for state in states.partition_states:
                tp = TopicPartition(states.topic_name, state.partition_index)
                yield ReplicaStop(tp, state.leader_epoch, state.delete_partition)


def _answer(stops: Sequence[ReplicaStop], refused: Refused) -> Steps[StopReplicaResponse]:
    whole = refused if isinstance(refused, ErrorCode) else ErrorCode.NONE
    errors: Mapping[TopicPartition, ErrorCode] = {} if isinstance(refused, ErrorCode) else refused
    response = StopReplicaResponse(error_code=whole, partition_errors=[])
    for piece in pieces(stops):
        response.partition_errors += [
            StopReplicaPartitionError(
                topic_name=stop.tp.topic,
                partition_index=stop.tp.partition,
                error_code=errors.get(stop.tp, whole),
            )
            for stop in piece
        ]
        yield
    return response
