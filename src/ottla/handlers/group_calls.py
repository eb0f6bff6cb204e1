"""What the handlers of groups share: who calls, and whether they may."""

from __future__ import annotations

from ottla.groups.caller import Caller, Now
from ottla.handlers.call import Call
from ottla.security.authorizer import Operation, Resource


def caller_of(call: Call) -> Caller:
    """The client as coordinators see it, and as tools show it."""
    now = Now(call.now_ms, call.services.clock.monotonic_ms())
    return Caller(call.client_id or "", f"/{call.host}", call.version, now)


def allowed_on_group(call: Call, operation: Operation, group_id: str) -> bool:
    return call.allowed(operation, Resource.GROUP, group_id)


def serves_consumer_protocol(call: Call) -> bool:
    return "consumer" in call.services.config.groups.rebalance_protocols
