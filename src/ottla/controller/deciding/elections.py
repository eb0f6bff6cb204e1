"""Elections of partitions: which are due, as writes that take the place of one state and no other.

An election is decided on a state and its version: where the tree has another one by then, it is decided anew on that
one (`ControllerCore.elect`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.controller.deciding.context import ClusterContext, TopicContext, VersionedState
from ottla.controller.electing.partitions import after_change
from ottla.coordination.interface import SetData
from ottla.coordination.znodes import LeaderAndIsr, encode_state, state_path
from ottla.model import Epoch
from ottla.steps import Steps

_UNCLEAN: Final = "unclean.leader.election.enable"


class Election(NamedTuple):
    topic: TopicContext
    partition: int
    #: With the version of the state before.
    after: VersionedState

    @property
    def op(self) -> SetData:
        return SetData(state_path(self.topic.name, self.partition), encode_state(self.after.state), self.after.version)


def elections(
    context: ClusterContext,
    partitions: Iterable[tuple[TopicContext, Iterable[int]]],
    *,
    unclean_default: bool,
    new_epochs: bool = False,
) -> Steps[list[Election]]:
    """Those that are due. With `new_epochs` leaders stay, under a new epoch."""
    found: list[Election] = []
    for topic, numbers in partitions:
        for partition in numbers:
            known = topic.states.get(partition)
            if known is None:
                continue
            after = _elected(context, topic, partition, known.state, unclean_default=unclean_default)
            if after is None and new_epochs:
                after = known.state._replace(
                    leader_epoch=Epoch(known.state.leader_epoch + 1), controller_epoch=context.controller_epoch
                )
            if after is not None:
                found.append(Election(topic, partition, VersionedState(after, known.version)))
            yield
    return found


def _elected(
    context: ClusterContext, topic: TopicContext, partition: int, state: LeaderAndIsr, *, unclean_default: bool
) -> LeaderAndIsr | None:
    replicas = topic.replicas[partition]
    live = context.live_replicas(topic.name, partition, {*replicas, *state.isr})
    default = "true" if unclean_default else "false"
    unclean = topic.configs.get(_UNCLEAN, default).strip().lower() == "true"
    return after_change(state, replicas, live, context.controller_epoch, unclean=unclean)
