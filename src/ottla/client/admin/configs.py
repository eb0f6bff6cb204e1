"""Admin's configurations: a broker's own are asked of that broker, all others of any."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from ottla.client.admin.results import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ResourceType,
)
from ottla.client.errors import BadAnswer, InvalidRequest, KafkaError, error_of, said_nothing, settled
from ottla.client.wire.cluster import Cluster
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated import alter_configs as whole
from ottla.protocol.generated import describe_configs as described
from ottla.protocol.generated import incremental_alter_configs as incremental

#: Documentation and types of values are asked for and answered from this version on.
_DOCUMENTED: Final = 3


async def describe(
    cluster: Cluster,
    resources: Sequence[ConfigResource],
    names: Sequence[str] | None,
    *,
    synonyms: bool,
    documentation: bool,
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    async def ask(node_id: int | None, group: Sequence[ConfigResource]) -> described.DescribeConfigsResponse:
        connection = await cluster.control(node_id)
        version = connection.version(ApiKey.DESCRIBE_CONFIGS)
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
            include_documentation=documentation and version >= _DOCUMENTED,
        )
        timeout_ms = cluster.settings.request_timeout_ms
        return await connection.ask(request, described.DescribeConfigsResponse, timeout_ms=timeout_ms, at_most=version)

    results: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    errors: dict[ConfigResource, KafkaError] = {}
    for node_id, group in _by_broker(resources).items():
        try:
            answer = await cluster.retrying(lambda node_id=node_id, group=group: ask(node_id, group))  # type: ignore[misc]
        except KafkaError as error:  # what other brokers say, or have done, is not lost with it
            errors |= dict.fromkeys(group, error)
            continue
        for result in answer.results:
            resource = _resource(result.resource_type, result.resource_name)
            if result.error_code:
                errors[resource] = error_of(result.error_code, result.error_message, about=resource.name)
            else:
                results[resource] = {one.name: _entry(one) for one in result.configs}
        _note_unsaid(group, results, errors)
    return settled(results, errors)


async def alter_incrementally(
    cluster: Cluster, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool
) -> None:
    async def ask(node_id: int | None, group: Sequence[ConfigResource]) -> incremental.IncrementalAlterConfigsResponse:
        request = incremental.IncrementalAlterConfigsRequest(
            resources=[
                incremental.AlterConfigsResource(
                    resource_type=one.type,
                    resource_name=one.name,
                    configs=[
                        incremental.AlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in changes[one]
                    ],
                )
                for one in group
            ],
            validate_only=validate_only,
        )
        return await cluster.ask(node_id, request, incremental.IncrementalAlterConfigsResponse)

    results: dict[ConfigResource, None] = {}
    errors: dict[ConfigResource, KafkaError] = {}
    for node_id, group in _by_broker(changes).items():
        try:
            answer = await cluster.retrying(lambda node_id=node_id, group=group: ask(node_id, group))  # type: ignore[misc]
        except KafkaError as error:  # what other brokers say, or have done, is not lost with it
            errors |= dict.fromkeys(group, error)
            continue
        _sort_out(answer.responses, results, errors)
        _note_unsaid(group, results, errors)
    settled(results, errors)


async def alter(
    cluster: Cluster, configs: Mapping[ConfigResource, Mapping[str, str | None]], *, validate_only: bool
) -> None:
    async def ask(node_id: int | None, group: Sequence[ConfigResource]) -> whole.AlterConfigsResponse:
        request = whole.AlterConfigsRequest(
            resources=[
                whole.AlterConfigsResource(
                    resource_type=one.type,
                    resource_name=one.name,
                    configs=[whole.AlterableConfig(name=name, value=value) for name, value in configs[one].items()],
                )
                for one in group
            ],
            validate_only=validate_only,
        )
        return await cluster.ask(node_id, request, whole.AlterConfigsResponse)

    results: dict[ConfigResource, None] = {}
    errors: dict[ConfigResource, KafkaError] = {}
    for node_id, group in _by_broker(configs).items():
        try:
            answer = await cluster.retrying(lambda node_id=node_id, group=group: ask(node_id, group))  # type: ignore[misc]
        except KafkaError as error:  # what other brokers say, or have done, is not lost with it
            errors |= dict.fromkeys(group, error)
            continue
        _sort_out(answer.responses, results, errors)
        _note_unsaid(group, results, errors)
    settled(results, errors)


def _sort_out(
    answered: Sequence[whole.AlterConfigsResourceResponse] | Sequence[incremental.AlterConfigsResourceResponse],
    results: dict[ConfigResource, None],
    errors: dict[ConfigResource, KafkaError],
) -> None:
    for one in answered:
        resource = _resource(one.resource_type, one.resource_name)
        if one.error_code:
            errors[resource] = error_of(one.error_code, one.error_message, about=resource.name)
        else:
            results[resource] = None


def _note_unsaid(
    asked: Sequence[ConfigResource], results: Collection[ConfigResource], errors: dict[ConfigResource, KafkaError]
) -> None:
    errors |= {one: said_nothing(one.name) for one in asked if one not in results and one not in errors}


def _by_broker(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Resources by the broker that must be asked; None for those that any broker knows."""
    groups: dict[int | None, list[ConfigResource]] = {}
    for one in resources:
        node_id = None
        if one.type in {ResourceType.BROKER, ResourceType.BROKER_LOGGER} and one.name:
            if not one.name.isdecimal():
                raise InvalidRequest(f"a broker is named by its number, not {one.name!r}")
            node_id = int(one.name)
        groups.setdefault(node_id, []).append(one)
    return groups


def _resource(number: int, name: str) -> ConfigResource:
    try:
        return ConfigResource(ResourceType(number), name)
    except ValueError:
        raise BadAnswer(f"the broker answered about a resource of the unknown type {number}") from None


def _entry(entry: described.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=_source(entry.config_source),
        read_only=entry.read_only,
        sensitive=entry.is_sensitive,
        type=entry.config_type,
        documentation=entry.documentation or None,
        synonyms=tuple(
            ConfigSynonym(name=one.name, value=one.value, source=_source(one.source)) for one in entry.synonyms
        ),
    )


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
