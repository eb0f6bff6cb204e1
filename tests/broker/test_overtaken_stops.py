"""StopReplica that is carried out late: the partition may be back by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until

from ottla.model import ErrorCode
from ottla.protocol.generated import alter_partition_reassignments as moving


@pytest.mark.parametrize("of_the_controller", [False, True])
def test_a_replica_that_came_back_is_not_deleted_by_the_stop_of_its_former_life(of_the_controller: bool) -> None:
    """The controller gives a connection up and says it again on another one, while the first stop still lies there."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        others = [number for number in cluster.brokers if number != controller]
        left, stays, gained = (controller, *others) if of_the_controller else (*others, controller)
        assert await cluster.create(controller, "t", {0: (left, stays)}) is ErrorCode.NONE
        assert await cluster.produce(left, "t") is ErrorCode.NONE
        announced, directories = cluster.broker(left).services.announced, cluster.broker(left)._directories
        carry_out = announced.stop_replicas
        said: list[tuple[Any, Sequence[Any]]] = []

        async def noted(origin: Any, stops: Sequence[Any]) -> Any:
            said.append((origin, stops))
            return await carry_out(origin, stops)

        announced.stop_replicas = noted
        await _move(cluster, controller, stays, gained)
        await until(lambda: directories.get(("t", 0)) is None)
        await _move(cluster, controller, left, stays)
        assert directories.get(("t", 0)) is not None
        late = carry_out(*said[0])
        process = cluster.brokers[left].process
        refused = await cluster.simulation.loop.create_task(late, context=process.context())
        assert refused == {("t", 0): ErrorCode.FENCED_LEADER_EPOCH}
        assert directories.get(("t", 0)) is not None

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


async def _move(cluster: SimulatedCluster, controller: int, *replicas: int) -> None:
    """And waits until it has moved."""
    partition = moving.ReassignablePartition(partition_index=0, replicas=list(replicas))
    request = moving.AlterPartitionReassignmentsRequest(
        topics=[moving.ReassignableTopic(name="t", partitions=[partition])], timeout_ms=2_000
    )
    answer = await cluster.client(controller).ask(request, 0)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    state = cluster.broker(controller).metadata.partition
    await until(lambda: state("t", 0).replicas == replicas)
