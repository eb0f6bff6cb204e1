"""FindCoordinator (10), versions 0 to 6.

This broker has no group, transaction or share coordinators yet, and says so with the error that makes a client wait
and ask again, as a Kafka cluster does whose coordinator topics have no leaders.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.call import Call
from ottla.model import NO_BROKER, ErrorCode
from ottla.protocol.generated.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

#: From here on one request asks for several keys.
_BATCHED_FROM: Final = 4
#: group, transaction, share
_KEY_TYPES: Final = frozenset({0, 1, 2})
_MESSAGE: Final = "This broker does not run coordinators."


def handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    known = request.key_type in _KEY_TYPES
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST
    message = _MESSAGE if known else f"There is no coordinator of type {request.key_type}."
    throttle_ms = call.throttle_ms()
    if call.version < _BATCHED_FROM:
        return FindCoordinatorResponse(
            throttle_time_ms=throttle_ms, error_code=error, error_message=message, node_id=NO_BROKER, host="", port=-1
        )
    coordinators = [
        Coordinator(key=key, node_id=NO_BROKER, host="", port=-1, error_code=error, error_message=message)
        for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(throttle_time_ms=throttle_ms, coordinators=coordinators)
