"""Plans of new topics and new partitions: what is asked is checked, placed, and turned into writes. Pure.

The sentences are those of Kafka 4's controller, since tools show them to people and scripts look for them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.config.errors import ConfigError
from ottla.controller.deciding.context import ClusterContext, TopicContext, VersionedState
from ottla.controller.deciding.placement import Assignment, growth_start, placing
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.deciding.rules import PARTITIONS_PER_REQUEST_MAX, ControllerSettings
from ottla.controller.electing.partitions import first_state
from ottla.controller.interface import BROKER_DEFAULT, NewPartitions, TopicToCreate
from ottla.coordination.interface import Create, Op, SetData
from ottla.coordination.znodes import (
    TopicAssignment,
    encode_config,
    encode_state,
    encoding_topic,
    partition_path,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.model import CLUSTER_METADATA_TOPIC, BrokerId, ErrorCode, TopicId, topic_name_fault
from ottla.ports.entropy import Entropy
from ottla.steps import Steps, pieces

#: Each is some ten microseconds of planning.
_PARTITIONS_A_STEP: Final = 8


class TopicPlan(NamedTuple):
    topic: TopicContext
    ops: list[Op]


class GrowthPlan(NamedTuple):
    topic: str
    #: The added partitions.
    replicas: dict[int, Assignment]
    states: dict[int, VersionedState]
    ops: list[Op]


def plan_topic(
    context: ClusterContext, new: TopicToCreate, settings: ControllerSettings, entropy: Entropy, topic_id: TopicId
) -> Steps[TopicPlan]:
    """Raises Refusal. That the name is free is checked apart (`check_name_is_free`)."""
    if new.name == CLUSTER_METADATA_TOPIC:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {new.name} is prohibited.")
    if fault := topic_name_fault(new.name):
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
    configs = _checked_configs(new, settings)
    yield
    placing = _manual_placement(context, new) if new.assignments else _placement(context, new, settings, entropy)
    replicas = yield from placing
    topic = TopicContext(new.name, topic_id, dict(enumerate(replicas)), configs=configs)
    topic.states, state_ops = yield from first_states(context, topic, topic.replicas)
    assignment = yield from encoding_topic(TopicAssignment(topic_id, topic.replicas, {}, {}))
    config_path, config = topic_config_path(new.name), encode_config(configs)
    ops: list[Op] = [
        # Overrides of a topic that was deleted by hand are replaced.
        SetData(config_path, config) if new.name in context.config_nodes else Create(config_path, config),
        Create(topic_path(new.name), assignment),
        Create(partitions_path(new.name)),
        *state_ops,
    ]
    return TopicPlan(topic, ops)


def check_name_is_free(name: str, folded: Mapping[str, str], deleting: Container[str]) -> None:
    """`folded` has each topic's name under its `fold`. The name of one that is `deleting` is taken until all of its
    brokers have deleted it, as with a controller of Kafka 3.9."""
    if name in deleting:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
    other = folded.get(fold(name))
    if other == name:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if other is not None:
        message = f"Topic '{name}' collides with existing topic: {other}"
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def check_whole_request(topics: Sequence[TopicToCreate], settings: ControllerSettings) -> Steps[None]:
    """Raises Refusal, and then nothing of the request is looked at further."""
    partitions = 0
    for piece in pieces(topics):
        for topic in piece:
            if topic.assignments:
                partitions += len(topic.assignments)
            else:
                partitions += (
                    settings.num_partitions if topic.partitions == BROKER_DEFAULT else max(topic.partitions, 0)
                )
        check_amount(partitions)
        yield


def check_amount(partitions: int) -> None:
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        raise Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def check_not_repeated(mentions: int) -> None:
    """How often one request names the topic: twice, and neither can be what was meant."""
    if mentions > 1:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def fold(name: str) -> str:
    """Names that differ in nothing but '.' and '_' are one name in Kafka's metrics."""
    return name.replace(".", "_")


def first_states(
    context: ClusterContext, topic: TopicContext, partitions: Mapping[int, Assignment]
) -> Steps[tuple[dict[int, VersionedState], list[Op]]]:
    """States of partitions that are new in the tree, and the writes that make their nodes."""
    states: dict[int, VersionedState] = {}
    ops: list[Op] = []
    for piece in pieces(partitions.items(), _PARTITIONS_A_STEP):
        for partition, replicas in piece:
            ops.append(Create(partition_path(topic.name, partition)))
            live = context.live_replicas(topic.name, partition, replicas)
            if state := first_state(replicas, live, context.controller_epoch):
                states[partition] = VersionedState(state, 0)
                ops.append(Create(state_path(topic.name, partition), encode_state(state)))
        yield
    return states, ops


def plan_growth(context: ClusterContext, request: NewPartitions) -> Steps[GrowthPlan]:
    """Raises Refusal."""
    topic = context.topics.get(request.topic)
    if topic is None or request.topic in context.deleting:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before = len(topic.replicas)
    if request.total == before:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {before} partition(s).")
    if request.total < before:
        message = (
            f"The topic {topic.name} currently has {before} partition(s); {request.total} would not be an increase."
        )
        raise Refusal(ErrorCode.INVALID_PARTITIONS, message)
    if topic.adding or topic.removing:
        raise Refusal(ErrorCode.REASSIGNMENT_IN_PROGRESS, "A partition reassignment is in progress for the topic.")
    added = request.total - before
    check_amount(added)
    first = topic.replicas.get(0, ())
    if request.assignments is not None:
        placed = yield from _manual_growth(context, request.assignments, added, len(first))
    else:
        racks = _places(context, len(first))
        _check_replication_factor(len(first), len(racks))
        start = growth_start(racks, first[0])
        placed = yield from placing(racks, added, len(first), start=start, shift=start, first_partition=before)
    replicas = dict(enumerate(placed, before))
    states, ops = yield from first_states(context, topic, replicas)
    assignment = TopicAssignment(topic.id, topic.replicas | replicas, topic.adding, topic.removing)
    encoded = yield from encoding_topic(assignment)
    return GrowthPlan(topic.name, replicas, states, [SetData(topic_path(topic.name), encoded, topic.version), *ops])


def _checked_configs(new: TopicToCreate, settings: ControllerSettings) -> dict[str, str]:
    try:
        settings.check_topic_configs(new.configs)
    except ConfigError as error:
        raise Refusal(error.code, str(error)) from error
    return {name: value for name, value in new.configs.items() if value is not None}


def _placement(
    context: ClusterContext, new: TopicToCreate, settings: ControllerSettings, entropy: Entropy
) -> Steps[list[Assignment]]:
    partitions = settings.num_partitions if new.partitions == BROKER_DEFAULT else new.partitions
    factor = new.replication_factor
    factor = settings.default_replication_factor if factor == BROKER_DEFAULT else factor
    if factor <= 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if partitions <= 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise Refusal(ErrorCode.INVALID_PARTITIONS, message)
    racks = _places(context, factor)
    _check_replication_factor(factor, len(racks))
    start, shift = entropy.below(len(racks)), entropy.below(len(racks))
    return (yield from placing(racks, partitions, factor, start=start, shift=shift))


def _places(context: ClusterContext, factor: int) -> dict[BrokerId, str | None]:
    """Live brokers and their racks; those that are about to stop only where there are too few others."""
    racks = {broker.id: broker.rack for broker in context.brokers.values()}
    staying = {broker: rack for broker, rack in racks.items() if broker not in context.shutting_down}
    return staying if len(staying) >= factor else racks


def _manual_placement(context: ClusterContext, new: TopicToCreate) -> Steps[list[Assignment]]:
    given = "A manual partition assignment was specified, but"
    if new.replication_factor != BROKER_DEFAULT:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{given} replication factor was not set to -1.")
    if new.partitions != BROKER_DEFAULT:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{given} numPartitions was not set to -1.")
    placed: dict[int, Assignment] = {}
    for partition, replicas in new.assignments:
        if partition in placed:
            message = f"Found multiple manual partition assignments for partition {partition}"
            raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        factor = len(next(iter(placed.values()))) if placed else None
        check_replicas(context, replicas, factor)
        placed[partition] = replicas
        yield
    if sorted(placed) != list(range(len(placed))):
        message = "partitions should be a consecutive 0-based integer sequence"
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [placed[partition] for partition in range(len(placed))]


def _manual_growth(
    context: ClusterContext, assignments: Sequence[Assignment], added: int, factor: int
) -> Steps[Sequence[Assignment]]:
    if len(assignments) != added:
        given = len(assignments)
        message = f"Attempted to add {added} additional partition(s), but only {given} assignment(s) were specified."
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    for replicas in assignments:
        check_replicas(context, replicas, factor)
        yield
    return assignments


def check_replicas(context: ClusterContext, replicas: Sequence[BrokerId], factor: int | None) -> None:
    """`factor` is how many replicas the partitions before have."""
    includes = "The manual partition assignment includes"
    fault = None if replicas else f"{includes} an empty replica list."
    before: set[BrokerId] = set()
    for broker in replicas:
        # No more of them are looked at than there are brokers, and one: a request may name a million.
        if broker not in context.brokers:
            fault = f"{includes} broker {broker}, but no such broker is registered."
        elif broker in before:
            fault = f"{includes} the broker {broker} more than once."
        if fault:
            break
        before.add(broker)
    if not fault and factor is not None and len(replicas) != factor:
        fault = (
            f"{includes} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )
    if fault:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)


def _check_replication_factor(factor: int, brokers: int) -> None:
    if factor > brokers:
        message = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {brokers} broker(s) are registered."
        )
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
