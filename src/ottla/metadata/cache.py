"""The metadata cache: what handlers answer from and replication reads. `apply` is the only way in.

Everything that is handed out is immutable and replaced as a whole when it changes, so that a reader may keep it across
an await, and an encoded answer may be kept as long as `generation` (or the identity of a topic's object) is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from ottla.metadata.history import PartitionHistory
from ottla.metadata.updates import DEFAULT_BROKER, UNKNOWN_CONTROLLER, BrokerEndpoints, MetadataUpdate, PartitionState
from ottla.model import INTERNAL_TOPICS, ZERO_TOPIC_ID, BrokerId, Epoch, TopicId

_NUMBER: Final = attrgetter("partition")
_NO_OVERRIDES: Final[Mapping[str, str]] = MappingProxyType({})

#: Called after an update was applied. Its `topics_deleted` are all topics that are gone with it: also those that a
#: whole update does not name, and those in whose place it has others of the same name.
UpdateListener = Callable[[MetadataUpdate], None]


class TopicMetadata:
    """One topic. Never changed: an update makes a new one."""

    __slots__ = ("id", "is_internal", "name", "partitions")

    def __init__(self, name: str, topic_id: TopicId, partitions: tuple[PartitionState, ...]) -> None:
        self.name = name
        self.id = topic_id
        #: In order of their numbers, which have no gaps once the controller has announced all of them.
        self.partitions = partitions
        self.is_internal = name in INTERNAL_TOPICS

    def partition(self, number: int) -> PartitionState | None:
        partitions = self.partitions
        if 0 <= number < len(partitions) and partitions[number].partition == number:
            return partitions[number]
        # One that is not there, or of a topic that is known in part. A client may ask for any number of these.
        place = bisect_left(partitions, number, key=_NUMBER)
        found = partitions[place] if place < len(partitions) else None
        return found if found is not None and found.partition == number else None


class MetadataCache:
    def __init__(self) -> None:
        #: Rises with each update.
        self.generation = 0
        self.cluster_id: str | None = None
        self.controller_id: BrokerId = UNKNOWN_CONTROLLER
        self.controller_epoch = Epoch(0)
        #: Live brokers, in order of their ids.
        self.brokers: Mapping[BrokerId, BrokerEndpoints] = MappingProxyType({})
        #: Those of them that seem to have died (`doubts.py`): no client is sent there.
        self.doubted: frozenset[BrokerId] = frozenset()
        self._topics: dict[str, TopicMetadata] = {}
        self._names: dict[TopicId, str] = {}
        self._topic_configs: dict[str, Mapping[str, str]] = {}
        self._broker_configs: dict[str, Mapping[str, str]] = {}
        self._group_configs: dict[str, Mapping[str, str]] = {}
        self._listeners: list[UpdateListener] = []
        #: What partitions were like before; None where nobody asks for that.
        self.history: PartitionHistory | None = None
        #: What handlers made from all this and want to keep until it changes, by keys of their own.
        self.derived: dict[Hashable, Any] = {}

    # Reading.

    @property
    def topics(self) -> Mapping[str, TopicMetadata]:
        return MappingProxyType(self._topics)

    def topic(self, name: str) -> TopicMetadata | None:
        return self._topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicMetadata | None:
        name = self._names.get(TopicId(topic_id))
        return None if name is None else self._topics[name]

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(TopicId(topic_id))

    def partition(self, topic: str, number: int) -> PartitionState | None:
        found = self._topics.get(topic)
        return None if found is None else found.partition(number)

    def topic_config(self, name: str) -> Mapping[str, str]:
        """The overrides of a topic; empty where there are none."""
        return self._topic_configs.get(name, _NO_OVERRIDES)

    def knows_config(self, name: str) -> bool:
        """Whether it was ever said which overrides a topic has, if only that there are none."""
        return name in self._topic_configs

    def broker_config(self, broker_id: int) -> Mapping[str, str]:
        """The overrides of one broker."""
        return self._broker_configs.get(str(broker_id), _NO_OVERRIDES)

    def default_broker_config(self) -> Mapping[str, str]:
        """The overrides for all brokers, which those of one broker come before."""
        return self._broker_configs.get(DEFAULT_BROKER, _NO_OVERRIDES)

    @property
    def configured_brokers(self) -> Iterable[str]:
        """Those with overrides, as ids in text, and DEFAULT_BROKER."""
        return list(self._broker_configs)

    @property
    def configured_groups(self) -> Iterable[str]:
        return list(self._group_configs)

    def group_config(self, group: str) -> Mapping[str, str]:
        """The overrides of a group, whether there is such a group or not."""
        return self._group_configs.get(group, _NO_OVERRIDES)

    # Writing.

    def listen(self, listener: UpdateListener) -> None:
        """Calls `listener` after each update that was applied, in order of registration."""
        self._listeners.append(listener)

    def apply(self, update: MetadataUpdate) -> bool:
        """Takes an update over. False, and nothing changes, when it comes from a controller that was replaced."""
        if update.controller_epoch < self.controller_epoch:
            return False
        self.controller_epoch = update.controller_epoch
        unnamed: list[str] = []
        if update.whole:
            named = {state.topic for state in update.partitions}
            unnamed = [name for name in self._topics if name not in named]
            self._forget(unnamed)
            self._topic_configs.clear()
            self._broker_configs.clear()
            self._group_configs.clear()
        if update.cluster_id is not None:
            self.cluster_id = update.cluster_id
        if update.controller_id is not None:
            self.controller_id = update.controller_id
        if update.brokers is not None:
            ordered = sorted(update.brokers, key=lambda broker: broker.id)
            self.brokers = MappingProxyType({broker.id: broker for broker in ordered})
            self.doubted = frozenset()
        self._forget(update.topics_deleted)
        replaced = self._apply_partitions(update.partitions, whole=update.whole)
        for name, overrides in update.topic_configs.items():
            self._topic_configs[name] = MappingProxyType(dict(overrides))
        for broker, overrides in update.broker_configs.items():
            self._broker_configs[broker] = MappingProxyType(dict(overrides))
        for group, overrides in update.group_configs.items():
            if overrides:
                self._group_configs[group] = MappingProxyType(dict(overrides))
            else:
                self._group_configs.pop(group, None)
        self.generation += 1
        self.derived.clear()
        if unnamed or replaced:
            gone = list(dict.fromkeys([*update.topics_deleted, *unnamed, *replaced]))
            update = replace(update, topics_deleted=gone)
        for listener in self._listeners:
            listener(update)
        return True

    def doubt(self, broker: BrokerId) -> None:
        if broker not in self.doubted:
            self.doubted |= {broker}
            self.derived.clear()

    def believe(self, broker: BrokerId) -> None:
        if broker in self.doubted:
            self.doubted -= {broker}
            self.derived.clear()

    def _apply_partitions(self, states: Iterable[PartitionState], *, whole: bool) -> list[str]:
        """Returns topics in whose place there are others now."""
        replaced: list[str] = []
        by_topic: dict[str, dict[int, PartitionState]] = {}
        for state in states:
            by_topic.setdefault(state.topic, {})[state.partition] = state
        for name, changed in by_topic.items():
            topic_id = next(iter(changed.values())).topic_id
            known = self._topics.get(name)
            if known is not None and known.id != topic_id:
                # Deleted and created again, and the deletion was never heard of. Old requests say no ids.
                if ZERO_TOPIC_ID not in (known.id, topic_id):
                    replaced.append(name)
                self._forget([name])
                known = None
            partitions = changed
            if known is not None and self.history is not None:
                self._remember(known, changed.values(), self.history)
            if known is not None and not whole:
                partitions = {state.partition: state for state in known.partitions} | changed
            ordered = tuple(partitions[number] for number in sorted(partitions))
            self._topics[name] = TopicMetadata(name, topic_id, ordered)
            if topic_id != ZERO_TOPIC_ID:
                self._names[topic_id] = name
        return replaced

    @staticmethod
    def _remember(known: TopicMetadata, changed: Iterable[PartitionState], history: PartitionHistory) -> None:
        for state in changed:
            before = known.partition(state.partition)
            if before is not None:
                history.changed(before, state)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            topic = self._topics.pop(name, None)
            self._topic_configs.pop(name, None)
            if topic is not None:
                self._names.pop(topic.id, None)
