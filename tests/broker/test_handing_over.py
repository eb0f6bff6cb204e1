"""A leader whose disk is full gives way to an in-sync replica that may have room; one that is alone leads on."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until

from ottla.broker.controller_access import ControllerAccess
from ottla.model import ErrorCode, TopicPartition

T, ALONE = TopicPartition("t", 0), TopicPartition("alone", 0)
#: Longer than a broker gives way before it follows.
LONG_S = 4.0


def fill(cluster: SimulatedCluster, number: int) -> None:
    disk = cluster.brokers[number].ports.disk
    disk.capacity_bytes = disk.total_bytes("/data") - disk.free_bytes("/data")


def make_room(cluster: SimulatedCluster, number: int) -> None:
    cluster.brokers[number].ports.disk.capacity_bytes = 1 << 40


def members(cluster: SimulatedCluster, number: int) -> set[int]:
    """Of the in-sync set, as a broker knows it that leads."""
    leader = cluster.broker(number).services.replicas.leaders.get(T)
    return set() if leader is None else set(leader.isr.members)


async def begin(cluster: SimulatedCluster, *, controller_leads: bool = False) -> int:
    """Returns who leads one topic, with two followers, and another one that it alone has a replica of."""
    await cluster.start()
    (controller,) = cluster.controllers
    leader = controller if controller_leads else next(number for number in cluster.brokers if number != controller)
    others = [number for number in (1, 2, 3) if number != leader]
    assert await cluster.create(leader, T.topic, {0: (leader, *others)}) is ErrorCode.NONE
    assert await cluster.create(leader, ALONE.topic, {0: (leader,)}) is ErrorCode.NONE
    for number in cluster.brokers:
        await until(lambda number=number: cluster.leader(*T, number) == cluster.leader(*ALONE, number) == leader)  # type: ignore[misc]
    await until(lambda: members(cluster, leader) == {1, 2, 3})
    assert await cluster.produce(leader, T.topic) is ErrorCode.NONE
    assert await cluster.produce(leader, ALONE.topic) is ErrorCode.NONE
    return leader


def run(scenario: Coroutine[Any, Any, None], cluster: SimulatedCluster) -> None:
    with cluster:
        cluster.run(scenario)


@pytest.mark.parametrize("controller_leads", [True, False], ids=["the controller", "another broker"])
def test_another_in_sync_replica_leads(*, controller_leads: bool) -> None:
    async def scenario() -> None:
        leader = await begin(cluster, controller_leads=controller_leads)
        fill(cluster, leader)
        assert await cluster.produce(leader, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        assert await cluster.produce(leader, ALONE.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        await until(lambda: cluster.leader(*T, leader) not in (leader, -1))
        other = cluster.leader(*T, leader)
        assert other is not None
        assert await cluster.produce(leader, T.topic) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await cluster.produce(other, T.topic) is ErrorCode.NONE
        # It follows, as far as there is room, and does not lead again.
        await cluster.pause(LONG_S)
        assert T in cluster.broker(leader).services.replicas.followers
        assert members(cluster, other) == {1, 2, 3} - {leader}
        assert cluster.leader(*ALONE, other) == leader
        assert await cluster.produce(leader, ALONE.topic) is ErrorCode.KAFKA_STORAGE_ERROR

        make_room(cluster, leader)
        await until(lambda: members(cluster, other) == {1, 2, 3})
        assert await cluster.produce(leader, ALONE.topic) is ErrorCode.NONE

    cluster = SimulatedCluster(3)
    run(scenario(), cluster)


def test_where_all_disks_are_full_leaders_do_not_go_round() -> None:
    """Each tries it once, and again after a minute: the one that follows may have room by then."""

    async def scenario() -> None:
        await begin(cluster)
        for number in cluster.brokers:
            fill(cluster, number)
        led: list[int] = []
        for _ in range(10):
            leader = cluster.leader(*T, 1)
            assert leader is not None
            led.append(leader)
            assert await cluster.produce(leader, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
            await cluster.pause(LONG_S)
        last = led[-1]
        assert led[0] != led[1]
        assert led[3:] == [last] * 7

        free = next(number for number in cluster.brokers if number != last)
        make_room(cluster, free)
        await cluster.pause(60)
        for _ in range(20):
            leader = cluster.leader(*T, 1)
            assert leader is not None
            if await cluster.produce(leader, T.topic) is ErrorCode.NONE:
                break
            await cluster.pause(LONG_S)
        assert leader == free
        for number in cluster.brokers:
            make_room(cluster, number)
        await until(lambda: members(cluster, free) == {1, 2, 3})

    cluster = SimulatedCluster(3)
    run(scenario(), cluster)


def test_while_the_tree_is_away_it_leads_on() -> None:
    """Nobody could be elected; what is there is read, and there may be room again before the tree is back."""

    async def scenario() -> None:
        first = await begin(cluster)
        cluster.tree.kill()
        fill(cluster, first)
        assert await cluster.produce(first, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        await cluster.pause(LONG_S)
        assert T in cluster.broker(first).services.replicas.leaders
        make_room(cluster, first)
        assert await cluster.produce(first, T.topic) is ErrorCode.NONE
        await cluster.tree.started()
        await cluster.pause(LONG_S)
        leader = cluster.leader(*T, 1)
        assert leader is not None
        assert await cluster.produce(leader, T.topic) is ErrorCode.NONE
        await until(lambda: members(cluster, leader) == {1, 2, 3})

    cluster = SimulatedCluster(3)
    run(scenario(), cluster)


@pytest.mark.parametrize("controller_leads", [True, False], ids=["the controller", "another broker"])
@pytest.mark.parametrize("away_s", [LONG_S, 30.0])
def test_it_gives_way_when_the_tree_is_back(away_s: float, *, controller_leads: bool) -> None:
    """Within seconds and with an unchanged log, not a minute later: nobody has heard of the tries before."""

    async def scenario() -> None:
        first = await begin(cluster, controller_leads=controller_leads)
        cluster.tree.kill()
        fill(cluster, first)
        assert await cluster.produce(first, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        await cluster.pause(away_s)
        assert await cluster.produce(first, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        await cluster.tree.started()
        await cluster.pause(LONG_S)
        await cluster.produce(first, T.topic)
        await cluster.pause(LONG_S)
        assert cluster.leader(*T, first) not in (first, -1)
        make_room(cluster, first)
        await until(lambda: members(cluster, cluster.leader(*T, 1) or 0) == {1, 2, 3})

    cluster = SimulatedCluster(3)
    run(scenario(), cluster)


def test_what_the_controller_did_not_hear_it_hears_with_the_next_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a minute later, as where another replica may be as full: none was asked."""
    report = ControllerAccess.replicas_failed
    asked: list[int] = []

    async def lost_the_first_time(
        self: ControllerAccess, broker_id: int, partitions: list[TopicPartition]
    ) -> ErrorCode:
        asked.append(broker_id)
        return ErrorCode.NETWORK_EXCEPTION if len(asked) == 1 else await report(self, broker_id, partitions)

    async def scenario() -> None:
        first = await begin(cluster)
        monkeypatch.setattr(ControllerAccess, "replicas_failed", lost_the_first_time)
        fill(cluster, first)
        assert await cluster.produce(first, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        await cluster.pause(LONG_S)
        assert cluster.leader(*T, first) == first
        assert await cluster.produce(first, T.topic) is ErrorCode.KAFKA_STORAGE_ERROR
        await until(lambda: cluster.leader(*T, first) not in (first, -1))
        make_room(cluster, first)
        await until(lambda: members(cluster, cluster.leader(*T, 1) or 0) == {1, 2, 3})

    cluster = SimulatedCluster(3)
    run(scenario(), cluster)
    assert len(asked) == 2
