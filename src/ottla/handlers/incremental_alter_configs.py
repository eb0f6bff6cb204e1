"""IncrementalAlterConfigs (44), versions 0 and 1: changes single settings of a resource."""

from __future__ import annotations

from ottla.controller.interface import ConfigChanges, ConfigResource
from ottla.handlers.call import Call
from ottla.handlers.config_changes import Changed, change_all
from ottla.protocol.generated.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    changed = await change_all(call, request.resources, _changes, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=call.throttle_ms(), responses=[_response(each) for each in changed]
    )


def _changes(named: ConfigResource, asked: AlterConfigsResource) -> ConfigChanges:
    return ConfigChanges(named, tuple((c.name, c.config_operation, c.value) for c in asked.configs))


def _response(changed: Changed) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=changed.error,
        error_message=changed.message,
        resource_type=changed.type_code,
        resource_name=changed.name,
    )
