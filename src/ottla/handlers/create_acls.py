"""CreateAcls (30), versions 1 to 3: there are no access lists (`access_lists`)."""

from __future__ import annotations

from ottla.handlers.calls.access_lists import altered
from ottla.handlers.calls.call import Call
from ottla.protocol.generated.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    error, message = altered(call)
    result = AclCreationResult(error_code=error, error_message=message)
    # One object for all: a frame may ask for a million.
    return CreateAclsResponse(throttle_time_ms=call.throttle_ms(), results=[result] * len(request.creations))
