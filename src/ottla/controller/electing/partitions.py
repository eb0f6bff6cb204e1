"""Which replica leads a partition: pure decisions over which brokers are live."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordination.znodes import LeaderAndIsr
from ottla.model import NO_BROKER, BrokerId, Epoch


def first_state(replicas: Sequence[BrokerId], live: Sequence[BrokerId], controller_epoch: Epoch) -> LeaderAndIsr | None:
    """The first state of a new partition: all live replicas are in sync. None where none lives."""
    isr = tuple(broker for broker in replicas if broker in live)
    return LeaderAndIsr(controller_epoch, isr[0], Epoch(0), isr) if isr else None


def after_change(
    state: LeaderAndIsr,
    replicas: Sequence[BrokerId],
    live: Sequence[BrokerId],
    controller_epoch: Epoch,
    *,
    unclean: bool,
) -> LeaderAndIsr | None:
    """What the state becomes now that `live` replicas are left. None: it is fine as it is.

    The first live replica in the ISR leads, and the dead leave the ISR. With nobody live in it, an unclean election
    takes any live replica, which loses what only the others have; otherwise nobody leads, and the ISR stays as it
    was: one of it has to come back.
    """
    if state.leader in live:
        return None
    epoch = Epoch(state.leader_epoch + 1)
    isr = tuple(broker for broker in state.isr if broker in live)
    if isr:
        leader = next(broker for broker in (*replicas, *isr) if broker in isr)
        return LeaderAndIsr(controller_epoch, leader, epoch, isr)
    eligible = [broker for broker in replicas if broker in live]
    if unclean and eligible:
        return LeaderAndIsr(controller_epoch, eligible[0], epoch, (eligible[0],))
    if state.leader == NO_BROKER:
        return None
    return LeaderAndIsr(controller_epoch, NO_BROKER, epoch, state.isr)
