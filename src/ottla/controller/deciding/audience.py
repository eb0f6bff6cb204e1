"""Who has to hear of what: the orders that follow from a state of the cluster. Pure, and in steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ottla.controller.deciding.context import ClusterContext, TopicContext
from ottla.controller.deciding.makings import Makings
from ottla.controller.deciding.orders import (
    EPOCH_DURING_DELETE,
    MetadataOrder,
    Order,
    ReplicaStop,
    RoleOrder,
    StopOrder,
)
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, TopicPartition
from ottla.steps import Steps, pieces

#: Partitions of some topics.
Partitions = Iterable[tuple[TopicContext, Iterable[int]]]


def role_orders(
    context: ClusterContext,
    partitions: Partitions,
    *,
    is_new: bool = False,
    asked_again: AbstractSet[BrokerId] = frozenset(),
) -> Steps[list[RoleOrder]]:
    """Each live broker has a role in those partitions that it has a replica of.

    A broker that a partition moves to makes its log; of others a missing log is a lost one. Replicas that have failed
    have none, but for brokers that are `asked_again`: what has become of them these answer with.
    """
    states = yield from context.states_of(partitions, is_new=is_new)
    by_broker: dict[BrokerId, list[PartitionState]] = {}
    for piece in pieces(states):
        for state in piece:
            for broker in state.replicas:
                if broker in asked_again or context.is_served(state.topic, state.partition, broker):
                    comes = broker in state.adding_replicas
                    role = state._replace(is_new=True) if comes else state
                    by_broker.setdefault(broker, []).append(role)
        yield
    return [RoleOrder(broker, found, is_new) for broker, found in sorted(by_broker.items())]


def stop_orders(context: ClusterContext, topics: Iterable[str]) -> Steps[list[StopOrder]]:
    """Live brokers delete what they have of topics. What lies on others goes when these start: no tree names it."""
    by_broker: dict[BrokerId, list[ReplicaStop]] = {}
    for name in topics:
        if name in context.topics:
            for piece in pieces(context.topics[name].replicas.items()):
                for partition, replicas in piece:
                    # A deletion leaves the leader epoch as it is: it ends every role.
                    stop = ReplicaStop(TopicPartition(name, partition), EPOCH_DURING_DELETE, delete=True)
                    for broker in replicas:
                        if broker in context.brokers:
                            by_broker.setdefault(broker, []).append(stop)
                yield
    return [StopOrder(broker, found) for broker, found in sorted(by_broker.items())]


def everything(
    context: ClusterContext, makings: Makings, controller_id: BrokerId, brokers: Sequence[BrokerId]
) -> Steps[list[Order]]:
    """For brokers that know nothing, or something older. What is being made stays hidden."""
    topics = list(context.served_topics())
    whole: dict[str, Any] = {
        "controller_epoch": context.controller_epoch,
        "whole": True,
        "cluster_id": context.cluster_id,
        "controller_id": controller_id,
        "brokers": list(context.brokers.values()),
        "topic_configs": {topic.name: dict(topic.configs) for topic in topics},
        "broker_configs": {broker: dict(overrides) for broker, overrides in context.broker_configs.items()},
        "group_configs": {group: dict(overrides) for group, overrides in context.group_configs.items()},
    }
    yield
    shown, new = _parted(topics, makings)
    states = yield from context.states_of(shown)
    orders: list[Order] = [MetadataOrder(MetadataUpdate(**whole, partitions=states), brokers)]
    wanted = set(brokers)
    for partitions, is_new in ((shown, False), (new, True)):
        roles = yield from role_orders(context, partitions, is_new=is_new)
        orders += [order for order in roles if order.broker in wanted]
    stops = yield from stop_orders(context, sorted(context.deleting))
    return [*orders, *(order for order in stops if order.broker in wanted)]


def _parted(
    topics: Sequence[TopicContext], makings: Makings
) -> tuple[list[tuple[TopicContext, list[int]]], list[tuple[TopicContext, list[int]]]]:
    """Those that everybody may see, and those that are being made."""
    shown: list[tuple[TopicContext, list[int]]] = []
    new: list[tuple[TopicContext, list[int]]] = []
    for topic in topics:
        hidden = makings.hidden(topic.name)
        if not hidden:
            shown.append((topic, list(topic.replicas)))
            continue
        new.append((topic, [partition for partition in topic.replicas if partition in hidden]))
        visible = [partition for partition in topic.replicas if partition not in hidden]
        if visible:
            shown.append((topic, visible))
    return shown, new


def settings_update(
    context: ClusterContext,
    *,
    topics_deleted: Sequence[str] = (),
    topic_configs: Mapping[str, Mapping[str, str]] | None = None,
    broker_configs: Mapping[str, Mapping[str, str]] | None = None,
    group_configs: Mapping[str, Mapping[str, str]] | None = None,
) -> MetadataOrder:
    """To all brokers: what is not named stays as it is."""
    return MetadataOrder(
        MetadataUpdate(
            controller_epoch=context.controller_epoch,
            topics_deleted=topics_deleted,
            topic_configs=topic_configs or {},
            broker_configs=broker_configs or {},
            group_configs=group_configs or {},
        )
    )


def shown_partitions(context: ClusterContext, states: Sequence[PartitionState]) -> MetadataOrder:
    return MetadataOrder(MetadataUpdate(controller_epoch=context.controller_epoch, partitions=states))


def live_brokers(context: ClusterContext) -> MetadataOrder:
    brokers = list(context.brokers.values())
    return MetadataOrder(MetadataUpdate(controller_epoch=context.controller_epoch, brokers=brokers))
