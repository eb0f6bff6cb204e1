"""How this broker carries out what its controller decided: roles, metadata, and what follows from changed settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ottla import logs
from ottla.config import Config, ConfigError, LogConfig
from ottla.config.dynamic import validate_broker_configs, with_dynamic
from ottla.config.group import validate_group_configs
from ottla.config.live import LiveConfig
from ottla.config.reader import SEGMENT_BYTES_SENSIBLE, small_segments
from ottla.config.topic import effective_log_config
from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.replication.replicas import Replicas
from ottla.steps import Steps, in_turns, pieces

log_event = logs.logger("server")

#: Logs that get their settings in one step: each takes some microseconds.
_LOGS_A_STEP: Final = 16


class BrokerAnnouncements:
    """Implements the controller's `Receiver` for the broker in this process."""

    def __init__(
        self,
        broker_id: int,
        clock: Clock,
        live: LiveConfig,
        metadata: MetadataCache,
        replicas: Replicas,
        on_settings: Callable[[Config], None],
    ) -> None:
        self._broker_id = broker_id
        self._clock = clock
        #: Called with the broker's own settings when they have changed.
        self._on_settings = on_settings
        self._live = live
        self._metadata = metadata
        self._replicas = replicas

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

    async def on_new_replicas(self, states: Sequence[PartitionState]) -> bool:
        return await self._replicas.change(self._replicas.make(states, self.log_config))

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        answers = await self._replicas.change(self._replicas.take_on(states, self.log_config))
        return {tp: error for tp, error in answers.items() if error != ErrorCode.NONE}

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        if not self._metadata.apply(update):
            return
        if update.whole or update.broker_configs:
            self._take_broker_settings()
            await self._do(self._reconfigure(None))
        elif update.topic_configs:
            await self._do(self._reconfigure(update.topic_configs))

    async def _do(self, steps: Steps[None]) -> None:
        await in_turns(steps, self._clock.monotonic_ms)

    async def on_stop_replicas(
        self, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        return await self._replicas.change(self._replicas.give_up(partitions, delete=delete))

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
