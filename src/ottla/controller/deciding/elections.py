"""Elections of partitions: which are due, as writes that take the place of one state and no other.

A *strategy* says what becomes of one state. An election is decided on a state and its version: where the tree has
another one by then, it is decided anew on that one (`ControllerCore.elect`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.controller.deciding.context import ClusterContext, TopicContext, VersionedState
from ottla.controller.electing import partitions as electing
from ottla.coordination.interface import SetData
from ottla.coordination.znodes import LeaderAndIsr, encode_state, state_path
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import NO_BROKER, BrokerId, Epoch, ErrorCode, TopicPartition
from ottla.steps import Steps

UNCLEAN: Final = "unclean.leader.election.enable"

#: What takes the state's place; why nothing does, where somebody asked; None: nothing is due.
Choice = LeaderAndIsr | ErrorCode | None
Strategy = Callable[[ClusterContext, TopicContext, int, LeaderAndIsr], Choice]


class Election(NamedTuple):
    topic: TopicContext
    partition: int
    before: LeaderAndIsr
    #: With the version of the state before.
    after: VersionedState

    @property
    def op(self) -> SetData:
        return SetData(state_path(self.topic.name, self.partition), encode_state(self.after.state), self.after.version)

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.partition)

    @property
    def is_unclean(self) -> bool:
        leader = self.after.state.leader
        return leader != NO_BROKER and leader not in self.before.isr


class DueElections(NamedTuple):
    elections: list[Election]
    #: Those that somebody asked for, and that are not done.
    refused: dict[TopicPartition, ErrorCode]


def elections(
    context: ClusterContext, partitions: Iterable[tuple[TopicContext, Iterable[int]]], strategy: Strategy
) -> Steps[DueElections]:
    due: list[Election] = []
    refused: dict[TopicPartition, ErrorCode] = {}
    for topic, numbers in partitions:
        for partition in numbers:
            known = topic.states.get(partition)
            if known is None:
                continue
            choice = strategy(context, topic, partition, known.state)
            if isinstance(choice, ErrorCode):
                refused[TopicPartition(topic.name, partition)] = choice
            elif choice is not None:
                due.append(Election(topic, partition, known.state, VersionedState(choice, known.version)))
            yield
    return DueElections(due, refused)


def allows_unclean(context: ClusterContext, topic: TopicContext, broker_id: BrokerId, *, static_default: bool) -> bool:
    """What the topic says, or else the broker that is the controller: its own override, that of all, its file."""
    overrides: tuple[Mapping[str, str], ...] = (
        topic.configs,
        context.broker_configs.get(str(broker_id), {}),
        context.broker_configs.get(DEFAULT_BROKER, {}),
    )
    for found in overrides:
        if (text := found.get(UNCLEAN)) is not None:
            return text.strip().lower() == "true"
    return static_default


class AfterChange:
    """The strategy for whatever has happened to brokers and their directories."""

    def __init__(self, broker_id: BrokerId, *, unclean_default: bool, new_epochs: bool = False) -> None:
        """With `new_epochs` what this broker leads it leads on under a new epoch."""
        self._broker_id = broker_id
        self._unclean_default = unclean_default
        self._new_epochs = new_epochs

    def __call__(self, context: ClusterContext, topic: TopicContext, partition: int, state: LeaderAndIsr) -> Choice:
        replicas = topic.replicas[partition]
        live = context.live_replicas(topic.name, partition, {*replicas, *state.isr})
        leader = state.leader
        leaving = (leader,) if leader in context.shutting_down else ()
        if leaving and not context.is_served(topic.name, partition, leader):
            leaving = ()
        # Looked up only where nobody of the ISR is left: that is rare, and this is asked for each partition.
        unclean = not any(broker in live for broker in state.isr) and allows_unclean(
            context, topic, self._broker_id, static_default=self._unclean_default
        )
        after = electing.after_change(state, replicas, live, context.controller_epoch, unclean=unclean, leaving=leaving)
        if after is None and self._new_epochs and state.leader == self._broker_id:
            return lead_anew(context, topic, partition, state)
        return after


def lead_anew(context: ClusterContext, _topic: TopicContext, _partition: int, state: LeaderAndIsr) -> Choice:
    """The same leader, in its next leader epoch."""
    epoch = Epoch(state.leader_epoch + 1)
    return state._replace(leader_epoch=epoch, controller_epoch=context.controller_epoch)


def prefer(context: ClusterContext, topic: TopicContext, partition: int, state: LeaderAndIsr) -> Choice:
    replicas = topic.replicas[partition]
    if not replicas or state.leader == replicas[0]:
        return ErrorCode.ELECTION_NOT_NEEDED
    live = context.live_replicas(topic.name, partition, replicas)
    after = electing.preferred(state, replicas, live, context.controller_epoch)
    return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if after is None else after


def take_anybody(context: ClusterContext, topic: TopicContext, partition: int, state: LeaderAndIsr) -> Choice:
    if state.leader != NO_BROKER:
        return ErrorCode.ELECTION_NOT_NEEDED
    replicas = topic.replicas[partition]
    live = context.live_replicas(topic.name, partition, {*replicas, *state.isr})
    after = electing.unclean(state, replicas, live, context.controller_epoch)
    return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if after is None else after


def leave(context: ClusterContext, topic: TopicContext, partition: int, state: LeaderAndIsr) -> Choice:
    """Brokers that are shutting down leave."""
    replicas = topic.replicas[partition]
    live = context.live_replicas(topic.name, partition, {*replicas, *state.isr})
    return electing.leaving(state, replicas, live, context.controller_epoch)
