"""What followers hear of a watermark that has moved while nothing else is written: soon, not when their fetch is over.

Whoever reads from a follower (KIP-392) sees a record from then on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.sim.invariants import InvariantBroken

if TYPE_CHECKING:
    from ottla.testing.sim.cluster import SimulatedCluster
    from ottla.testing.sim.invariants.cluster import Partition, TreeState
    from ottla.testing.sim.routing import ClusterClient

#: A fetch that its leader keeps is over after half a second. News goes a few milliseconds after the move; what a
#: follower flushes first, and links take, comes beside that.
_SOON_S: Final = 0.2
_VERSION: Final = 9
_TIMEOUT_MS: Final = 2_000


async def check_news(cluster: SimulatedCluster, client: ClusterClient, tp: TopicPartition) -> None:
    """Of a cluster that is well: writes a record. Raises InvariantBroken, Unreachable."""
    partition = _the_one(cluster, tp)
    before = partition.tree
    wall_ms = cluster.simulation.world.machine(cluster.clients_host).clock.wall_ms()
    data = PartitionProduceData(index=tp.partition, records=encode_batch([Record(0, wall_ms, None, b"news")]))
    topic = TopicProduceData(name=tp.topic, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=[topic])
    answer: Any = await client.ask_leader(tp, request, _VERSION)
    if answer.responses[0].partition_responses[0].error_code != ErrorCode.NONE:
        return  # its leader went elsewhere, as it may in any moment
    await asyncio.sleep(_SOON_S)
    if _same_leader(before, partition.tree) and (late := _late(partition)):
        raise InvariantBroken("FollowersHearSoon", f"{late} after {_SOON_S} s; {partition}")


def _the_one(cluster: SimulatedCluster, tp: TopicPartition) -> Partition:
    """Topics of a schedule's own are never made again."""
    (found,) = (each for (known, _), each in cluster.state.partitions.items() if known == tp)
    return found


def _same_leader(before: TreeState | None, now: TreeState | None) -> bool:
    return before is not None and now is not None and before.leader_epoch == now.leader_epoch and before.isr == now.isr


def _late(partition: Partition) -> str:
    tree = partition.tree
    assert tree is not None
    end = partition.replicas[tree.leader].high_watermark
    late = [each for each in sorted(tree.isr) if partition.replicas[each].high_watermark < end]
    return f"brokers {late} have not heard of {end}" if late else ""
