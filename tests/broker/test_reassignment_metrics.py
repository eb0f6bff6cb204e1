"""What moves to another broker is counted apart from other replication, on both sides, until it has moved."""

from __future__ import annotations

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until
from tests.broker.test_broker_metrics import numbers

from ottla.coordination.interface import Delete
from ottla.coordination.sessions import STORE_SESSION
from ottla.model import ErrorCode
from ottla.protocol.generated import alter_partition_reassignments as moving


def bytes_moved(cluster: SimulatedCluster, number: int) -> tuple[float, float]:
    """In and out."""
    seen = numbers(cluster.broker(number).registry.render())
    stem = "kafka_server_brokertopicmetrics_reassignmentbytes"
    return seen[f"{stem}in_total"], seen[f"{stem}out_total"]


def replicated(cluster: SimulatedCluster, number: int) -> float:
    return numbers(cluster.broker(number).registry.render())["kafka_server_brokertopicmetrics_replicationbytesin_total"]


async def move(cluster: SimulatedCluster, *replicas: int) -> None:
    partition = moving.ReassignablePartition(partition_index=0, replicas=list(replicas))
    request = moving.AlterPartitionReassignmentsRequest(
        topics=[moving.ReassignableTopic(name="t", partitions=[partition])], timeout_ms=2_000
    )
    answer = await cluster.client(replicas[0]).ask(request, 0)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE


def test_only_what_goes_to_a_new_replica_is_counted() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        # The link that is cut below is not the controller's.
        while not {1, 2} & {*cluster.controllers}:
            await cluster.tree.server.store.write(STORE_SESSION, [Delete("/controller")])
            await cluster.pause(1.0)
        assert await cluster.produce(1, "t") is ErrorCode.NONE
        size = cluster.broker(1).services.replicas.leaders["t", 0].log.size
        assert replicated(cluster, 2) == size
        for number in cluster.brokers:
            assert bytes_moved(cluster, number) == (0, 0)

        # It is not at its end as long as a replica that is to be added cannot fetch.
        cluster.simulation.world.fabric.cut("b1", "b3")
        await move(cluster, 1, 3)
        await until(lambda: cluster.broker(1).services.replicas.leaders["t", 0].adding_replicas == (3,))
        assert await cluster.produce(1, "t") is ErrorCode.NONE
        assert bytes_moved(cluster, 2) == (0, 0), "it was a replica before"
        cluster.simulation.world.fabric.heal()
        for number in cluster.brokers:
            await until(lambda number=number: cluster.broker(number).metadata.partition("t", 0).replicas == (1, 3))  # type: ignore[misc]
        assert bytes_moved(cluster, 1) == (0, 2 * size)
        assert bytes_moved(cluster, 3) == (2 * size, 0)

        # From here on it is a replica like any other.
        await until(lambda: cluster.broker(3).services.replicas.followers["t", 0].adding_replicas == ())
        await until(lambda: cluster.broker(1).services.replicas.leaders["t", 0].adding_replicas == ())
        for _ in range(3):
            assert await cluster.produce(1, "t") is ErrorCode.NONE
        assert replicated(cluster, 3) == 5 * size
        assert bytes_moved(cluster, 1) == (0, 2 * size)
        assert bytes_moved(cluster, 3) == (2 * size, 0)

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def reassigning(cluster: SimulatedCluster) -> dict[int, float]:
    name = "kafka_server_replicamanager_reassigningpartitions"
    return {number: numbers(cluster.broker(number).registry.render())[name] for number in cluster.brokers}


@pytest.mark.parametrize("controller", [1, 2])
def test_its_leader_counts_a_partition_that_moves_whoever_is_the_controller(controller: int) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        while controller not in cluster.controllers:
            await cluster.tree.server.store.write(STORE_SESSION, [Delete("/controller")])
            await cluster.pause(1.0)
        assert await cluster.produce(1, "t") is ErrorCode.NONE
        assert reassigning(cluster) == {1: 0, 2: 0, 3: 0}

        cluster.simulation.world.fabric.cut("b1", "b3")
        await move(cluster, 1, 3)
        await until(lambda: cluster.broker(1).services.replicas.leaders["t", 0].adding_replicas == (3,))
        await cluster.pause(0.5)
        assert reassigning(cluster) == {1: 1, 2: 0, 3: 0}
        await move(cluster, 1)
        await until(lambda: cluster.broker(1).services.replicas.leaders["t", 0].isr.replicas == (1,))
        assert reassigning(cluster) == {1: 0, 2: 0, 3: 0}

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))
