"""A start without a tree over log directories that are in use: their topics are registered again.

Kafka filled them, or the tree is lost (`tree_signs.py` knows which). What a tree knows beside the topics themselves is
not in the logs: above all which records a topic is to keep. So that nothing is removed by a default which nobody chose,
every topic is registered with an empty `cleanup.policy`, which is Kafka's own word for keeping everything. It stays
until somebody gives the topic a policy (docs/decisions/keep-everything.md). It happens once, in a tree that no broker
has started with before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla import logs
from ottla.broker.tree_signs import TreeSigns
from ottla.config import Config
from ottla.controller.adoption import is_new_tree, register
from ottla.controller.deciding.context import ClusterContext
from ottla.coordination.interface import Coordination
from ottla.handlers.on_demand.internal_topics import new_internal_topic
from ottla.model import BrokerId
from ottla.ports import Ports
from ottla.storage.directories.adoption import FoundTopics, find_topics
from ottla.storage.directories.directory import lock_directory
from ottla.storage.directories.identity import StoredIdentities, check_identity
from ottla.storage.directories.survey import some_names

log_event = logs.logger("server")

_POLICY: Final = "cleanup.policy"
#: What an operator can do about it, in each line that speaks of it.
_REMEDY: Final = (
    "give each the settings that it had, its cleanup.policy among them (`ottla config alter`, kafka-configs.sh), or "
    "confirm the broker's with `ottla topic confirm`"
)


async def adopt(
    coordination: Coordination,
    ports: Ports,
    config: Config,
    broker_id: BrokerId,
    stored: StoredIdentities,
    signs: TreeSigns,
) -> None:
    """Raises DirectoryError before anything is registered: of a directory that is not ours, or that cannot be read."""
    if not await is_new_tree(coordination):
        return
    disk, directories = ports.disk, config.storage.log_dirs
    found = find_topics(disk, directories)
    if found.topics or found.left_out:
        for path, meta in stored.found.items():
            check_identity(path, meta, broker_id, stored.cluster_id)
            lock_directory(disk, path).release()
    if signs.found:
        _say_that_it_is_lost(signs, found)
    for reason in found.left_out:
        log_event.warning("left alone", what=reason)
    if not found.topics:
        return

    def configs_for(topic: str) -> Mapping[str, str]:
        return {**_internal_configs(topic, config), _POLICY: ""}

    await register(coordination, found.topics, broker_id, configs_for, ports.entropy, ports.clock.wall_ms())
    if not signs.found:
        log_event.warning(
            "without a tree yet, topics were taken over from the log directories, without the settings that they had",
            **_numbers(found),
            directories=",".join(directories),
        )


def _say_that_it_is_lost(signs: TreeSigns, found: FoundTopics) -> None:
    log_event.error(
        "the coordination tree is gone or empty, and there was one. Settings of topics and brokers are lost; topics "
        "are taken over from their logs, and keep everything until their cleanup.policy is set. To go on with a copy "
        "of the tree instead, stop the broker and put it back",
        tree=signs.tree,
        **_numbers(found),
        signed=",".join(signs.found),
        # The disk of one of several directories may have been replaced, and the partitions on it are gone.
        unsigned=",".join(signs.unsigned) or "-",
    )


def _numbers(found: FoundTopics) -> dict[str, object]:
    topics = found.topics
    return {
        "topics": len(topics),
        "partitions": sum(len(topic.epochs) for topic in topics),
        "names": some_names([topic.name for topic in topics]),
    }


def keeps_everything(overrides: Mapping[str, str]) -> bool:
    return _POLICY in overrides and not overrides[_POLICY].strip()


def warn_of_kept(topics: ClusterContext) -> None:
    """At each start, lest a disk fills unnoticed."""
    kept = sorted(name for name, topic in topics.topics.items() if keeps_everything(topic.configs))
    if kept:
        log_event.warning(
            f"topics keep everything, as their cleanup.policy is empty: {_REMEDY}",
            topics=len(kept),
            names=some_names(kept),
        )


def _internal_configs(name: str, config: Config) -> Mapping[str, str]:
    """What such topics are created with; the operator who confirms them gives them the policy `compact` again."""
    topic = new_internal_topic(name, config)
    return {} if topic is None else {key: value for key, value in topic.configs.items() if value is not None}
