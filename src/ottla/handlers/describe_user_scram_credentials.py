"""DescribeUserScramCredentials (50), version 0: no user has a password here.

AlterUserScramCredentials is not served: without SASL a password that is stored would let nobody in. A client learns
from ApiVersions that there is none such, and does not wait.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces

#: Of one request. Each is answered with a sentence of its own, fifty times as long as what a frame needs to name it.
USERS_MAX: Final = 10_000


def handle(call: Call, request: DescribeUserScramCredentialsRequest) -> Steps[DescribeUserScramCredentialsResponse]:
    response = DescribeUserScramCredentialsResponse(throttle_time_ms=call.throttle_ms(), error_message="", results=[])
    users = request.users or []
    if not call.allowed_on_cluster(Operation.DESCRIBE):
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        response.error_message = "Cluster authorization failed."
        return response
    if len(users) > USERS_MAX:
        response.error_code = ErrorCode.POLICY_VIOLATION
        response.error_message = f"More than {USERS_MAX} users: ask for fewer at a time."
        return response
    times: Counter[str] = Counter()
    for piece in pieces(users):
        times.update(user.name for user in piece)
        yield
    for counted in pieces(times.items()):
        response.results.extend(_result(user, count) for user, count in counted)
        yield
    return response


def _result(user: str, times: int) -> DescribeUserScramCredentialsResult:
    error = ErrorCode.RESOURCE_NOT_FOUND
    message = f"Attempt to describe a user credential that does not exist: {user}"
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=message, credential_infos=[])
