"""The controller's turns over overrides of topics, brokers and groups."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.config.dynamic import CHANGES_MAX, apply_incremental
from ottla.config.errors import BrokenRuleError, ConfigError
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.elections import UNCLEAN
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.interface import ConfigChanges, ConfigOverrides, ConfigResult, ConfigTarget, ConfigTargetType
from ottla.controller.turns.answers import AnswerTurns
from ottla.coordination.interface import Create, Delete, Op, SetData
from ottla.coordination.notifications import CONFIG_CHANGE_PREFIX, encode_config_change
from ottla.coordination.znodes import (
    broker_config_path,
    encode_config,
    group_config_path,
    sanitized,
    topic_config_path,
)
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import ErrorCode
from ottla.steps import pieces

#: Resources whose changes are looked at, or written, before others have their turn: each takes some ten microseconds.
AT_ONCE: Final = 64


class _Plan(NamedTuple):
    resource: ConfigTarget
    #: The name that the overrides are kept under.
    name: str
    overrides: dict[str, str]
    op: Op | None


class OverrideTurns:
    def __init__(self, core: ControllerCore, answers: AnswerTurns) -> None:
        self._core = core
        self._answers = answers

    async def alter(
        self, requests: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool
    ) -> list[ConfigResult]:
        mentions: Counter[ConfigTarget] = Counter()
        for piece in pieces(requests, AT_ONCE):
            mentions.update(request.resource for request in piece)
            await asyncio.sleep(0)
        results: list[ConfigResult] = []
        plans: list[_Plan] = []
        changes = 0
        for piece in pieces(requests, AT_ONCE):
            for request in piece:
                planned = self._planned(request, mentions[request.resource])
                if isinstance(planned, ConfigResult):
                    results.append(planned)
                    continue
                results.append(ConfigResult(request.resource))
                changes += len(request.changes if isinstance(request, ConfigChanges) else request.overrides)
                if planned.op is not None:
                    plans.append(planned)
            if changes > CHANGES_MAX:
                # Kafka's controller writes no more at once: the whole request is refused.
                raise Refusal(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
            await asyncio.sleep(0)
        if validate_only:
            return results
        faults: dict[ConfigTarget, ConfigResult] = {}
        for plan in pieces(plans, AT_ONCE):
            faults |= await self._carry_out(plan)
        return [faults.get(result.resource, result) for result in results] if faults else results

    def _planned(self, request: ConfigChanges | ConfigOverrides, mentions: int) -> _Plan | ConfigResult:
        try:
            return self._plan(request, mentions)
        except Refusal as refusal:
            return ConfigResult(request.resource, refusal.error, refusal.message)
        except ConfigError as error:
            return ConfigResult(request.resource, error.code, str(error))

    def _plan(self, request: ConfigChanges | ConfigOverrides, mentions: int) -> _Plan:
        resource = request.resource
        if mentions > 1:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        name, current = self._current(resource)
        if isinstance(request, ConfigChanges):
            overrides = apply_incremental(resource.type.name.lower(), current, request.changes)
        else:
            overrides = _without_nulls(request.overrides)
        self._check(resource, name, overrides)
        if resource.type is ConfigTargetType.TOPIC and not self._exists(name):
            # Looked at last, as by Kafka: settings that no topic can have are wrong wherever they go.
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return _Plan(resource, name, overrides, None if overrides == current else self._op(resource, name, overrides))

    def _current(self, resource: ConfigTarget) -> tuple[str, Mapping[str, str]]:
        context = self._core.context
        if resource.type is ConfigTargetType.TOPIC:
            return resource.name, context.topics[resource.name].configs if self._exists(resource.name) else {}
        if resource.type is ConfigTargetType.GROUP:
            return resource.name, context.group_configs.get(resource.name, {})
        name = resource.name or DEFAULT_BROKER
        if name != DEFAULT_BROKER and not (name.isascii() and name.isdigit() and len(name) <= 10):
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {resource.name[:40]}")
        return name, context.broker_configs.get(name, {})

    def _exists(self, topic: str) -> bool:
        context = self._core.context
        return topic in context.topics and topic not in context.deleting

    def _check(self, resource: ConfigTarget, name: str, overrides: Mapping[str, str]) -> None:
        settings = self._core.settings
        if resource.type is ConfigTargetType.TOPIC:
            settings.check_topic_configs(dict(overrides))
        elif resource.type is ConfigTargetType.GROUP:
            settings.check_group_configs(overrides)
        else:
            try:
                settings.check_broker_configs(name, overrides)
            except ConfigError as error:
                # Kafka's code for brokers; for topics and groups it has one of its own.
                raise Refusal(ErrorCode.INVALID_REQUEST, str(error)) from error

    def _op(self, resource: ConfigTarget, name: str, overrides: Mapping[str, str]) -> Op:
        context = self._core.context
        if resource.type is ConfigTargetType.TOPIC:
            path, is_there = topic_config_path(name), name in context.config_nodes
        elif resource.type is ConfigTargetType.GROUP:
            path, is_there = group_config_path(name), name in context.group_configs
            if not overrides:
                return Delete(path)
        else:
            path, is_there = broker_config_path(name), name in context.broker_configs
        data = encode_config(overrides)
        return SetData(path, data) if is_there else Create(path, data)

    async def _carry_out(self, plans: Sequence[_Plan]) -> dict[ConfigTarget, ConfigResult]:
        """Writes and announces; returns the results of those that the tree refused."""
        core = self._core
        groups = [[plan.op, _notification(plan)] for plan in plans if plan.op is not None]
        faults: dict[ConfigTarget, ConfigResult] = {}
        changed: dict[ConfigTargetType, dict[str, Mapping[str, str]]] = {kind: {} for kind in ConfigTargetType}
        decides_elections = False
        for plan, fault in zip(plans, await core.writes.write(groups), strict=True):
            if fault is not None:
                core.stale = True
                faults[plan.resource] = ConfigResult(plan.resource, ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
            else:
                before = self._take(plan)
                decides_elections |= before.get(UNCLEAN) != plan.overrides.get(UNCLEAN)
                changed[plan.resource.type][plan.name] = plan.overrides
        topics, brokers, of_groups = (
            changed[kind] for kind in (ConfigTargetType.TOPIC, ConfigTargetType.BROKER, ConfigTargetType.GROUP)
        )
        if topics or brokers or of_groups:
            core.update(topic_configs=topics, broker_configs=brokers, group_configs=of_groups)
            if decides_elections:
                await self._answers.elect_leaderless()
            log.info("changed overrides", topics=sorted(topics), brokers=sorted(brokers), groups=sorted(of_groups))
        return faults

    def _take(self, plan: _Plan) -> Mapping[str, str]:
        """Returns the overrides before."""
        context = self._core.context
        if plan.resource.type is ConfigTargetType.TOPIC:
            before: Mapping[str, str] = context.topics[plan.name].configs
            context.topics[plan.name].configs = plan.overrides
            context.config_nodes.add(plan.name)
        elif plan.resource.type is ConfigTargetType.BROKER:
            before = context.broker_configs.get(plan.name, {})
            context.broker_configs[plan.name] = plan.overrides
        elif plan.overrides:
            before = context.group_configs.get(plan.name, {})
            context.group_configs[plan.name] = plan.overrides
        else:
            before = context.group_configs.pop(plan.name)
        return before


def _notification(plan: _Plan) -> Create:
    """By which other brokers hear of it: they read overrides themselves."""
    resource = plan.resource
    kind = {ConfigTargetType.TOPIC: "topics", ConfigTargetType.BROKER: "brokers", ConfigTargetType.GROUP: "groups"}
    name = sanitized(plan.name) if resource.type is ConfigTargetType.GROUP else plan.name
    return Create(CONFIG_CHANGE_PREFIX, encode_config_change(f"{kind[resource.type]}/{name}"), sequential=True)


def _without_nulls(overrides: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [name for name, value in overrides.items() if value is None]
    if nulls:
        raise BrokenRuleError(f"Null value not supported for : {', '.join(nulls)}", ErrorCode.INVALID_REQUEST)
    return {name: value for name, value in overrides.items() if value is not None}
