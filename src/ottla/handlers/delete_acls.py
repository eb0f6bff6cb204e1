"""DeleteAcls (31), versions 1 to 3: there are no access lists (`access_lists`)."""

from __future__ import annotations

from ottla.handlers.calls.access_lists import altered
from ottla.handlers.calls.call import Call
from ottla.protocol.generated.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    error, message = altered(call)
    result = DeleteAclsFilterResult(error_code=error, error_message=message, matching_acls=[])
    # One object for all: a frame may ask for a million.
    return DeleteAclsResponse(throttle_time_ms=call.throttle_ms(), filter_results=[result] * len(request.filters))
