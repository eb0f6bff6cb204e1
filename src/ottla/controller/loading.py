"""Reads the tree into a context: all of it at a start, and whenever a write's result is not known; else what changed.

Nodes are read some at a time, and decoded in steps: there may be ten thousands, or one of a megabyte. What is read
is decided upon in one turn of the controller, and nothing else changes its context meanwhile. What changes in the tree
meanwhile is seen by the watch that was left with the read, or by the version that a conditional write names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

from ottla import logs
from ottla.controller.deciding.context import ClusterContext, Memory, TopicContext, VersionedState
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Coordination, Stat, Watch
from ottla.coordination.znode_json import DamagedZnode
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
    decoding_topic,
    entity_name,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.metadata.updates import DEFAULT_BROKER, BrokerEndpoints
from ottla.model import BrokerId, TopicPartition, topic_name_fault
from ottla.steps import Steps, in_turns, pieces

log = logs.logger("controller")

T = TypeVar("T")
K = TypeVar("K")

#: Requests on their way at once, where a level of the tree is listed: all of them begin in one turn of the loop.
_LISTED_AT_ONCE: Final = 100
#: The same, where nodes are read: with a watch on each, every one of them begins in a task of its own.
READ_AT_ONCE: Final = 250

#: What was asked for, its path, and the node if it is there.
_Nodes = Sequence[tuple[K, str, tuple[bytes, Stat] | None]]

#: Of those who have seen nothing before.
NO_MEMORY: Final[Memory] = ClusterContext()

#: Called with each node that cannot be read. What it raises ends the loading; where it returns the node is passed over.
OnDamage = Callable[[DamagedZnode], None]


def refuse(damaged: DamagedZnode) -> None:
    """At a start: a tree that was changed by hand must not be guessed at."""
    raise damaged


def leave_alone(damaged: DamagedZnode) -> None:
    """While brokers serve: one node that somebody has damaged does not stop what has to do with others."""
    log.error("a node of the tree cannot be read, and is left alone", fault=str(damaged))


def _decoded(decode: Callable[[str, bytes], T], path: str, data: bytes, on_damage: OnDamage) -> T | None:
    try:
        return decode(path, data)
    except DamagedZnode as damaged:
        on_damage(damaged)
        return None


async def load_brokers(
    coordination: Coordination, watch: Watch | None = None, on_damage: OnDamage = refuse
) -> dict[BrokerId, BrokerEndpoints]:
    """`watch` is left on the list, and on each of them."""
    names = [name for name in await children_of(coordination, BROKER_IDS, watch) if name.isdigit()]
    brokers: dict[BrokerId, BrokerEndpoints] = {}
    paths = ((name, broker_path(int(name))) for name in names)
    for some in pieces(paths, READ_AT_ONCE):
        for name, path, (data, stat) in _there(await _nodes(coordination, some, watch)):
            registration = _decoded(decode_broker, path, data, on_damage)
            if registration is not None:
                broker_id = BrokerId(int(name))
                brokers[broker_id] = BrokerEndpoints(broker_id, registration.endpoints, registration.rack, stat.czxid)
    return brokers


async def topic_names(coordination: Coordination, watch: Watch | None = None) -> list[str]:
    return await _done(_sound(await children_of(coordination, TOPICS, watch)))


def _sound(names: Sequence[str]) -> Steps[list[str]]:
    """A name that no broker would take was put there by hand, and would become a folder's name."""
    found: list[str] = []
    for piece in pieces(names):
        found += [name for name in piece if topic_name_fault(name) is None]
        yield
    return found


async def load_topics(
    coordination: Coordination,
    context: ClusterContext,
    watch: Watch | None = None,
    on_damage: OnDamage = refuse,
    memory: Memory = NO_MEMORY,
) -> None:
    """Fills in topics, their partitions' states, their overrides, and which are being deleted.

    `watch` is left on the list of topics and on each of them: partitions have none of their own. What cannot be read is
    as it is remembered.
    """
    names = await topic_names(coordination, watch)
    config_nodes = set(await children_of(coordination, TOPIC_CONFIGS))
    for topic in await load_assignments(coordination, names, watch, on_damage):
        context.add_topic(topic)
    for name in names:
        if name not in context.topics and (remembered := memory.topic(name)) is not None:
            context.add_topic(remembered)
    context.config_nodes = config_nodes
    await load_parts(coordination, list(context.topics.values()), config_nodes, on_damage, memory)
    context.deleting = set(await children_of(coordination, DELETE_TOPICS))


async def load_assignments(
    coordination: Coordination, names: Iterable[str], watch: Watch | None = None, on_damage: OnDamage = refuse
) -> list[TopicContext]:
    """Those that there are."""
    found: list[TopicContext] = []
    for some in pieces(((name, topic_path(name)) for name in names), READ_AT_ONCE):
        await _done(_assignments(await _nodes(coordination, some, watch), found, on_damage))
    return found


def _assignments(nodes: _Nodes[str], found: list[TopicContext], on_damage: OnDamage) -> Steps[None]:
    for name, path, (data, stat) in _there(nodes):
        try:
            topic_id, replicas, adding, removing = yield from decoding_topic(path, data)
        except DamagedZnode as damaged:
            on_damage(damaged)
        else:
            found.append(TopicContext(name, topic_id, replicas, adding, removing, version=stat.version))
        yield


async def load_parts(
    coordination: Coordination,
    topics: Sequence[TopicContext],
    config_nodes: Collection[str],
    on_damage: OnDamage = refuse,
    memory: Memory = NO_MEMORY,
) -> None:
    """Overrides and states of topics."""
    by_name = {topic.name: topic for topic in topics}
    remembered = cache(memory.topic)
    configured = ((name, topic_config_path(name)) for name in by_name if name in config_nodes)
    for some in pieces(configured, READ_AT_ONCE):
        for name, path, (data, _) in _there(await _nodes(coordination, some)):
            configs = _decoded(decode_config, path, data, on_damage)
            if configs is None and (known := remembered(name)) is not None:
                configs = known.configs
            by_name[name].configs = configs or {}
    wanted = (TopicPartition(topic.name, partition) for topic in topics for partition in topic.replicas)
    decoded: dict[bytes, LeaderAndIsr] = {}
    for partitions in pieces(wanted, READ_AT_ONCE):
        for (name, partition), found in await load_states(coordination, partitions, decoded, on_damage):
            if found is None:
                continue
            state, stat = found
            if state is not None:
                by_name[name].states[partition] = VersionedState(state, stat.version)
                by_name[name].written[partition] = stat.mzxid
            else:
                by_name[name].damaged.add(partition)
                known = remembered(name)
                if known is not None and partition in known.states:
                    by_name[name].states[partition] = known.states[partition]


async def load_states(
    coordination: Coordination,
    partitions: Sequence[TopicPartition],
    decoded: dict[bytes, LeaderAndIsr],
    on_damage: OnDamage,
) -> list[tuple[TopicPartition, tuple[LeaderAndIsr | None, Stat] | None]]:
    """Of READ_AT_ONCE partitions at the most. None: it is not there; one that cannot be read is None beside its Stat.

    Most partitions of a cluster are in a handful of states: each is `decoded` and kept once.
    """
    states: list[tuple[TopicPartition, tuple[LeaderAndIsr | None, Stat] | None]] = []
    for tp, path, node in await _nodes(coordination, [(tp, state_path(*tp)) for tp in partitions]):
        if node is None:
            states.append((tp, None))
            continue
        data, stat = node
        state = decoded.get(data) or _decoded(decode_state, path, data, on_damage)
        if state is not None:
            decoded[data] = state
        states.append((tp, (state, stat)))
    return states


async def load_topic_configs(coordination: Coordination, on_damage: OnDamage = refuse) -> dict[str, dict[str, str]]:
    """Of all topics that have a node for them."""
    names = [name for name in await children_of(coordination, TOPIC_CONFIGS) if topic_name_fault(name) is None]
    return await _load_configs(coordination, ((name, topic_config_path(name)) for name in names), on_damage)


async def load_broker_configs(
    coordination: Coordination, on_damage: OnDamage = refuse, memory: Memory = NO_MEMORY
) -> dict[str, dict[str, str]]:
    names = await children_of(coordination, BROKER_CONFIGS)
    paths = ((name, broker_config_path(name)) for name in names if name.isdigit() or name == DEFAULT_BROKER)
    return await _load_configs(coordination, paths, on_damage, memory.broker_overrides)


async def load_group_configs(
    coordination: Coordination, on_damage: OnDamage = refuse, memory: Memory = NO_MEMORY
) -> dict[str, dict[str, str]]:
    names = await children_of(coordination, GROUP_CONFIGS)
    paths = ((entity_name(name), f"{GROUP_CONFIGS}/{name}") for name in names)
    return await _load_configs(coordination, paths, on_damage, memory.group_overrides)


async def _load_configs(
    coordination: Coordination,
    paths: Iterable[tuple[str, str]],
    on_damage: OnDamage,
    remembered: Callable[[str], Mapping[str, str]] = NO_MEMORY.broker_overrides,
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for some in pieces(paths, READ_AT_ONCE):
        for name, path, (data, _) in _there(await _nodes(coordination, some)):
            configs = _decoded(decode_config, path, data, on_damage)
            # There is a node, whatever it says.
            found[name] = dict(remembered(name)) if configs is None else configs
    return found


async def below(coordination: Coordination, path: str) -> list[str]:
    """Paths of all nodes below and the node itself, children first: the order in which they can be deleted."""
    found: list[str] = []
    level = [path]
    while level:
        found.extend(level)
        following: list[str] = []
        for start in range(0, len(level), _LISTED_AT_ONCE):
            parents = level[start : start + _LISTED_AT_ONCE]
            listed = await asyncio.gather(*(children_of(coordination, parent) for parent in parents))
            following += [f"{parent}/{name}" for parent, names in zip(parents, listed, strict=True) for name in names]
        level = following
    found.reverse()
    return found


async def children_of(coordination: Coordination, path: str, watch: Watch | None = None) -> list[str]:
    """Names; none where the parent is missing, which is watched for then."""
    return (await children_in(coordination, path, watch))[0]


async def children_in(
    coordination: Coordination, path: str, watch: Watch | None = None
) -> tuple[list[str], Stat | None]:
    """The same, with their parent's; None where that is missing."""
    while True:
        try:
            return await coordination.children(path, watch)
        except NoNode:
            if watch is None or await coordination.exists(path, watch) is None:
                return [], None


async def _done(steps: Steps[T]) -> T:
    loop = asyncio.get_running_loop()
    return await in_turns(steps, lambda: int(loop.time() * 1000))


async def _nodes(coordination: Coordination, paths: Sequence[tuple[K, str]], watch: Watch | None = None) -> _Nodes[K]:
    """Each in its order. Others have their turn meanwhile."""
    wanted = [path for _, path in paths]
    if watch is not None:
        found = await _watched(coordination, wanted, watch)
    else:
        found = await coordination.get_many(wanted)
        # A tree in this process may have answered at once.
        await asyncio.sleep(0)
    return [(key, path, node) for (key, path), node in zip(paths, found, strict=True)]


def _there(nodes: _Nodes[K]) -> Iterator[tuple[K, str, tuple[bytes, Stat]]]:
    for key, path, node in nodes:
        if node is not None:
            yield key, path, node


async def _watched(coordination: Coordination, paths: Sequence[str], watch: Watch) -> list[tuple[bytes, Stat] | None]:
    """As `get_many`, with a watch on each that is there."""

    async def one(path: str) -> tuple[bytes, Stat] | None:
        try:
            return await coordination.get(path, watch)
        except NoNode:
            return None

    return await asyncio.gather(*map(one, paths))
