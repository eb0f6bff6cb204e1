"""Follows the source's topics: which there are, with how many partitions and which settings, and has the target alike.

Settings are those that were set for the topic itself; what it has from its brokers stays each cluster's own. A topic
of the target that has more partitions than its source, or whose source is gone, is left as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    NewTopic,
    TopicDescription,
)
from ottla.client.errors import (
    InvalidReplicationFactor,
    KafkaError,
    SomeFailed,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from ottla.logs import logger
from ottla.mirror.properties import FlowSettings
from ottla.model import TopicPartition

#: Topics whose settings are asked for in one request.
TOPICS_AT_ONCE: Final = 200

Configs = Mapping[str, str | None]


class TopicFollower:
    """Of one flow."""

    def __init__(self, settings: FlowSettings, source: Admin, target: Admin) -> None:
        self._settings = settings
        self._policy = settings.policy
        self._source = source
        self._target = target
        self._one_at_a_time = asyncio.Lock()
        #: Of the source's topics, as they were when they were last looked for.
        self.ids: dict[str, bytes] = {}
        #: Partitions that the target is known to have, by the source's topic.
        self._there: dict[str, int] = {}
        #: Whether the target refused some topic or partition: that is tried again soon.
        self.incomplete = False
        #: Why, by the partitions of the source that are not there.
        self.refused: dict[TopicPartition, str] = {}
        self._log = logger("mirror").bind(flow=settings.name)

    def copies(self, topic: str) -> bool:
        """Whether this topic of the source belongs to the flow."""
        policy = self._policy
        return (
            self._settings.topics.takes(topic) and not policy.is_internal(topic) and not policy.comes_from_target(topic)
        )

    async def refresh(self) -> dict[str, int]:
        """The flow's topics with their numbers of partitions; the target has them then, but those that it refused."""
        described = await self._source.describe_topics()
        wanted = {name: one for name, one in described.items() if self.copies(name)}
        self.ids = {name: one.topic_id for name, one in wanted.items()}
        async with self._one_at_a_time:
            self.refused = {tp: why for tp, why in self.refused.items() if tp.topic in wanted}
            self._there = {name: count for name, count in self._there.items() if name in wanted}
            await self._have(wanted)
        self.incomplete = any(self._there.get(name) != len(one.partitions) for name, one in wanted.items())
        return {name: self._there[name] for name in wanted if name in self._there}

    async def follow(self, topic: str) -> None:
        """Has one topic's copy there."""
        source = self._source.cluster.metadata.topics.get(topic)
        known = self._target.cluster.metadata.topics.get(self._policy.remote_topic(topic))
        if source is not None and known is not None and len(known.partitions) >= len(source.partitions):
            return
        async with self._one_at_a_time:
            await self._have({topic: (await self._source.describe_topics([topic]))[topic]})
        self._target.cluster.request_update()

    async def _have(self, wanted: Mapping[str, TopicDescription]) -> None:
        there = await self._target.describe_topics()
        missing: dict[str, TopicDescription] = {}
        self.refused = {tp: why for tp, why in self.refused.items() if tp.topic not in wanted}
        for name, source in wanted.items():
            copy = there.get(self._policy.remote_topic(name))
            if copy is None:
                missing[name] = source
                self._there.pop(name, None)
            elif len(copy.partitions) < len(source.partitions):
                await self._add_partitions(name, len(copy.partitions), len(source.partitions))
            else:
                if len(copy.partitions) > len(source.partitions):
                    self._log.warning_once("the copy has more partitions than the original", name, topic=name)
                self._there[name] = len(source.partitions)
        if missing:
            await self._create(missing)

    async def _create(self, missing: Mapping[str, TopicDescription]) -> None:
        configs = await self._configs(self._source, missing) if self._settings.sync_configs_s is not None else {}
        for name, source in missing.items():
            copy = self._policy.remote_topic(name)
            new = NewTopic(copy, len(source.partitions), self._settings.replication_factor, configs.get(name, {}))
            try:
                await self._target.create_topics([new])
            except TopicAlreadyExists:
                pass
            except InvalidReplicationFactor as error:
                self._log.warning_limited(
                    "a topic could not be created", copy, topic=copy, why=str(error), property="replication.factor"
                )
                self._refuse(name, range(len(source.partitions)), error)
                continue
            except KafkaError as error:
                self._log.warning_limited("a topic could not be created", copy, topic=copy, why=str(error))
                self._refuse(name, range(len(source.partitions)), error)
                continue
            else:
                self._log.info("a topic was created", topic=copy, partitions=len(source.partitions))
            self._there[name] = len(source.partitions)

    async def _add_partitions(self, name: str, there: int, count: int) -> None:
        copy = self._policy.remote_topic(name)
        try:
            await self._target.create_partitions({copy: count})
        except KafkaError as error:
            self._log.warning_limited("partitions could not be added", copy, topic=copy, why=str(error))
            self._refuse(name, range(there, count), error)
            self._there[name] = there  # those are copied
            return
        self._log.info("partitions were added", topic=copy, partitions=count)
        self._there[name] = count

    def _refuse(self, name: str, numbers: Iterable[int], error: KafkaError) -> None:
        for number in numbers:
            self.refused[TopicPartition(name, number)] = (
                f"{name}-{number}: the target does not take it, as {self._policy.remote_topic(name)}: {error}"
            )

    async def sync_configs(self) -> None:
        """Has the copies' own settings be those of their originals, but those that stay each side's own."""
        originals = await self._configs(self._source, list(self._there))
        copies = await self._configs(self._target, [self._policy.remote_topic(name) for name in originals])
        for name, wanted in originals.items():
            copy = self._policy.remote_topic(name)
            if copy not in copies:
                continue
            there = copies[copy]
            changes = [ConfigChange(key, value) for key, value in wanted.items() if there.get(key) != value]
            changes += [ConfigChange(key, None, ConfigOperation.DELETE) for key in there if key not in wanted]
            if not changes:
                continue
            try:
                await self._target.incremental_alter_configs({ConfigResource.topic(copy): changes})
            except KafkaError as error:
                self._log.warning_limited("settings could not be changed", copy, topic=copy, why=str(error))
            else:
                self._log.info("settings were changed", topic=copy, names=", ".join(one.name for one in changes))

    async def _configs(self, admin: Admin, topics: Iterable[str]) -> dict[str, Configs]:
        """What was set for each of these topics; those that are gone are left out."""
        names = list(topics)
        found: dict[str, Configs] = {}
        for begin in range(0, len(names), TOPICS_AT_ONCE):
            some = [ConfigResource.topic(name) for name in names[begin : begin + TOPICS_AT_ONCE]]
            try:
                described = await admin.describe_configs(some)
            except SomeFailed as error:
                described = error.results
            except UnknownTopicOrPartition:  # one that has just come or gone
                continue
            for resource, entries in described.items():
                found[resource.name] = {
                    entry.name: entry.value
                    for entry in entries.values()
                    if entry.source is ConfigSource.TOPIC_CONFIG and not self._stays(entry.name)
                }
        return found

    def _stays(self, name: str) -> bool:
        excluded = self._settings.config_excluded
        return excluded is not None and excluded.fullmatch(name) is not None
