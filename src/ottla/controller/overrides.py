"""The controller's turns over overrides of topics and brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.config.dynamic import apply_incremental
from ottla.config.errors import ConfigError
from ottla.controller.core import ControllerCore, log
from ottla.controller.interface import ConfigChanges, ConfigOverrides, ConfigResource, ConfigResult, ResourceType
from ottla.controller.refusal import Refusal
from ottla.coordination.interface import Create, Op, SetData
from ottla.coordination.znodes import broker_config_path, encode_config, topic_config_path
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import ErrorCode


class _Plan(NamedTuple):
    resource: ConfigResource
    #: The name that the overrides are kept under.
    name: str
    overrides: dict[str, str]
    op: Op | None


class OverrideTurns:
    def __init__(self, core: ControllerCore) -> None:
        self._core = core

    async def alter(
        self, requests: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool
    ) -> list[ConfigResult]:
        mentions = Counter(request.resource for request in requests)
        results: list[ConfigResult] = []
        plans: list[_Plan] = []
        for request in requests:
            resource = request.resource
            try:
                plans.append(self._plan(request, mentions[resource]))
                results.append(ConfigResult(resource))
            except Refusal as refusal:
                results.append(ConfigResult(resource, refusal.error, refusal.message))
            except ConfigError as error:
                results.append(ConfigResult(resource, error.code, str(error)))
        if validate_only:
            return results
        faults = await self._carry_out([plan for plan in plans if plan.op is not None])
        return [faults.get(result.resource, result) for result in results]

    def _plan(self, request: ConfigChanges | ConfigOverrides, mentions: int) -> _Plan:
        core, resource = self._core, request.resource
        if mentions > 1:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        name, current = self._current(resource)
        kind = "topic" if resource.type is ResourceType.TOPIC else "broker"
        if isinstance(request, ConfigChanges):
            overrides = apply_incremental(kind, current, request.changes)
        else:
            overrides = _without_nulls(request.overrides)
        if resource.type is ResourceType.TOPIC:
            core.settings.check_topic_configs(dict(overrides))
            path, is_there = topic_config_path(name), name in core.context.config_nodes
        else:
            try:
                core.settings.check_broker_configs(name, overrides)
            except ConfigError as error:
                # Kafka's code for brokers; for topics it has one of its own.
                raise Refusal(ErrorCode.INVALID_REQUEST, str(error)) from error
            path, is_there = broker_config_path(name), name in core.context.broker_configs
        data = encode_config(overrides)
        op = None if overrides == current else SetData(path, data) if is_there else Create(path, data)
        return _Plan(resource, name, overrides, op)

    def _current(self, resource: ConfigResource) -> tuple[str, Mapping[str, str]]:
        context = self._core.context
        if resource.type is ResourceType.TOPIC:
            topic = context.topics.get(resource.name)
            if topic is None or resource.name in context.deleting:
                message = f"The topic '{resource.name}' does not exist."
                raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            return resource.name, topic.configs
        name = resource.name or DEFAULT_BROKER
        if name != DEFAULT_BROKER and not (name.isascii() and name.isdigit() and len(name) <= 10):
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {resource.name[:40]}")
        return name, context.broker_configs.get(name, {})

    async def _carry_out(self, plans: Sequence[_Plan]) -> dict[ConfigResource, ConfigResult]:
        """Writes and tells; returns the results of those that the tree refused."""
        core = self._core
        groups = [[plan.op] for plan in plans if plan.op is not None]
        faults: dict[ConfigResource, ConfigResult] = {}
        topics: dict[str, Mapping[str, str]] = {}
        brokers: dict[str, Mapping[str, str]] = {}
        for plan, fault in zip(plans, await core.writes.write(groups), strict=True):
            if fault is not None:
                core.stale = True
                faults[plan.resource] = ConfigResult(plan.resource, ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
            elif plan.resource.type is ResourceType.TOPIC:
                core.context.topics[plan.name].configs = plan.overrides
                core.context.config_nodes.add(plan.name)
                topics[plan.name] = plan.overrides
            else:
                core.context.broker_configs[plan.name] = plan.overrides
                brokers[plan.name] = plan.overrides
        if topics or brokers:
            await core.update(topic_configs=topics, broker_configs=brokers)
            log.info("changed overrides", topics=sorted(topics), brokers=sorted(brokers))
        return faults


def _without_nulls(overrides: Mapping[str, str | None]) -> dict[str, str]:
    for name, value in overrides.items():
        if value is None:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    return {name: value for name, value in overrides.items() if value is not None}
