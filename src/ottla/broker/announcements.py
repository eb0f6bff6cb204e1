"""How this broker carries out what its controller decided: roles, metadata, and what follows from changed settings.

Announcements come in requests of another broker's controller (`handlers/leader_and_isr.py` and its neighbours) or in
calls of the one in this process, and go one way from here. They are carried out one after the other, each checked when
its turn comes: what a controller sent before it was replaced changes nothing behind its successor's.

Settings stand in the tree, and UpdateMetadata has no room for them. What this broker has to know of a topic before it
opens a log of it is read from there, unless the controller in this process has said it (`settings.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from ottla import logs
from ottla.config import Config, ConfigError, LogConfig
from ottla.config.dynamic import validate_broker_configs, with_dynamic
from ottla.config.group import validate_group_configs
from ottla.config.live import LiveConfig
from ottla.config.reader import SEGMENT_BYTES_SENSIBLE, small_segments
from ottla.config.topic import effective_log_config
from ottla.controller.announcing.announced import Refused
from ottla.controller.announcing.origin import UNKNOWN_BROKER_EPOCH, Origin
from ottla.controller.deciding.orders import EPOCH_DURING_DELETE, ReplicaStop
from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition, topic_name_fault
from ottla.ports import Clock
from ottla.replication.replicas import Replicas
from ottla.steps import Steps, in_turns, pieces
from ottla.storage.errors import StorageFault
from ottla.storage.log.log import Log

log_event = logs.logger("server")

#: Logs that get their settings in one step: each takes some microseconds.
_LOGS_A_STEP: Final = 16


#: Reads the overrides of topics from the tree.
TopicOverrides = Callable[[Sequence[str]], Awaitable[Mapping[str, Mapping[str, str]]]]


class BrokerAnnouncements:
    """Implements `AnnouncedBroker`."""

    def __init__(
        self,
        broker_id: int,
        clock: Clock,
        live: LiveConfig,
        metadata: MetadataCache,
        replicas: Replicas,
        on_settings: Callable[[Config], None],
        topic_overrides: TopicOverrides,
    ) -> None:
        self._broker_id = broker_id
        self._clock = clock
        #: Called with the broker's own settings when they have changed.
        self._on_settings = on_settings
        self._live = live
        self._metadata = metadata
        self._replicas = replicas
        self._topic_overrides = topic_overrides
        #: Of the present registration: what was meant for one before is refused.
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        #: The highest that a controller ever showed.
        self._controller_epoch = Epoch(-1)
        #: One announcement at a time.
        self._turn = asyncio.Lock()
        #: Where this broker had roles and has none any more: their StopReplica is to come. Of logs that it has.
        self._left: set[TopicPartition] = set()
        #: Topics that were shown, and whose overrides could not be read then: the controller shows them again.
        self._unread: set[str] = set()
        #: Set once this broker knows the whole cluster: from then on it can answer clients.
        self.informed = asyncio.Event()

    def log_config(self, topic: str) -> LogConfig:
        """What governs a topic's logs."""
        return sound_log_config(topic, self._metadata.topic_config(topic), self._live.current.log)

    def check_broker_configs(self, broker: str, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError where these dynamic settings of a broker, or of all, are not to be stored.

        What is stored and not sound together would take all the other dynamic settings out of use with it.
        """
        of_all_brokers = broker == DEFAULT_BROKER
        listeners = {listener.name.lower() for listener in self._live.current.server.listeners}
        validate_broker_configs(overrides, of_all_brokers=of_all_brokers, listeners=listeners)
        if of_all_brokers:
            with_dynamic(self._live.current, overrides, self._metadata.broker_config(self._broker_id))
        elif broker == str(self._broker_id):
            with_dynamic(self._live.current, self._metadata.default_broker_config(), overrides)

    def check_group_configs(self, overrides: Mapping[str, str]) -> None:
        """Raises ConfigError where these settings of a group are not to be stored."""
        validate_group_configs(overrides, self._live.current)

    def registered(self, epoch: int) -> None:
        """Under this registration the broker lives from now on, and fetches."""
        self.broker_epoch = epoch
        own = self._metadata.brokers.get(BrokerId(self._broker_id))
        if own is not None and own.epoch != epoch:
            # Its followers' fetches would be taken for those of an earlier life until somebody else comes or goes.
            others = [each for each in self._metadata.brokers.values() if each.id != self._broker_id]
            brokers = [*others, own._replace(epoch=epoch)]
            self._metadata.apply(MetadataUpdate(controller_epoch=self._metadata.controller_epoch, brokers=brokers))

    # Announcements.

    def check(self, origin: Origin) -> ErrorCode:
        if origin.controller_epoch < max(self._controller_epoch, self._metadata.controller_epoch):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        # One above ours is that of a registration that this broker has yet to hear of itself.
        if UNKNOWN_BROKER_EPOCH != origin.broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        self._controller_epoch = origin.controller_epoch
        return ErrorCode.NONE

    async def make_logs(self, states: Sequence[PartitionState]) -> bool:
        """Of many new replicas, ahead of their roles. Returns whether all of them are there."""
        async with self._turn:
            await self._learn(self._unmet(states))
            return await self._replicas.change(self._replicas.make(states, self.log_config))

    async def take_roles(self, origin: Origin, states: Sequence[PartitionState]) -> Refused:
        async with self._turn:
            refusal = self.check(origin)
            if refusal is not ErrorCode.NONE:
                return refusal
            sound, refused = await in_turns(self._sound(states), self._clock.monotonic_ms)
            await self._learn(self._unmet(sound))
            answers = await self._replicas.change(self._replicas.take_on(sound, self.log_config))
            return refused | {tp: error for tp, error in answers.items() if error != ErrorCode.NONE}

    async def take_metadata(
        self,
        origin: Origin,
        update: MetadataUpdate,
        *,
        all_topics: Collection[str] | None = None,
        informs: bool = False,
    ) -> ErrorCode:
        async with self._turn:
            refusal = self.check(origin)
            if refusal is not ErrorCode.NONE:
                return refusal
            update = self._with_own_epoch(update, origin)
            if all_topics is not None:
                gone = [name for name in self._metadata.topics if name not in all_topics]
                update = replace(update, topics_deleted=[*update.topics_deleted, *gone])
            unmet = self._unmet(update.partitions)
            if not self._metadata.apply(update):
                return ErrorCode.STALE_CONTROLLER_EPOCH
            informs = informs or update.whole or all_topics is not None
            is_first = informs and not self.informed.is_set()
            await self._take_settings(update, all_logs=update.whole or is_first)
            self._unread = {name for name in (*self._unread, *unmet) if self._metadata.topic(name) is not None}
            await self._learn(unmet)
            await self._leave(update.partitions)
            if update.whole or all_topics is not None:
                await self._put_strays_away()
            if informs:
                self.informed.set()
            return ErrorCode.NONE

    async def _leave(self, states: Sequence[PartitionState]) -> None:
        """Gives up roles in partitions that are elsewhere by now; what is on the disk waits for StopReplica.

        After an ordinary move that comes next. A broker that was away meanwhile was not stopped, and would lead on for
        clients that were away as well.
        """
        moved = await in_turns(self._moved_away(states), self._clock.monotonic_ms)
        if moved:
            log_event.info("partitions are elsewhere by now", partitions=len(moved), first=str(moved[0]))
            self._left.update(moved)
            await self._replicas.change(self._replicas.give_up(moved, delete=False))

    def _moved_away(self, states: Sequence[PartitionState]) -> Steps[list[TopicPartition]]:
        ours, replicas = self._broker_id, self._replicas
        moved: list[TopicPartition] = []
        for piece in pieces(states):
            gone = [state for state in piece if ours not in state.replicas and replicas.is_here_before(state)]
            moved += [TopicPartition(state.topic, state.partition) for state in gone]
            yield
        return moved

    async def _put_strays_away(self) -> None:
        """Replicas whose partitions are elsewhere, and which nobody will stop any more: a controller died between the
        write that ended their move and its StopReplica, or this broker was away. An announcement that names everything
        shows them."""
        strays = await in_turns(self._strays(), self._clock.monotonic_ms)
        left = [tp for tp in strays if tp in self._left]
        # In what a start has found it had no role: the disks may be another broker's, which was given the wrong number.
        found = [tp for tp in strays if tp not in self._left]
        for partitions, keep in ((left, False), (found, True)):
            if partitions:
                first = str(partitions[0])
                log_event.warning("replicas are elsewhere, and set aside", partitions=len(partitions), first=first)
                await self._replicas.change(self._replicas.set_aside(partitions, keep=keep))
        self._left.intersection_update(self._replicas.directories.logs)

    def _strays(self) -> Steps[list[TopicPartition]]:
        replicas, ours = self._replicas, self._broker_id
        found: list[TopicPartition] = []
        for piece in pieces(list(replicas.directories.logs.items()), _LOGS_A_STEP):
            for tp, log in piece:
                state = self._metadata.partition(*tp)
                if state is None or ours in state.replicas or state.topic_id != log.topic_id:
                    continue
                # A log with records of a later leader than the tree knows is of a tree that was put back from a copy.
                if replicas.epoch(tp) < 0 and _latest_epoch(log) <= state.leader_epoch:
                    found.append(tp)
            yield
        return found

    def _with_own_epoch(self, update: MetadataUpdate, origin: Origin) -> MetadataUpdate:
        """A request does not say the registrations of live brokers; this one knows its own, and fetches under it.

        The controller may know a later one, whose answer from the tree is still on its way here.
        """
        brokers = update.brokers
        if brokers is None or not any(each.id == self._broker_id and each.epoch < 0 for each in brokers):
            return update
        own = max(self.broker_epoch, origin.broker_epoch)
        return replace(
            update, brokers=[each._replace(epoch=own) if each.id == self._broker_id else each for each in brokers]
        )

    async def stop_replicas(self, origin: Origin, stops: Sequence[ReplicaStop]) -> Refused:
        async with self._turn:
            refusal = self.check(origin)
            if refusal is not ErrorCode.NONE:
                return refusal
            kept, deleted, refused = await in_turns(self._sorted(stops), self._clock.monotonic_ms)
            self._left.difference_update(deleted)
            self._forget_deleted(stops)
            for partitions, delete in ((kept, False), (deleted, True)):
                if partitions:
                    steps = self._replicas.give_up(partitions, delete=delete)
                    refused |= await self._replicas.change(steps)
            return refused

    def _sound(
        self, states: Sequence[PartitionState]
    ) -> Steps[tuple[list[PartitionState], dict[TopicPartition, ErrorCode]]]:
        """Those that this broker can carry out. A topic becomes a folder's name, and comes from the wire."""
        sound: list[PartitionState] = []
        refused: dict[TopicPartition, ErrorCode] = {}
        ours = self._broker_id
        for piece in pieces(states):
            for state in piece:
                tp = TopicPartition(state.topic, state.partition)
                if topic_name_fault(state.topic) is not None or state.partition < 0:
                    refused[tp] = ErrorCode.INVALID_TOPIC_EXCEPTION
                elif ours not in state.replicas:
                    refused[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif state.leader == ours and ours not in state.isr:
                    refused[tp] = ErrorCode.INVALID_REQUEST
                else:
                    sound.append(state)
            yield
        return sound, refused

    def _sorted(
        self, stops: Sequence[ReplicaStop]
    ) -> Steps[tuple[list[TopicPartition], list[TopicPartition], dict[TopicPartition, ErrorCode]]]:
        """Replicas that are kept on the disk, those that are deleted, and those whose role is a later one."""
        kept: list[TopicPartition] = []
        deleted: list[TopicPartition] = []
        refused: dict[TopicPartition, ErrorCode] = {}
        for piece in pieces(stops):
            for stop in piece:
                if 0 <= stop.leader_epoch < self._replicas.epoch(stop.tp):
                    refused[stop.tp] = ErrorCode.FENCED_LEADER_EPOCH
                else:
                    (deleted if stop.delete else kept).append(stop.tp)
            yield
        return kept, deleted, refused

    # Settings.

    def _forget_deleted(self, stops: Sequence[ReplicaStop]) -> None:
        """Topics of which no metadata says that they are gone, since they never were shown: they were being made, or
        were marked before this broker started, and have had no role since. A later topic of that name has settings and
        groups' offsets of its own."""
        metadata, replicas = self._metadata, self._replicas
        deleted: dict[str, bool] = {}
        for stop in stops:
            if stop.leader_epoch == EPOCH_DURING_DELETE:
                has_role = replicas.epoch(stop.tp) >= 0
                deleted[stop.tp.topic] = deleted.get(stop.tp.topic, False) or has_role
        unseen = [
            topic
            for topic, has_role in deleted.items()
            if metadata.topic(topic) is None and (metadata.knows_config(topic) or not has_role)
        ]
        if unseen:
            metadata.apply(MetadataUpdate(controller_epoch=metadata.controller_epoch, topics_deleted=unseen))

    async def learn(self, update: MetadataUpdate) -> None:
        """Settings, as they stand in the tree, whoever is the controller by the time that it is their turn."""
        async with self._turn:
            self._metadata.apply(replace(update, controller_epoch=self._metadata.controller_epoch))
            await self._take_settings(update, all_logs=update.whole)

    def _unmet(self, states: Iterable[PartitionState]) -> list[str]:
        """Topics whose overrides are to be read. What is known of one that no metadata has shown may be of an earlier
        topic of its name, whose node in the tree outlives it until all its replicas are gone."""
        metadata = self._metadata
        shown = {state.topic: state.topic_id for state in states}
        return [
            topic
            for topic, topic_id in shown.items()
            if (known := metadata.topic(topic)) is None
            or known.id != topic_id
            or not metadata.knows_config(topic)
            or topic in self._unread
        ]

    async def _learn(self, topics: Sequence[str]) -> None:
        """Their overrides."""
        if not topics:
            return
        metadata = self._metadata
        found = await self._topic_overrides(topics)
        self._unread.difference_update(topics)
        update = MetadataUpdate(controller_epoch=metadata.controller_epoch, topic_configs=found)
        metadata.apply(update)
        await self._take_settings(update, all_logs=False)

    async def _take_settings(self, update: MetadataUpdate, *, all_logs: bool) -> None:
        if update.broker_configs or all_logs:
            self._take_broker_settings()
            await self._do(self._reconfigure(None))
        elif update.topic_configs:
            await self._do(self._reconfigure(update.topic_configs))

    async def _do(self, steps: Steps[None]) -> None:
        await in_turns(steps, self._clock.monotonic_ms)

    def _take_broker_settings(self) -> None:
        metadata = self._metadata
        try:
            self._live.current = with_dynamic(
                self._live.current, metadata.default_broker_config(), metadata.broker_config(self._broker_id)
            )
        except ConfigError as error:
            log_event.warning("dynamic settings are not used", reason=error)
        else:
            self._on_settings(self._live.current)

    def _reconfigure(self, topics: Mapping[str, object] | None) -> Steps[None]:
        """Hands changed settings to the logs that are open; None: to all of them."""
        configs: dict[str, LogConfig] = {}
        for piece in pieces(list(self._replicas.directories.logs.values()), _LOGS_A_STEP):
            for log in piece:
                topic = log.tp.topic
                if topics is None or topic in topics:
                    config = configs.get(topic)
                    if config is None:
                        config = configs[topic] = self.log_config(topic)
                    log.reconfigure(config)
            yield


def _latest_epoch(log: Log) -> float:
    """Infinite where the log cannot say it."""
    try:
        return log.epochs.latest
    except StorageFault:
        return inf


def sound_log_config(topic: str, overrides: Mapping[str, str], defaults: LogConfig) -> LogConfig:
    """What governs a topic's logs. Overrides that are not sound are passed over with a warning.

    Among them may be one that was to keep records: so nothing is removed until somebody sets them right.
    """
    try:
        config = effective_log_config(overrides, defaults)
    except ConfigError as error:
        log_event.warning_limited(
            "a topic's settings are not used, and it keeps everything", key=topic, topic=topic, reason=error
        )
        return defaults._replace(cleanup_policy=frozenset())
    if "segment.bytes" in overrides and config.segment_bytes < SEGMENT_BYTES_SENSIBLE:
        log_event.warning_once(small_segments("segment.bytes", config.segment_bytes), key=topic, topic=topic)
    return config
