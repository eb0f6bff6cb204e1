"""What Kafka without an authorizer answers to requests about access lists.

An authorizer (`security/`) decides what is allowed, and none of those there are keeps lists that clients could read
or change. MirrorMaker 2 asks for them with each synchronisation, and goes on without them on this answer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode
from ottla.security.authorizer import Operation


class NoLists(NamedTuple):
    error: ErrorCode
    message: str


_DENIED: Final = NoLists(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def described(call: Call) -> NoLists:
    if not call.allowed_on_cluster(Operation.DESCRIBE):
        return _DENIED
    return NoLists(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")


def altered(call: Call) -> NoLists:
    if not call.allowed_on_cluster(Operation.ALTER):
        return _DENIED
    return NoLists(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
