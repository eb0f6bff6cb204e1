"""How many bytes an offset stands for, by partition: what its log takes on the leader's disk, shared out evenly.

Kafka's wire has no offset for a number of bytes. The logs' sizes are those of compressed batches.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.admin.logs import describe_log_dirs
from ottla.client.wire.cluster import Cluster
from ottla.model import TopicPartition
from ottla.spark.source.bounds import Ends


async def bytes_an_offset(cluster: Cluster, ends: Mapping[TopicPartition, Ends]) -> dict[TopicPartition, float]:
    """At least one byte each, so that a limit always bounds something."""
    sizes = dict.fromkeys(ends, 0)
    topics: dict[str, list[int]] = {}
    for tp in ends:
        topics.setdefault(tp.topic, []).append(tp.partition)
    if not topics:
        return {}
    cluster.want(topics)
    for name in topics:
        await cluster.topic(name)
    leaders = {tp: cluster.metadata.leader(*tp) for tp in ends}
    brokers = sorted({one.leader for one in leaders.values() if one is not None})
    for directories in (await describe_log_dirs(cluster, brokers, topics)).values():
        for directory in directories.values():
            for tp, replica in directory.replicas.items():
                if tp in sizes and not replica.is_future:
                    sizes[tp] = max(sizes[tp], replica.size)
    return {tp: max(1.0, sizes[tp] / max(1, there.latest - there.earliest)) for tp, there in ends.items()}
