"""Who the cluster and its brokers are: ids that are made once and stay."""

from __future__ import annotations

from typing import Final

from ottla.coordination.errors import CoordinationError, NodeExists, NoNode
from ottla.coordination.interface import NO_DATA, Coordination
from ottla.coordination.znodes import (
    BROKER_SEQUENCE,
    CLUSTER_ID,
    FEATURE,
    FEATURE_DATA,
    PERSISTENT_PATHS,
    decode_cluster_id,
    encode_cluster_id,
)
from ottla.model import METADATA_TOPIC_ID, ZERO_TOPIC_ID, BrokerId, TopicId, random_uuid, topic_id_text
from ottla.ports.entropy import Entropy

#: Kafka's reserved.broker.max.id: ids that were configured stay at or below it, generated ones begin above.
RESERVED_BROKER_ID_MAX: Final = 1000


class WrongCluster(CoordinationError):
    """This broker's data belongs to another cluster than the tree."""


async def make_persistent_paths(coordination: Coordination) -> None:
    """What every broker expects to find; fine where it is there.

    Without data, as Kafka makes them: its controllers take empty data of the block of producer ids for damaged, and
    give none then.
    """
    found = await coordination.get_many(PERSISTENT_PATHS)
    for path, node in zip(PERSISTENT_PATHS, found, strict=True):
        if node is None:
            await _create_if_missing(coordination, path, NO_DATA)
    await _create_if_missing(coordination, FEATURE, FEATURE_DATA)


async def cluster_id(
    coordination: Coordination, entropy: Entropy, known: str | None = None, wanted: str | None = None
) -> str:
    """The cluster's id, made (or `wanted`) if there is none yet; `known` is what this broker's directories say it is.

    A tree without an id takes over the known one: the directories were here before the tree.
    """
    fresh = known or wanted or topic_id_text(random_id(entropy))
    await make_persistent_paths(coordination)
    await _create_if_missing(coordination, CLUSTER_ID, encode_cluster_id(fresh))
    data, _ = await coordination.get(CLUSTER_ID)
    found = decode_cluster_id(CLUSTER_ID, data)
    if known is not None and found != known:
        raise WrongCluster(
            f"this broker's log directories belong to cluster {known}, and the tree to cluster {found}: "
            f"point it at its own cluster, or give it empty directories"
        )
    return found


async def generated_broker_id(coordination: Coordination, reserved_max: int = RESERVED_BROKER_ID_MAX) -> BrokerId:
    """An id that no broker had before: how often /brokers/seqid was set, above the reserved ids."""
    try:
        stat = await coordination.set(BROKER_SEQUENCE, b"")
    except NoNode:
        await make_persistent_paths(coordination)
        stat = await coordination.set(BROKER_SEQUENCE, b"")
    return BrokerId(reserved_max + stat.version)


def random_id(entropy: Entropy) -> TopicId:
    """A UUID of version 4, for a topic or a cluster: none of the reserved ones, and none that begins with a dash,

    which command lines would take for an option.
    """
    while True:
        found = TopicId(random_uuid(entropy.token(16)))
        if found not in (ZERO_TOPIC_ID, METADATA_TOPIC_ID) and not topic_id_text(found).startswith("-"):
            return found


async def _create_if_missing(coordination: Coordination, path: str, data: bytes) -> None:
    parent = path.rpartition("/")[0]
    try:
        await coordination.create(path, data)
    except NodeExists:
        pass
    except NoNode:
        await _create_if_missing(coordination, parent, b"")
        await _create_if_missing(coordination, path, data)
