"""AlterConfigs (33), versions 0 to 2: replaces all settings of a resource; what is not named falls back."""

from __future__ import annotations

from collections.abc import Awaitable

from ottla.config.dynamic import CHANGES_MAX
from ottla.controller.interface import ConfigOverrides, ConfigResult, ConfigTarget
from ottla.handlers.calls.call import Call
from ottla.handlers.configs.changes import ConfigChangeResult, change_all
from ottla.model import ErrorCode
from ottla.protocol.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ottla.steps import Steps


def handle(call: Call, request: AlterConfigsRequest) -> Steps[Awaitable[AlterConfigsResponse]]:
    def respond(results: list[AlterConfigsResourceResponse]) -> AlterConfigsResponse:
        return AlterConfigsResponse(throttle_time_ms=call.throttle_ms(), responses=results)

    return change_all(call, request.resources, _overrides, respond, _result, validate_only=request.validate_only)


def _overrides(named: ConfigTarget, asked: AlterConfigsResource) -> ConfigOverrides | ConfigResult:
    if len(asked.configs) > CHANGES_MAX:
        message = f"more than {CHANGES_MAX} changes in one request"
        return ConfigResult(named, ErrorCode.POLICY_VIOLATION, message)
    overrides = {config.name: config.value for config in asked.configs}
    if len(overrides) < len(asked.configs):
        return ConfigResult(named, ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    return ConfigOverrides(named, overrides)


def _result(changed: ConfigChangeResult) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=changed.error,
        error_message=changed.message,
        resource_type=changed.type_code,
        resource_name=changed.name,
    )
