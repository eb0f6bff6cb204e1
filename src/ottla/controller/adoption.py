"""Topics that were on disk before the tree: they are written into it as one broker's, before it has a cluster id.

The cluster id comes last. A start that is cut short on the way finds none, looks at the folders again, and writes what
is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ottla.controller.identity import make_persistent_paths, random_id
from ottla.coordination.interface import Coordination, Create, SetData
from ottla.coordination.sizes import split
from ottla.coordination.znodes import (
    CLUSTER_ID,
    PRODUCER_ID_BLOCK,
    LeaderAndIsr,
    ProducerIdBlock,
    TopicAssignment,
    encode_config,
    encode_producer_ids,
    encode_state,
    encode_topic,
    partition_path,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch
from ottla.ports.entropy import Entropy
from ottla.storage.directories.adoption import FoundTopic

#: Producer ids that logs know already must not be given out again: their first batches would pass for repetitions. So
#: they go on at a number of the present time, far above what any cluster has counted up to, and still exact in JSON.
_PRODUCER_IDS_A_MS: Final = 1000


async def is_new_tree(coordination: Coordination) -> bool:
    """Whether no broker has ever finished a start with this tree."""
    return await coordination.exists(CLUSTER_ID) is None


async def register(
    coordination: Coordination,
    topics: Sequence[FoundTopic],
    broker_id: BrokerId,
    configs_for: Callable[[str], Mapping[str, str]],
    entropy: Entropy,
    now_ms: int,
) -> None:
    await make_persistent_paths(coordination)
    last = now_ms * _PRODUCER_IDS_A_MS - 1
    block = encode_producer_ids(ProducerIdBlock(broker_id, max(0, last - _PRODUCER_IDS_A_MS + 1), last))
    await coordination.multi([SetData(PRODUCER_ID_BLOCK, block)])
    for topic in topics:
        await _register(coordination, topic, broker_id, configs_for(topic.name), entropy)


async def _register(
    coordination: Coordination, topic: FoundTopic, broker_id: BrokerId, configs: Mapping[str, str], entropy: Entropy
) -> None:
    only: tuple[BrokerId, ...] = (broker_id,)
    replicas = dict.fromkeys(range(len(topic.epochs)), only)
    topic_id = random_id(entropy) if topic.id == ZERO_TOPIC_ID else topic.id
    nodes = {
        topic_config_path(topic.name): encode_config(configs),
        topic_path(topic.name): encode_topic(TopicAssignment(topic_id, replicas, {}, {})),
        partitions_path(topic.name): b"",
    }
    for partition, epoch in enumerate(topic.epochs):
        nodes[partition_path(topic.name, partition)] = b""
        # A leader epoch of its own: consumers that have seen the last one must not take the log for cut.
        state = LeaderAndIsr(Epoch(0), broker_id, Epoch(epoch + 1), (broker_id,))
        nodes[state_path(topic.name, partition)] = encode_state(state)
    there = await coordination.get_many(list(nodes))
    missing = [Create(path, data) for (path, data), node in zip(nodes.items(), there, strict=True) if node is None]
    for piece in split(missing):
        await coordination.multi(piece)
