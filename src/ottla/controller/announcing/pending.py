"""What a broker is to be announced and was not yet: the difference between what is desired and what is confirmed.

It is kept by topic and partition, so that of two decisions on one thing only the later is left. A deleted topic takes
with it what was still to be said of it, a replica that is given up its role, and a role the order to give it up. So it
grows with the cluster and not with time; only names of what is gone pile up, which `BrokerQueue` has a bound for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, TypeVar

from ottla.controller.deciding.orders import ReplicaStop
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import NO_EPOCH

T = TypeVar("T")
U = TypeVar("U")

_topic_of: Final = attrgetter("topic")
_stopped_topic: Final = attrgetter("tp.topic")


class PendingNews:
    def __init__(self) -> None:
        #: What of the cluster, settings and deletions is to be known; None: nothing. Its partitions are in `shown`.
        self._settings: MetadataUpdate | None = None
        self._deleted: dict[str, None] = {}
        self._topic_configs: dict[str, Mapping[str, str]] = {}
        self._broker_configs: dict[str, Mapping[str, str]] = {}
        self._group_configs: dict[str, Mapping[str, str]] = {}
        #: Topic -> partition -> what clients are to see.
        self._shown: dict[str, dict[int, PartitionState]] = {}
        self._roles: dict[str, dict[int, PartitionState]] = {}
        self._stops: dict[str, dict[int, ReplicaStop]] = {}
        #: Called when all of this is confirmed.
        self.waiting: list[Callable[[], None]] = []

    @property
    def names_of_the_gone(self) -> int:
        """Deleted topics, and groups that have no settings any more."""
        return len(self._deleted) + sum(not overrides for overrides in self._group_configs.values())

    def __bool__(self) -> bool:
        return bool(self._settings or self._shown or self._roles or self._stops or self.waiting)

    # What is added takes the place of what it supersedes.

    def add_metadata(self, update: MetadataUpdate) -> None:
        if update.whole:
            # What was there before is in it, or gone.
            for of_before in (self._deleted, self._topic_configs, self._broker_configs, self._group_configs):
                of_before.clear()
            self._shown.clear()
            self._settings = None
        for topic in update.topics_deleted:
            self._deleted[topic] = None
            self._topic_configs.pop(topic, None)
            self._shown.pop(topic, None)
        self._topic_configs.update(update.topic_configs)
        self._broker_configs.update(update.broker_configs)
        self._group_configs.update(update.group_configs)
        _merge(self._shown, update.partitions)
        self._settings = _with(self._settings, update)

    def add_roles(self, states: Sequence[PartitionState]) -> None:
        _merge(self._roles, states)
        if self._stops:
            for topic in self._stops.keys() & {state.topic for state in states}:
                _take_out(self._stops, topic, self._roles[topic])

    def add_stops(self, stops: Sequence[ReplicaStop]) -> None:
        for topic, found in groupby(stops, _stopped_topic):
            self._stops.setdefault(topic, {}).update({stop.tp.partition: stop for stop in found})
            _take_out(self._roles, topic, self._stops[topic])

    def absorb(self, later: PendingNews) -> None:
        """Takes over what was decided behind this."""
        if later._settings is not None:
            self.add_metadata(later._update(partitions=_flat(later._shown)))
        self.add_roles(_flat(later._roles))
        self.add_stops(_flat(later._stops))
        self.waiting += later.waiting

    # Its parts, in the order in which they are announced. A part stays until it is dropped.

    def settings(self) -> MetadataUpdate | None:
        """All but partitions: which overrides govern a log is known before the log is opened."""
        update = self._settings
        if update is None or not (self._deleted or self._topic_configs or _says_more(update) or self._other_configs):
            return None
        return replace(self._update(), whole=False)

    @property
    def _other_configs(self) -> bool:
        return bool(self._broker_configs or self._group_configs)

    def roles(self) -> list[PartitionState]:
        return _flat(self._roles)

    def shown(self) -> MetadataUpdate | None:
        update = self._settings
        if update is None or not (self._shown or update.whole):
            return None
        if update.whole:
            return self._update(partitions=_flat(self._shown))
        return MetadataUpdate(controller_epoch=update.controller_epoch, partitions=_flat(self._shown))

    def stops(self) -> list[ReplicaStop]:
        return _flat(self._stops)

    def drop_settings(self) -> None:
        """With a whole update they are said again."""
        update = self._settings
        assert update is not None
        if update.whole:
            return
        self._settings = MetadataUpdate(controller_epoch=update.controller_epoch) if self._shown else None
        for said in (self._deleted, self._topic_configs, self._broker_configs, self._group_configs):
            said.clear()

    def drop_roles(self) -> None:
        self._roles.clear()

    def drop_shown(self) -> None:
        """The settings went before it."""
        self._shown.clear()
        self._settings = None
        for said in (self._deleted, self._topic_configs, self._broker_configs, self._group_configs):
            said.clear()

    def drop_stops(self) -> None:
        self._stops.clear()

    def _update(self, partitions: Sequence[PartitionState] = ()) -> MetadataUpdate:
        assert self._settings is not None
        return replace(
            self._settings,
            topics_deleted=list(self._deleted),
            topic_configs=dict(self._topic_configs),
            broker_configs=dict(self._broker_configs),
            group_configs=dict(self._group_configs),
            partitions=partitions,
        )


def _with(before: MetadataUpdate | None, update: MetadataUpdate) -> MetadataUpdate:
    """What is in no table: the cluster, its controller, its brokers."""
    base = before or MetadataUpdate(controller_epoch=NO_EPOCH)
    return MetadataUpdate(
        controller_epoch=update.controller_epoch,
        whole=base.whole or update.whole,
        cluster_id=base.cluster_id if update.cluster_id is None else update.cluster_id,
        controller_id=base.controller_id if update.controller_id is None else update.controller_id,
        brokers=base.brokers if update.brokers is None else update.brokers,
    )


def _says_more(update: MetadataUpdate) -> bool:
    return update.whole or update.brokers is not None or update.controller_id is not None


def _merge(table: dict[str, dict[int, PartitionState]], states: Iterable[PartitionState]) -> None:
    for topic, found in groupby(states, _topic_of):
        table.setdefault(topic, {}).update({state.partition: state for state in found})


def _take_out(table: dict[str, dict[int, T]], topic: str, partitions: Mapping[int, U]) -> None:
    numbers = table.get(topic)
    if numbers is None:
        return
    for partition in numbers.keys() & partitions.keys():
        del numbers[partition]
    if not numbers:
        del table[topic]


def _flat(table: Mapping[str, Mapping[int, T]]) -> list[T]:
    return list(chain.from_iterable(numbers.values() for numbers in table.values()))
