"""A start that takes longer than its session lasts, for a long recovery or a busy machine, takes another session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.broker.simulated_cluster import SimulatedCluster

from ottla.broker import broker, membership
from ottla.broker.tree_signs import TreeSigns
from ottla.controller.controller import ClusterController
from ottla.model import ErrorCode


async def end_newest(cluster: SimulatedCluster) -> None:
    """The session that was opened last, as if the tree had not heard of it for too long."""
    sessions = cluster.tree.server.store.sessions
    newest = max(cluster.tree.server.store._tree.sessions)
    ending = asyncio.get_running_loop().create_task(sessions.end(newest, None), context=cluster.tree.process.context())
    await ending


def while_it_reads_the_tree(cluster: SimulatedCluster, patch: pytest.MonkeyPatch, once: list[int]) -> None:
    found = broker.load_topics

    async def ended(*given: Any) -> None:
        if once:
            once.pop()
            await end_newest(cluster)
        await found(*given)

    patch.setattr(broker, "load_topics", ended)


def behind_the_recovery(cluster: SimulatedCluster, patch: pytest.MonkeyPatch, once: list[int]) -> None:
    found = TreeSigns.keep

    async def ended(self: TreeSigns, *given: Any) -> None:
        if once:
            once.pop()
            await end_newest(cluster)
        await found(self, *given)

    patch.setattr(TreeSigns, "keep", ended)


def before_the_registration(cluster: SimulatedCluster, patch: pytest.MonkeyPatch, once: list[int]) -> None:
    found = membership.register_broker

    async def ended(*given: Any) -> int:
        if once:
            once.pop()
            await end_newest(cluster)
        return await found(*given)

    patch.setattr(membership, "register_broker", ended)


def before_the_candidacy(cluster: SimulatedCluster, patch: pytest.MonkeyPatch, once: list[int]) -> None:
    found = ClusterController.stand

    async def ended(self: ClusterController, *given: Any) -> None:
        if once:
            once.pop()
            await end_newest(cluster)
        await found(self, *given)

    patch.setattr(ClusterController, "stand", ended)


Planted = Callable[[SimulatedCluster, pytest.MonkeyPatch, list[int]], None]


@pytest.mark.parametrize(
    "planted", [while_it_reads_the_tree, behind_the_recovery, before_the_registration, before_the_candidacy]
)
@pytest.mark.parametrize("times", [1, 3])
def test_a_session_that_ends_during_a_start_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch, planted: Planted, times: int
) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.tree.started()
        await asyncio.gather(*(cluster.brokers[number].started() for number in (1, 2)))
        once = [0] * times
        planted(cluster, monkeypatch, once)
        await cluster.brokers[3].started()
        assert not once
        # It is a member like the others.
        assert await cluster.create(1, "t", {0: (3, 1, 2)}) is ErrorCode.NONE
        assert await cluster.produce(3, "t") is ErrorCode.NONE
        assert cluster.epoch_or_none(3) == cluster.epoch(3)

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))
