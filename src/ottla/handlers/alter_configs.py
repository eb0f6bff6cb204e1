"""AlterConfigs (33), versions 0 to 2: replaces all settings of a resource; what is not named falls back."""

from __future__ import annotations

from ottla.controller.interface import ConfigOverrides, ConfigResource
from ottla.handlers.call import Call
from ottla.handlers.config_changes import Changed, change_all
from ottla.protocol.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    changed = await change_all(call, request.resources, _overrides, validate_only=request.validate_only)
    return AlterConfigsResponse(throttle_time_ms=call.throttle_ms(), responses=[_response(each) for each in changed])


def _overrides(named: ConfigResource, asked: AlterConfigsResource) -> ConfigOverrides:
    return ConfigOverrides(named, {config.name: config.value for config in asked.configs})


def _response(changed: Changed) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=changed.error,
        error_message=changed.message,
        resource_type=changed.type_code,
        resource_name=changed.name,
    )
