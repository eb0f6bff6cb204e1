"""Reads the whole tree into a context: at a start, and whenever a write's result is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ottla.controller.deciding.context import ClusterContext, TopicContext, VersionedState
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Coordination, Stat
from ottla.coordination.znodes import (
    BROKER_CONFIGS,
    BROKER_IDS,
    DELETE_TOPICS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    TOPICS,
    LeaderAndIsr,
    broker_config_path,
    broker_path,
    decode_broker,
    decode_config,
    decode_state,
    decode_topic,
    entity_name,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.metadata.updates import DEFAULT_BROKER, BrokerEndpoints
from ottla.model import BrokerId, topic_name_fault

#: Requests on their way at once, where a level of the tree is listed: all of them begin in one turn of the loop.
_LISTED_AT_ONCE: Final = 100


async def load_brokers(coordination: Coordination) -> dict[BrokerId, BrokerEndpoints]:
    names = [name for name in await _children(coordination, BROKER_IDS) if name.isdigit()]
    brokers: dict[BrokerId, BrokerEndpoints] = {}
    for name, path, (data, stat) in await _nodes(coordination, {name: broker_path(int(name)) for name in names}):
        registration = decode_broker(path, data)
        broker_id = BrokerId(int(name))
        brokers[broker_id] = BrokerEndpoints(broker_id, registration.endpoints, registration.rack, stat.czxid)
    return brokers


async def load_topics(coordination: Coordination, context: ClusterContext) -> None:
    """Fills in topics, their partitions' states, their overrides, and which are being deleted."""
    # A name that no broker would take was put there by hand, and would become a folder's name.
    names = [name for name in await _children(coordination, TOPICS) if topic_name_fault(name) is None]
    for name, path, (data, _) in await _nodes(coordination, {name: topic_path(name) for name in names}):
        assignment = decode_topic(path, data)
        context.add_topic(
            TopicContext(name, assignment.topic_id, assignment.replicas, assignment.adding, assignment.removing)
        )
    context.config_nodes = set(await _children(coordination, TOPIC_CONFIGS))
    configured = [name for name in context.topics if name in context.config_nodes]
    for name, path, (data, _) in await _nodes(coordination, {name: topic_config_path(name) for name in configured}):
        context.topics[name].configs = decode_config(path, data)
    wanted = [(topic.name, partition) for topic in context.topics.values() for partition in topic.replicas]
    paths = [state_path(name, partition) for name, partition in wanted]
    # Most partitions of a cluster are in a handful of states: each is decoded and kept once.
    decoded: dict[bytes, LeaderAndIsr] = {}
    for (name, partition), path, found in zip(wanted, paths, await coordination.get_many(paths), strict=True):
        if found is not None:
            data, stat = found
            state = decoded.get(data)
            if state is None:
                state = decoded[data] = decode_state(path, data)
            context.topics[name].states[partition] = VersionedState(state, stat.version)
    context.deleting = set(await _children(coordination, DELETE_TOPICS))


async def load_topic_configs(coordination: Coordination) -> dict[str, dict[str, str]]:
    """Of all topics that have a node for them."""
    names = [name for name in await _children(coordination, TOPIC_CONFIGS) if topic_name_fault(name) is None]
    nodes = await _nodes(coordination, {name: topic_config_path(name) for name in names})
    return {name: decode_config(path, data) for name, path, (data, _) in nodes}


async def load_broker_configs(coordination: Coordination) -> dict[str, dict[str, str]]:
    names = [name for name in await _children(coordination, BROKER_CONFIGS) if name.isdigit() or name == DEFAULT_BROKER]
    nodes = await _nodes(coordination, {name: broker_config_path(name) for name in names})
    return {name: decode_config(path, data) for name, path, (data, _) in nodes}


async def load_group_configs(coordination: Coordination) -> dict[str, dict[str, str]]:
    paths = {name: f"{GROUP_CONFIGS}/{name}" for name in await _children(coordination, GROUP_CONFIGS)}
    nodes = await _nodes(coordination, paths)
    return {entity_name(name): decode_config(path, data) for name, path, (data, _) in nodes}


async def below(coordination: Coordination, path: str) -> list[str]:
    """Paths of all nodes below and the node itself, children first: the order in which they can be deleted."""
    found: list[str] = []
    level = [path]
    while level:
        found.extend(level)
        following: list[str] = []
        for start in range(0, len(level), _LISTED_AT_ONCE):
            parents = level[start : start + _LISTED_AT_ONCE]
            listed = await asyncio.gather(*(_children(coordination, parent) for parent in parents))
            following += [f"{parent}/{name}" for parent, names in zip(parents, listed, strict=True) for name in names]
        level = following
    found.reverse()
    return found


async def _children(coordination: Coordination, path: str) -> list[str]:
    try:
        return (await coordination.children(path))[0]
    except NoNode:
        return []


async def _nodes(coordination: Coordination, paths: dict[str, str]) -> Iterable[tuple[str, str, tuple[bytes, Stat]]]:
    """(name, path, node) of those that are there."""
    found = await coordination.get_many(list(paths.values()))
    return [(name, path, node) for (name, path), node in zip(paths.items(), found, strict=True) if node is not None]
