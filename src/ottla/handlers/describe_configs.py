"""DescribeConfigs (32), versions 1 to 4: settings of topics and brokers, where they come from, and what they mean."""

from __future__ import annotations

from ottla.config.describe import ConfigEntry, describe_all_brokers, describe_broker, describe_topic
from ottla.controller.interface import ConfigResource, ConfigResult, ResourceType
from ottla.handlers.call import Call
from ottla.handlers.config_resources import ALL_BROKERS, refusal, resource
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.security.authorizer import Operation


def handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results = []
    for asked in request.resources:
        named = resource(asked.resource_type, asked.resource_name)
        refused = named if isinstance(named, ConfigResult) else refusal(call, named, Operation.DESCRIBE_CONFIGS)
        if refused is not None:
            result = DescribeConfigsResult(error_code=refused.error, error_message=refused.message, configs=[])
        else:
            assert isinstance(named, ConfigResource)
            # No names at all and an empty list both ask for everything.
            entries = _entries(call, named, set(asked.configuration_keys) if asked.configuration_keys else None)
            result = DescribeConfigsResult(
                error_code=ErrorCode.NONE,
                error_message=None,
                configs=[_setting(entry, request) for entry in entries],
            )
        result.resource_type = asked.resource_type
        result.resource_name = asked.resource_name
        results.append(result)
    return DescribeConfigsResponse(throttle_time_ms=call.throttle_ms(), results=results)


def _entries(call: Call, named: ConfigResource, names: set[str] | None) -> list[ConfigEntry]:
    config = call.services.config
    if named.type == ResourceType.TOPIC:
        return describe_topic(call.services.metadata.topic_config(named.name), config, names)
    if named.name == ALL_BROKERS:
        return describe_all_brokers(config, names)
    return describe_broker(config, names)


def _setting(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = []
    if request.include_synonyms:
        synonyms = [DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms,
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
