"""DescribeCluster (60), versions 0 to 2: brokers, controller and id of the cluster."""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.protocol.hot.metadata import OPERATIONS_UNKNOWN
from ottla.security.authorizer import CLUSTER_NAME, Operation, Resource

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    metadata = call.services.metadata
    if request.endpoint_type != _BROKERS:
        known = request.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            throttle_time_ms=call.throttle_ms(),
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="This endpoint belongs to a broker." if known else "There is no such type of endpoint.",
            cluster_id="",
            brokers=[],
        )
    brokers = [
        DescribeClusterBroker(broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        for broker in metadata.brokers.values()
        if (endpoint := broker.endpoint(call.listener)) is not None
    ]
    operations = OPERATIONS_UNKNOWN
    if request.include_cluster_authorized_operations and call.allowed_on_cluster(Operation.DESCRIBE):
        operations = call.authorized_operations(Resource.CLUSTER, CLUSTER_NAME)
    return DescribeClusterResponse(
        throttle_time_ms=call.throttle_ms(),
        error_message=None,
        cluster_id=metadata.cluster_id or "",
        controller_id=metadata.controller_id,
        brokers=brokers,
        cluster_authorized_operations=operations,
    )
