"""Which broker is this, and of which cluster? As configured, as in its directories, or made now for a new one.

A broker is new if nothing was ever written for it. Where partitions are there, on disk or in the tree, and nothing says
whose they are, a new id would leave each of them without a leader for ever: the start is refused, and says which id it
was.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Final

from ottla import logs
from ottla.broker.adopting import adopt
from ottla.broker.tree_signs import TreeSigns
from ottla.config import Config, ConfigError
from ottla.controller.deciding.context import ClusterContext
from ottla.controller.identity import cluster_id, generated_broker_id
from ottla.controller.loading import load_topics
from ottla.coordination.interface import Coordination
from ottla.model import BrokerId
from ottla.ports import Ports
from ottla.ports.disk import Disk
from ottla.storage.directories.directory import lock_directory
from ottla.storage.directories.errors import LostIdentity, MisplacedTree
from ottla.storage.directories.identity import StoredIdentities, has_partitions, stored_identities

log_event = logs.logger("server")

#: Beside the first log directory and not in it: Kafka takes every folder in there for a partition.
_COORDINATION_SUFFIX: Final = ".coordination"
_BROKERS_NAMED_MAX: Final = 10


def coordination_directory(disk: Disk, log_dirs: Sequence[str]) -> str:
    """Where the tree is. Raises DirectoryError where it would begin anew, beside a directory put before its own."""
    first, *others = (os.path.normpath(path) + _COORDINATION_SUFFIX for path in log_dirs)
    if not disk.exists(first):
        for path, other in zip(log_dirs[1:], others, strict=True):
            if disk.exists(other):
                if disk.exists(path):
                    lock_directory(disk, path).release()  # of a running broker there is another thing to say
                raise MisplacedTree(
                    f"log.dirs: the coordination tree is {other}, beside {path}, and is looked for beside the first "
                    f"log directory, {log_dirs[0]}: name {path} first, or rename {other} to {first}"
                )
    return first


async def learn_identity(
    coordination: Coordination, ports: Ports, config: Config, signs: TreeSigns
) -> tuple[BrokerId, str]:
    """This broker's id and its cluster's. Raises DirectoryError or ConfigError, with nothing written."""
    directories = config.storage.log_dirs
    stored = stored_identities(ports.disk, directories)
    if config.broker.id >= 0:
        broker_id = BrokerId(config.broker.id)
    elif stored.broker_id is not None:
        broker_id = BrokerId(stored.broker_id)
    elif not config.broker.id_generation:
        raise ConfigError("broker.id", str(config.broker.id), "must be set where broker.id.generation.enable is false")
    else:
        await _check_new(coordination, ports.disk, directories, stored)
        if config.broker.new_id >= 0:
            broker_id = BrokerId(config.broker.new_id)
        else:
            broker_id = await generated_broker_id(coordination, config.broker.reserved_id_max)
    for path, meta in stored.found.items():
        if meta.broker_id is None and has_partitions(ports.disk, path):
            log_event.warning(f"{stored.nameless[path]}; its partitions are taken for this broker's", id=broker_id)
    await adopt(coordination, ports, config, broker_id, stored, signs)
    wanted = config.broker.new_cluster_id
    cluster = await cluster_id(coordination, ports.entropy, stored.cluster_id, wanted)
    if wanted is not None and wanted != cluster:
        log_event.warning("the cluster keeps the id that it has", cluster=cluster, wanted=wanted)
    return broker_id, cluster


async def _check_new(
    coordination: Coordination, disk: Disk, directories: Sequence[str], stored: StoredIdentities
) -> None:
    """Raises LostIdentity where this is no new broker."""
    topics = ClusterContext()
    await load_topics(coordination, topics)
    former = {broker for topic in topics.topics.values() for held in topic.replicas.values() for broker in held}
    used = [path for path in directories if has_partitions(disk, path)]
    if not former and not used:
        return
    said = "; ".join(stored.nameless[path] for path in directories)
    if len(former) == 1:
        (only,) = former
        raise LostIdentity(
            f"{said}; the tree's topics lie on broker {only}: restore the file, or remove what is left of it and start "
            f"with broker.id={only} (KAFKA_BROKER_ID={only} in the environment)"
        )
    where = f"the tree's topics lie on brokers {_some(former)}" if former else f"there are partitions in {used[0]}"
    raise LostIdentity(
        f"{said}; {where}: restore the file, or remove what is left of it and start with this broker's number, "
        "broker.id=N (KAFKA_BROKER_ID=N in the environment)"
    )


def warn_if_stranger(broker_id: BrokerId, topics: ClusterContext) -> None:
    """Of an id that was configured anew over a tree full of another one's topics: Kafka starts as well."""
    held = [replicas for topic in topics.topics.values() for replicas in topic.replicas.values()]
    if held and not any(broker_id in replicas for replicas in held):
        others = _some({broker for replicas in held for broker in replicas})
        log_event.warning("no partition of any topic in the tree lies on this broker", id=broker_id, brokers=others)


def _some(brokers: set[BrokerId]) -> str:
    shown = ", ".join(str(broker) for broker in sorted(brokers)[:_BROKERS_NAMED_MAX])
    return f"{shown}, ..." if len(brokers) > _BROKERS_NAMED_MAX else shown
