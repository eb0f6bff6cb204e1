"""The first start over log directories that Kafka filled, or whose tree is gone: their topics are registered again.

What a tree would know beside that is lost: topics get the broker's configuration, and the internal ones what such
topics are created with. It happens once, in a tree that no broker has started with before.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla import logs
from ottla.config import Config
from ottla.controller.adoption import is_new_tree, register
from ottla.coordination.interface import Coordination
from ottla.handlers.offsets_topic import new_offsets_topic
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, BrokerId
from ottla.ports import Ports
from ottla.storage.adoption import find_topics
from ottla.storage.directory import lock_directory
from ottla.storage.identity import StoredIdentities, check_identity
from ottla.storage.survey import some_names

log_event = logs.logger("server")


async def adopt(
    coordination: Coordination, ports: Ports, config: Config, broker_id: BrokerId, stored: StoredIdentities
) -> None:
    """Raises DirectoryError before anything is registered: of a directory that is not ours, or that cannot be read."""
    if not await is_new_tree(coordination):
        return
    disk, directories = ports.disk, config.storage.log_dirs
    found = find_topics(disk, directories)
    if not found.topics and not found.left_out:
        return
    for path, meta in stored.found.items():
        check_identity(path, meta, broker_id, stored.cluster_id)
        lock_directory(disk, path).release()
    for reason in found.left_out:
        log_event.warning("left alone", what=reason)
    if not found.topics:
        return

    def configs_for(topic: str) -> Mapping[str, str]:
        return _internal_configs(topic, config)

    await register(coordination, found.topics, broker_id, configs_for, ports.entropy, ports.clock.wall_ms())
    log_event.info(
        "without a tree yet, topics were taken over from the log directories, with default configurations",
        topics=len(found.topics),
        partitions=sum(len(topic.epochs) for topic in found.topics),
        names=some_names([topic.name for topic in found.topics]),
        directories=",".join(directories),
    )


def _internal_configs(topic: str, config: Config) -> Mapping[str, str]:
    """What an internal topic is nothing without: deleted by age, its contents would be lost."""
    if topic == OFFSETS_TOPIC:
        configs = new_offsets_topic(config.groups.offsets).configs
        return {name: value for name, value in configs.items() if value is not None}
    if topic == TRANSACTION_TOPIC:
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(config.transactions.topic_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
    return {}
