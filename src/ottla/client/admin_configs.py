"""Admin's configurations: a broker's own are asked of that broker, all others of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ottla.client.admin_results import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ResourceType,
)
from ottla.client.cluster import Cluster
from ottla.client.errors import InvalidRequest, KafkaError, error_of, settled
from ottla.protocol.generated import alter_configs as whole
from ottla.protocol.generated import describe_configs as described
from ottla.protocol.generated import incremental_alter_configs as incremental

Value = TypeVar("Value")


async def describe(
    cluster: Cluster,
    resources: Sequence[ConfigResource],
    names: Sequence[str] | None,
    *,
    synonyms: bool,
    documentation: bool,
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    results: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    errors: dict[ConfigResource, KafkaError] = {}
    for node_id, group in _by_broker(resources).items():
        request = described.DescribeConfigsRequest(
            resources=[
                described.DescribeConfigsResource(
                    resource_type=one.type,
                    resource_name=one.name,
                    configuration_keys=None if names is None else list(names),
                )
                for one in group
            ],
            include_synonyms=synonyms,
        )

        async def attempt(
            node_id: int | None = node_id, request: described.DescribeConfigsRequest = request
        ) -> described.DescribeConfigsResponse:
            connection = await (cluster.any_connection() if node_id is None else cluster.connection(node_id, 0))
            version = connection.version(request.API_KEY)
            request.include_documentation = documentation and version >= 3
            return await connection.ask(
                request,
                described.DescribeConfigsResponse,
                timeout_ms=cluster.settings.request_timeout_ms,
                at_most=version,
            )

        answer = await cluster.retrying(attempt if node_id is None else _at(cluster, node_id, attempt))
        for told in answer.results:
            resource = ConfigResource(ResourceType(told.resource_type), told.resource_name)
            if told.error_code:
                errors[resource] = error_of(told.error_code, told.error_message, about=resource.name)
            else:
                results[resource] = {one.name: _entry(one) for one in told.configs}
    return settled(results, errors)
