"""IncrementalAlterConfigs (44), versions 0 and 1: changes single settings of a resource."""

from __future__ import annotations

from collections.abc import Awaitable

from ottla.config.dynamic import CHANGES_MAX
from ottla.controller.interface import ConfigChanges, ConfigTarget
from ottla.handlers.calls.call import Call
from ottla.handlers.configs.changes import ConfigChangeResult, change_all
from ottla.protocol.generated.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.steps import Steps


def handle(call: Call, request: IncrementalAlterConfigsRequest) -> Steps[Awaitable[IncrementalAlterConfigsResponse]]:
    def respond(results: list[AlterConfigsResourceResponse]) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(throttle_time_ms=call.throttle_ms(), responses=results)

    return change_all(call, request.resources, _changes, respond, _result, validate_only=request.validate_only)


def _changes(named: ConfigTarget, asked: AlterConfigsResource) -> ConfigChanges:
    # One too many is enough to be refused.
    configs = asked.configs[: CHANGES_MAX + 1]
    return ConfigChanges(named, tuple((c.name, c.config_operation, c.value) for c in configs))


def _result(changed: ConfigChangeResult) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=changed.error,
        error_message=changed.message,
        resource_type=changed.type_code,
        resource_name=changed.name,
    )
