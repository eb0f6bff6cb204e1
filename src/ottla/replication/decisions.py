"""What the controller has decided of a partition, beside the role that the partition has here: which one is newer, and
whether both mean the same topic."""

from __future__ import annotations

from ottla.metadata import PartitionState
from ottla.model import ZERO_TOPIC_ID
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader


def is_older(state: PartitionState, role: Leader | Follower) -> bool:
    """Whether it is of a controller that was replaced, or of the present one from before a change that is known here:
    what a new controller says first, of what it found, may be overtaken by its answer to a leader's AlterPartition."""
    if state.controller_epoch < role.controller_epoch:
        return True
    return (state.leader_epoch, state.partition_epoch) < (role.epoch, role.partition_epoch)


def note_state(role: Leader | Follower, state: PartitionState | Leader) -> None:
    role.controller_epoch, role.partition_epoch = state.controller_epoch, state.partition_epoch
    role.adding_replicas, role.removing_replicas = state.adding_replicas, state.removing_replicas


def is_same_topic(announced: bytes, stored: bytes) -> bool:
    """A topic of an old controller has no id."""
    return announced == stored or ZERO_TOPIC_ID in {announced, stored}
