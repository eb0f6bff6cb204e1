"""Settings of topics, brokers and groups, as every broker reads them from the tree for itself.

They stand under `/config`, and a program that changes one leaves a note in `/config/changes`, which all brokers watch:
Kafka's way in ZooKeeper mode, so that a tool that writes there is heard as well. A note names what has changed and not
how; it is read when it comes, and the controller deletes those that are a quarter of an hour old. At the start of a
session everything is read, behind the watch: what changed while there was none is in it.

A note that is not understood is passed over. What holds users, clients and addresses back, or says users' passwords,
has no effect here yet: it is left alone, and said when it changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ottla import logs
from ottla.broker.tree_news import TreeNews
from ottla.controller.loading import leave_alone, load_broker_configs, load_group_configs, load_topic_configs
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Coordination
from ottla.coordination.notifications import CONFIG_CHANGES, decode_config_change
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import (
    broker_config_path,
    decode_config,
    entity_name,
    group_config_path,
    topic_config_path,
)
from ottla.metadata import MetadataCache, MetadataUpdate
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import TopicId, topic_name_fault

log_event = logs.logger("server")

#: Notes that are read in one go; a tool may leave thousands.
_NOTES_AT_ONCE: Final = 500

#: What Kafka keeps under `/config` besides: quotas, and the passwords of users.
_WITHOUT_EFFECT: Final = ("users", "clients", "ips")

#: Of what had overrides once.
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

#: Takes what was read; it is applied when this returns.
Learn = Callable[[MetadataUpdate], Awaitable[None]]


class TreeSettings:
    """What one session of a broker reads of `/config`."""

    def __init__(self, coordination: Coordination, metadata: MetadataCache, learn: Learn) -> None:
        self._coordination = coordination
        self._metadata = metadata
        self._learn = learn
        #: The number of the last note that was read, or that the first reading was behind of.
        self._last = -1
        self._news = TreeNews("changes of settings", self._read_notes)

    async def begin(self) -> None:
        """Reads everything, and watches from then on. Raises CoordinationError."""
        # What a note says meanwhile must not be learned before all this, which is older.
        self._news.hold()
        _, newest = await self._notes()
        await self._read_everything(newest)
        self._news.release()

    def close(self) -> None:
        self._news.close()

    async def topics(self, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """The overrides of topics; empty for one that has none."""
        return await topic_overrides(self._coordination, names)

    # Everything.

    async def _read_everything(self, newest: int) -> None:
        known = self._topic_ids()
        await self._learn(await self._everything())
        # No note says that a topic was made anew meanwhile, and what was read may be of the one before it.
        while made := [name for name, topic_id in self._topic_ids().items() if known.get(name) != topic_id]:
            known = self._topic_ids()
            await self._learn(self._update(await self.topics(made), {}, {}))
        self._last = newest

    def _topic_ids(self) -> dict[str, TopicId]:
        return {name: topic.id for name, topic in self._metadata.topics.items()}

    async def _everything(self) -> MetadataUpdate:
        """A node that cannot be read leaves things as they were; at a start they are read, and refused, before."""
        metadata, tree = self._metadata, self._coordination
        damaged: set[str] = set()

        def pass_over(fault: DamagedZnode) -> None:
            leave_alone(fault)
            damaged.add(fault.path)

        topics: dict[str, Mapping[str, str]] = dict.fromkeys(metadata.topics, _NONE)
        topics |= await load_topic_configs(tree, pass_over)
        brokers: dict[str, Mapping[str, str]] = dict.fromkeys(metadata.configured_brokers, _NONE)
        brokers |= await load_broker_configs(tree, pass_over)
        groups: dict[str, Mapping[str, str]] = dict.fromkeys(metadata.configured_groups, _NONE)
        groups |= await load_group_configs(tree, pass_over)
        if damaged:
            topics = {name: found for name, found in topics.items() if topic_config_path(name) not in damaged}
            brokers = {name: found for name, found in brokers.items() if broker_config_path(name) not in damaged}
            groups = {name: found for name, found in groups.items() if group_config_path(name) not in damaged}
        return self._update(topics, brokers, groups)

    def _update(
        self,
        topics: Mapping[str, Mapping[str, str]],
        brokers: Mapping[str, Mapping[str, str]],
        groups: Mapping[str, Mapping[str, str]],
    ) -> MetadataUpdate:
        return MetadataUpdate(
            controller_epoch=self._metadata.controller_epoch,
            topic_configs=topics,
            broker_configs=brokers,
            group_configs=groups,
        )

    # Notes.

    async def _notes(self) -> tuple[list[tuple[int, str]], int]:
        """Numbers and names of those that were not read yet, in order, and the newest number that was ever given; the
        next one that comes is heard of."""
        while True:
            try:
                names, stat = await self._coordination.children(CONFIG_CHANGES, self._news.changed)
                break
            except NoNode:
                # Somebody may be making it anew: that is to be heard of too.
                if await self._coordination.exists(CONFIG_CHANGES, self._news.changed) is None:
                    return [], -1
        numbered = ((number, name) for name in names if (number := _number(name)) is not None)
        # Of children that were ever created one half of their changes is left, and one of each that is there.
        return sorted(each for each in numbered if each[0] > self._last), (stat.cversion + stat.num_children) // 2 - 1

    async def _read_notes(self) -> None:
        notes, newest = await self._notes()
        if len(notes) != newest - self._last:
            # Some are gone; or what stood here was deleted and made anew.
            await self._read_everything(newest)
            return
        for start in range(0, len(notes), _NOTES_AT_ONCE):
            some = notes[start : start + _NOTES_AT_ONCE]
            paths = [f"{CONFIG_CHANGES}/{name}" for _, name in some]
            entities: dict[str, None] = {}
            for path, found in zip(paths, await self._coordination.get_many(paths), strict=True):
                if found is None:  # it is gone meanwhile
                    await self._read_everything(newest)
                    return
                _add_entity(entities, path, found[0])
            await self._take(entities)
            self._last = some[-1][0]

    async def _take(self, entities: Collection[str]) -> None:
        """Reads what has changed."""
        for kind in {entity.partition("/")[0] for entity in entities}.intersection(_WITHOUT_EFFECT):
            log_event.warning_limited("quotas and passwords in the tree have no effect", kind, path=f"/config/{kind}")
        wanted = [entity for entity in entities if _is_ours(entity)]
        if not wanted:
            return
        topics: dict[str, Mapping[str, str]] = {}
        brokers: dict[str, Mapping[str, str]] = {}
        groups: dict[str, Mapping[str, str]] = {}
        paths = [f"/config/{entity}" for entity in wanted]
        for entity, path, found in zip(wanted, paths, await self._coordination.get_many(paths), strict=True):
            try:
                overrides = {} if found is None else decode_config(path, found[0])
            except DamagedZnode as fault:
                log_event.error("settings are left as they were", fault=str(fault))
                continue
            kind, _, name = entity.partition("/")
            if kind == "topics":
                if found is not None or self._metadata.knows_config(name):
                    topics[name] = overrides
            elif kind == "groups":
                groups[entity_name(name)] = overrides
            else:
                brokers[name] = overrides
        if topics or brokers or groups:
            await self._learn(self._update(topics, brokers, groups))


def _is_ours(entity: str) -> bool:
    """Whether a note names something that has settings here. Its path comes from the program that left the note."""
    kind, _, name = entity.partition("/")
    if kind == "topics":
        return topic_name_fault(name) is None
    if kind == "brokers":
        return name == DEFAULT_BROKER or (name.isascii() and name.isdigit())
    return kind == "groups" and bool(name.strip(".")) and "/" not in name and name.isprintable()


def _add_entity(entities: dict[str, None], path: str, data: bytes) -> None:
    try:
        entities[decode_config_change(path, data)] = None
    except DamagedZnode as fault:
        log_event.warning_limited("a note of changed settings is passed over", key=path, fault=str(fault))


def _number(name: str) -> int | None:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else None


async def topic_overrides(coordination: Coordination, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """As they stand in the tree. What is damaged counts as none, and the topic keeps everything then."""
    paths = [topic_config_path(name) for name in names]
    overrides: dict[str, Mapping[str, str]] = {}
    for name, path, found in zip(names, paths, await coordination.get_many(paths), strict=True):
        try:
            overrides[name] = {} if found is None else decode_config(path, found[0])
        except DamagedZnode as fault:
            log_event.error("a topic's settings cannot be read, and it keeps everything", topic=name, fault=str(fault))
            overrides[name] = {"cleanup.policy": ""}
    return overrides
