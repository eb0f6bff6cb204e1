"""ConsumerGroupHeartbeat (68), versions 0 and 1: the one request of the new consumer groups' members (KIP-848)."""

from __future__ import annotations

from functools import partial

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of, serves_consumer_protocol
from ottla.handlers.calls.later import Later
from ottla.handlers.calls.loading import EXPRESSIONS, module_loaded
from ottla.handlers.calls.turns import PausingSteps
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces


def handle(call: Call, request: ConsumerGroupHeartbeatRequest) -> PausingSteps[ConsumerGroupHeartbeatResponse | Later]:
    error = yield from _refusal(call, request)
    if error != ErrorCode.NONE:
        return ConsumerGroupHeartbeatResponse(throttle_time_ms=call.throttle_ms(), error_code=error)
    if request.subscribed_topic_regex:
        yield from module_loaded(call.services.workers, EXPRESSIONS)
    answer = Later()

    def reply(response: ConsumerGroupHeartbeatResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        answer.set(response)

    groups = call.services.groups
    prepared = yield from groups.shard_for_member(request.group_id).prepare_heartbeat(request)
    # The shard may be another one by now: it was loaded again.
    shard = groups.shard_for_member(request.group_id)
    caller = caller_of(call)
    if not call.services.authorizer.allows_all:
        caller = caller._replace(may_describe=partial(call.allowed_on_topic, Operation.DESCRIBE))
    shard.consumer_group_heartbeat(caller, request, reply, prepared)
    return answer


def _refusal(call: Call, request: ConsumerGroupHeartbeatRequest) -> Steps[ErrorCode]:
    if not serves_consumer_protocol(call):
        return ErrorCode.UNSUPPORTED_VERSION
    if not allowed_on_group(call, Operation.READ, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not call.services.authorizer.allows_all:
        for piece in pieces(request.subscribed_topic_names or ()):
            if not all(call.allowed_on_topic(Operation.DESCRIBE, name) for name in piece):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            yield
    return ErrorCode.NONE
