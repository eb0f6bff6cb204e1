"""DescribeAcls (29), versions 1 to 3: there are no access lists (`access_lists`)."""

from __future__ import annotations

from ottla.handlers.calls.access_lists import described
from ottla.handlers.calls.call import Call
from ottla.protocol.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(call: Call, _: DescribeAclsRequest) -> DescribeAclsResponse:
    error, message = described(call)
    return DescribeAclsResponse(
        throttle_time_ms=call.throttle_ms(), error_code=error, error_message=message, resources=[]
    )
