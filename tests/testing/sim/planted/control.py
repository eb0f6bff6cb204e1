"""Bugs in the controller, in coordination, and in how brokers obey."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.electing import partitions as electing
from ottla.controller.turns import brokers
from ottla.controller.turns.replicas import ReplicaTurns
from ottla.controller.writing import ControllerWrites
from ottla.coordination.leases import SessionLeases
from ottla.coordination.znodes import LeaderAndIsr
from ottla.coordination.zookeeper.watching import LeftWatches
from ottla.groups.classic.group import ClassicGroup
from ottla.model import ErrorCode
from ottla.replication import replicas

Patch = pytest.MonkeyPatch


def elected_outside_the_isr(patch: Patch) -> None:
    elect = electing.after_change

    def elected(*arguments: Any, **options: Any) -> LeaderAndIsr | None:
        return elect(*arguments, **{**options, "unclean": True})

    patch.setattr(electing, "after_change", elected)


def led_in_the_same_term(patch: Patch) -> None:
    def led(state: LeaderAndIsr, leader: Any, isr: Any, controller_epoch: Any) -> LeaderAndIsr:
        return LeaderAndIsr(controller_epoch, leader, state.leader_epoch, isr)

    patch.setattr(electing, "led_by", led)


def first_replica_elected(patch: Patch) -> None:
    """Whoever is assigned first and lives, in sync or not."""

    def elected(state: LeaderAndIsr, assigned: Any, live: Any, controller_epoch: Any, **_: Any) -> LeaderAndIsr | None:
        if state.leader in live:
            return None
        found = [broker for broker in assigned if broker in live]
        return electing.led_by(state, found[0], tuple(found), controller_epoch) if found else None

    patch.setattr(electing, "after_change", elected)


def partition_epoch_ignored(patch: Patch) -> None:
    planned = ReplicaTurns._planned

    def plan(turns: ReplicaTurns, broker_id: Any, place: int, change: Any) -> Any:
        topic = turns._core.context.topics.get(change.tp.topic)
        known = None if topic is None else topic.states.get(change.tp.partition)
        if known is not None:
            change = change._replace(partition_epoch=known.version, leader_epoch=known.state.leader_epoch)
        return planned(turns, broker_id, place, change)

    patch.setattr(ReplicaTurns, "_planned", plan)


def anybody_may_join(patch: Patch) -> None:
    """The dead, and those of a former registration."""
    patch.setattr(ReplicaTurns, "_is_eligible", lambda *_: True)


def unfenced_controller(patch: Patch) -> None:
    """What a controller writes is not conditional on its epoch."""

    async def multi(writes: ControllerWrites, ops: Any) -> None:
        await writes._coordination.multi(list(ops))

    patch.setattr(ControllerWrites, "_multi", multi)


def stale_controller_obeyed(patch: Patch) -> None:
    """A broker takes whatever state comes, of whatever age."""
    patch.setattr(replicas, "_order", lambda _: (2**62, 2**62, 2**62))


def bounce_unseen(patch: Patch) -> None:
    """A broker that was away between two looks is not noticed."""
    patch.setattr(brokers, "_bounced", lambda *_: set())


def watches_lost_after_a_reconnect(patch: Patch) -> None:
    patch.setattr(LeftWatches, "requests", lambda *_: iter(()))


def lease_not_renewed(patch: Patch) -> None:
    patch.setattr(SessionLeases, "touch", lambda *_: None)


def old_generation_accepted(patch: Patch) -> None:
    check = ClassicGroup.check_commit

    def checked(group: ClassicGroup, *arguments: Any, **options: Any) -> ErrorCode:
        found = check(group, *arguments, **options)
        return ErrorCode.NONE if found is ErrorCode.ILLEGAL_GENERATION else found

    patch.setattr(ClassicGroup, "check_commit", checked)
