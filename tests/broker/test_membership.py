"""A broker's place in its cluster when something goes wrong that nobody has thought of."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until

from ottla.broker import membership
from ottla.broker.membership import Membership
from ottla.broker.settings import TreeSettings
from ottla.controller.announcing.origin import AnnouncementRefused
from ottla.controller.controller import ClusterController
from ottla.controller.deciding.refusal import Refusal
from ottla.coordination.errors import ConnectionLoss, SessionExpired
from ottla.coordination.znodes import CONTROLLER
from ottla.model import ErrorCode

REFUSED = AnnouncementRefused("it knows a later controller")
FAULTS = [REFUSED, Refusal(ErrorCode.UNKNOWN_SERVER_ERROR), RuntimeError("of ours")]
TOPIC = 2


def failing_once(found: Any, fault: BaseException, met: list[object]) -> Any:
    async def once(self: Any, *given: Any) -> Any:
        if not met:
            met.append(self)
            raise fault
        return await found(self, *given)

    return once


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_broker_that_could_not_stand_in_another_session_tries_again(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (former,) = cluster.controllers
        met: list[object] = []
        monkeypatch.setattr(ClusterController, "stand", failing_once(ClusterController.stand, fault, met))
        epoch = cluster.epoch(former)
        await cluster.expire(former)
        await until(lambda: bool(met))
        await until(lambda: len(cluster.controllers) == 1)
        await until(lambda: cluster.epoch_or_none(former) == cluster.epoch(former) > epoch)
        # It stands: when the other one is gone, it is elected.
        await asyncio.sleep(5)
        await cluster.leave(3 - former, "kill")
        await until(lambda: cluster.controllers == [former])
        assert cluster.brokers[former].lives == 1

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_settings_that_could_not_be_read_for_a_fault_of_ours_are_read_again() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1,)}) is ErrorCode.NONE
        met: list[object] = []
        other = 3 - cluster.controllers[0]
        settings = cluster.broker(other)._parts.membership._settings
        once = failing_once(TreeSettings._take, RuntimeError("of ours"), met)
        settings._take = partial(once, settings)
        await cluster.alter(1, TOPIC, "t", "retention.ms", "123456")
        await until(lambda: bool(met))
        config = cluster.broker(other).metadata.topic_config
        await until(lambda: config("t") == {"retention.ms": "123456"})

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_controller_that_cannot_be_read_is_watched_once() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        tree = cluster.broker(other)._parts.membership.tree
        watches = len(tree._session.watches)
        data, _ = await tree.get(CONTROLLER)
        await tree.set(CONTROLLER, b"{")
        await until(lambda: bool(cluster.said("is looked for again")))
        await asyncio.sleep(20)
        assert len(tree._session.watches) <= watches + 1
        await tree.set(CONTROLLER, data)
        await until(lambda: cluster.broker(other)._parts.membership.controller_id == controller)

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


@pytest.mark.parametrize("fault", [RuntimeError("of ours"), asyncio.CancelledError()], ids=repr)
def test_who_is_the_controller_is_found_out_also_behind_a_fault_of_ours(fault: BaseException) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        member = cluster.broker(other)._parts.membership
        met: list[object] = []
        member._read_controller = partial(failing_once(Membership._read_controller, fault, met), member)
        await cluster.leave(controller, "kill")
        await until(lambda: bool(met))
        await until(lambda: member.controller_id == other)

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


@pytest.mark.parametrize("fault", [SessionExpired("planted"), ConnectionLoss("planted")], ids=repr)
def test_a_start_whose_sessions_end_one_after_the_other_goes_on(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        monkeypatch.setattr(Membership, "register", failing_once(Membership.register, SessionExpired("planted"), []))
        monkeypatch.setattr(membership, "cluster_id", failing_once(membership.cluster_id, fault, []))
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        assert [each.lives for each in cluster.brokers.values()] == [1, 1]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


@pytest.mark.parametrize("fault", [SessionExpired("planted"), ConnectionLoss("planted")], ids=repr)
def test_a_start_that_cannot_stand_for_controller_just_then_goes_on(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        monkeypatch.setattr(ClusterController, "stand", failing_once(ClusterController.stand, fault, []))
        await cluster.start()
        await until(lambda: len(cluster.controllers) == 1)
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        assert [each.lives for each in cluster.brokers.values()] == [1, 1]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))
