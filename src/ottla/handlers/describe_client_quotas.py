"""DescribeClientQuotas (48), versions 0 and 1: clients have no quotas, so that no filter finds any.

AlterClientQuotas is not served: a quota that is stored and holds nobody back would be a promise that is not kept. A
client learns from ApiVersions that there is none such, and does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ottla.security.authorizer import Operation

_IP: Final = "ip"
_TYPES: Final = frozenset({"user", "client-id", _IP})
#: How a component matches: this name, the default's, or any name.
_EXACT, _DEFAULT, _SPECIFIED = range(3)

_Fault = tuple[ErrorCode, str]


def handle(call: Call, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    response = DescribeClientQuotasResponse(throttle_time_ms=call.throttle_ms(), error_message="", entries=[])
    fault = _fault(call, request.components)
    if fault is not None:
        response.error_code, response.error_message = fault
        response.entries = None
    return response


def _fault(call: Call, components: Iterable[ComponentData]) -> _Fault | None:
    if not call.allowed_on_cluster(Operation.DESCRIBE_CONFIGS):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    seen: set[str] = set()
    # A long list ends early: there are three types, and each may come once.
    for component in components:
        kind = component.entity_type
        if not kind:
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if kind in seen:
            return ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
        if kind not in _TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        message = _match_fault(component)
        if message is not None:
            return ErrorCode.INVALID_REQUEST, message
        seen.add(kind)
    if _IP in seen and len(seen) > 1:
        return ErrorCode.INVALID_REQUEST, (
            "Invalid entity filter component combination. "
            "IP filter component should not be used with user or clientId filter component."
        )
    return None


def _match_fault(component: ComponentData) -> str | None:
    matched, text = component.match_type, component.match
    if matched == _EXACT:
        return "Request specified MATCH_TYPE_EXACT, but set match string to null." if text is None else None
    if matched not in (_DEFAULT, _SPECIFIED):
        return f"Unknown match type {matched}"
    if text is None:
        return None
    name = "MATCH_TYPE_DEFAULT" if matched == _DEFAULT else "MATCH_TYPE_SPECIFIED"
    return f"Request specified {name}, but also specified a match string."
