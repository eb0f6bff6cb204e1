"""Which replica leads a partition, and who is in sync with it: pure decisions over which replicas live.

Each takes a state and returns the one that takes its place, under the next leader epoch: also where the leader stays,
since brokers pass over a state whose epoch they know. The strategies are Kafka's (`Election` of its controller).

    after_change          somebody died, failed or came back
    preferred, unclean    on demand
    leaving               brokers are about to stop
    moved                 a reassignment ends
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ottla.coordination.znodes import LeaderAndIsr
from ottla.model import NO_BROKER, BrokerId, Epoch


def first_state(replicas: Sequence[BrokerId], live: Sequence[BrokerId], controller_epoch: Epoch) -> LeaderAndIsr | None:
    """The first state of a new partition: all live replicas are in sync. None where none lives."""
    isr = tuple(broker for broker in replicas if broker in live)
    return LeaderAndIsr(controller_epoch, isr[0], Epoch(0), isr) if isr else None


def led_by(state: LeaderAndIsr, leader: BrokerId, isr: tuple[BrokerId, ...], controller_epoch: Epoch) -> LeaderAndIsr:
    """The next state."""
    return LeaderAndIsr(controller_epoch, leader, Epoch(state.leader_epoch + 1), isr)


def after_change(
    state: LeaderAndIsr,
    replicas: Sequence[BrokerId],
    live: Collection[BrokerId],
    controller_epoch: Epoch,
    *,
    unclean: bool,
    leaving: Collection[BrokerId] = (),
) -> LeaderAndIsr | None:
    """What the state becomes now that `live` replicas are left. None: it is fine as it is.

    The dead leave the ISR, whoever leads: acks=all would wait for them. The leader stays where it lives, or is one of
    those that are `leaving` and that nobody could take over from. Otherwise the first live replica in the ISR leads.
    With nobody live in it, an unclean election takes any live replica, which loses what only the others have;
    otherwise nobody leads, and the ISR stays as it was: one of it has to come back.
    """
    leader = state.leader
    if leader in live or leader in leaving:
        isr = tuple(broker for broker in state.isr if broker in live or broker == leader)
        return None if isr == state.isr else led_by(state, leader, isr, controller_epoch)
    isr = tuple(broker for broker in state.isr if broker in live)
    if isr:
        elected = next(broker for broker in (*replicas, *isr) if broker in isr)
        return led_by(state, elected, isr, controller_epoch)
    if unclean:
        for broker in replicas:
            if broker in live:
                return led_by(state, broker, (broker,), controller_epoch)
    if leader == NO_BROKER:
        return None
    return led_by(state, NO_BROKER, state.isr, controller_epoch)


def preferred(
    state: LeaderAndIsr, replicas: Sequence[BrokerId], live: Collection[BrokerId], controller_epoch: Epoch
) -> LeaderAndIsr | None:
    """The first assigned replica leads. None: it cannot."""
    first = replicas[0]
    if first in live and first in state.isr:
        return led_by(state, first, state.isr, controller_epoch)
    return None


def unclean(
    state: LeaderAndIsr, replicas: Sequence[BrokerId], live: Collection[BrokerId], controller_epoch: Epoch
) -> LeaderAndIsr | None:
    """Somebody leads, whatever is lost by it. None: nobody lives."""
    after = after_change(state, replicas, live, controller_epoch, unclean=True)
    return None if after is None or after.leader == NO_BROKER else after


def leaving(
    state: LeaderAndIsr, replicas: Sequence[BrokerId], live: Collection[BrokerId], controller_epoch: Epoch
) -> LeaderAndIsr | None:
    """Those that are not in `live` give the partition up. None: there is nothing to give, or nobody to take it.

    The last member of an ISR stays, and leads on.
    """
    isr = tuple(broker for broker in state.isr if broker in live)
    if not isr or isr == state.isr:
        return None
    leader = state.leader
    if leader not in live:
        leader = next((broker for broker in replicas if broker in isr), isr[0])
    return led_by(state, leader, isr, controller_epoch)


def moved(
    state: LeaderAndIsr, target: Sequence[BrokerId], live: Collection[BrokerId], controller_epoch: Epoch
) -> LeaderAndIsr | None:
    """Only the replicas of `target` are left. None: none of them could lead."""
    isr = tuple(broker for broker in state.isr if broker in target)
    leader: BrokerId | None = state.leader
    if leader not in isr or leader not in live:
        leader = next((broker for broker in target if broker in live and broker in isr), None)
    return None if leader is None else led_by(state, leader, isr, controller_epoch)
