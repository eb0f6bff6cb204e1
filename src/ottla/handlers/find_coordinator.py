"""FindCoordinator (10), versions 0 to 6: the broker that leads the partition of a group or of a transactional id.

The first that is looked for has the offsets topic or the transaction topic created, and is answered when that is there.
Share groups have no coordinators yet: the answer is the error that makes a client wait and ask again, as from a Kafka
cluster whose topic for them has no leaders.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from enum import IntEnum
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import steps_of_name
from ottla.handlers.calls.topic_partitions import stands_aside
from ottla.handlers.on_demand.internal_topics import new_internal_topic
from ottla.metadata import Endpoint
from ottla.model import NO_BROKER, OFFSETS_TOPIC, TRANSACTION_TOPIC, ErrorCode
from ottla.protocol.generated.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.security.authorizer import Operation, Resource
from ottla.steps import PIECE, Steps, pieces

#: From here on one request asks for several keys.
_BATCHED_FROM: Final = 4
#: Share groups are asked for from here on, by a group, a topic's id and a partition.
_SHARE_SINCE: Final = 6
_SHARE_KEY: Final = re.compile(r"[^:]*[^:\s][^:]*:[A-Za-z0-9_-]{22}:[+-]?[0-9]{1,10}")


class _KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


#: By the type of the keys.
_TOPICS: Final[dict[int, str]] = {_KeyType.GROUP: OFFSETS_TOPIC, _KeyType.TRANSACTION: TRANSACTION_TOPIC}


def handle(
    call: Call, request: FindCoordinatorRequest
) -> Steps[FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]]:
    topic = _TOPICS.get(request.key_type)
    if topic is not None and call.services.metadata.topic(topic) is None:
        for piece in pieces(request.coordinator_keys if call.version >= _BATCHED_FROM else [request.key]):
            if any(_refusal(call, request.key_type, key) == ErrorCode.NONE for key in piece):
                return _create_and_answer(call, request, topic)
            yield
    return (yield from _answer(call, request))


async def _create_and_answer(call: Call, request: FindCoordinatorRequest, topic: str) -> FindCoordinatorResponse:
    new = new_internal_topic(topic, call.services.config)
    assert new is not None
    # If it cannot be created the answer is that there is no coordinator, and the log says why.
    await call.services.internal_topics.create(new)
    return await call.services.turns.to_end(_answer(call, request))


def _answer(call: Call, request: FindCoordinatorRequest) -> Steps[FindCoordinatorResponse]:
    throttle_ms = call.throttle_ms()
    if call.version >= _BATCHED_FROM:
        # A key that is named again has the same answer, which takes no memory a second time.
        known: dict[str, Coordinator] = {}
        found = []
        for key in request.coordinator_keys:
            if key not in known:
                known[key] = _coordinator(call, request.key_type, key)
                yield from steps_of_name(key)
            found.append(known[key])
            if len(found) % PIECE == 0:
                yield
        return FindCoordinatorResponse(throttle_time_ms=throttle_ms, coordinators=found)
    only = _coordinator(call, request.key_type, request.key)
    return FindCoordinatorResponse(
        throttle_time_ms=throttle_ms,
        error_code=only.error_code,
        error_message=only.error_message or ErrorCode(only.error_code).name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(call: Call, key_type: int, key: str) -> Coordinator:
    error = _refusal(call, key_type, key)
    if error != ErrorCode.NONE:
        message = f"There is no coordinator of type {key_type}." if error == ErrorCode.INVALID_REQUEST else ""
        return _none(key, error, message)
    services = call.services
    if key_type == _KeyType.GROUP:
        state = services.metadata.partition(OFFSETS_TOPIC, services.groups.partition_for(key))
    elif key_type == _KeyType.TRANSACTION:
        state = services.metadata.partition(TRANSACTION_TOPIC, services.transactions.partition_for(key))
    else:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "This broker coordinates no share groups.")
    broker = None if state is None else services.metadata.brokers.get(state.leader)
    endpoint: Endpoint | None = None if broker is None else broker.endpoint(call.listener)
    if state is None or broker is None or endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    if broker.id in services.metadata.doubted or stands_aside(call, state):
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return Coordinator(key=key, node_id=broker.id, host=endpoint.host, port=endpoint.port, error_message="")


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_BROKER, host="", port=-1, error_code=error, error_message=message)


def _is_share_partition(key: str) -> bool:
    return _SHARE_KEY.fullmatch(key) is not None and -(2**31) <= int(key.rpartition(":")[2]) < 2**31


def _refusal(call: Call, key_type: int, key: str) -> ErrorCode:
    """The error that this client gets for this key; NONE where it may know."""
    if key_type == _KeyType.GROUP:
        allowed = call.allowed(Operation.DESCRIBE, Resource.GROUP, key)
        return ErrorCode.NONE if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == _KeyType.TRANSACTION:
        allowed = call.allowed(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, key)
        return ErrorCode.NONE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if key_type == _KeyType.SHARE:
        if call.version < _SHARE_SINCE:
            return ErrorCode.INVALID_REQUEST
        if not call.allowed_on_cluster(Operation.CLUSTER_ACTION):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return ErrorCode.NONE if _is_share_partition(key) else ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_REQUEST
