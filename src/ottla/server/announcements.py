"""How this broker carries out what its controller decided: roles, metadata, and what follows from changed settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ottla import logs
from ottla.config import Config, ConfigError, LogConfig
from ottla.config.dynamic import validate_broker_configs, with_dynamic
from ottla.config.live import LiveConfig
from ottla.config.topic import effective_log_config
from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import ErrorCode, TopicPartition
from ottla.replication.replicas import Replicas

log_event = logs.logger("server")


class Announced:
    """Implements the controller's `Announcements` for the broker in this process."""

    def __init__(
        self,
        broker_id: int,
        live: LiveConfig,
        metadata: MetadataCache,
        replicas: Replicas,
        on_settings: Callable[[Config], None],
    ) -> None:
        self._broker_id = broker_id
        #: Told the broker's own settings when they have changed.
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
        validate_broker_configs(overrides, of_all_brokers=of_all_brokers)
        if of_all_brokers:
            with_dynamic(self._live.current, overrides, self._metadata.broker_config(self._broker_id))
        elif broker == str(self._broker_id):
            with_dynamic(self._live.current, self._metadata.default_broker_config(), overrides)

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        answers = self._replicas.apply(states, self.log_config)
        return {tp: error for tp, error in answers.items() if error != ErrorCode.NONE}

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        if not self._metadata.apply(update):
            return
        if update.whole or update.broker_configs:
            self._take_broker_settings()
            self._reconfigure(None)
        elif update.topic_configs:
            self._reconfigure(update.topic_configs)

    async def on_stop_replicas(
        self, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        failed = {}
        for tp in partitions:
            error = self._replicas.stop(tp, delete=delete)
            if error != ErrorCode.NONE:
                failed[tp] = error
        return failed

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

    def _reconfigure(self, topics: Mapping[str, object] | None) -> None:
        """Hands changed settings to the logs that are open; None: to all of them."""
        configs: dict[str, LogConfig] = {}
        for tp, log in self._replicas.directories.logs.items():
            if topics is None or tp.topic in topics:
                config = configs.get(tp.topic)
                if config is None:
                    config = configs[tp.topic] = self.log_config(tp.topic)
                log.reconfigure(config)


def sound_log_config(topic: str, overrides: Mapping[str, str], defaults: LogConfig) -> LogConfig:
    """What governs a topic's logs. Overrides that are not sound are passed over with a warning.

    Among them may be one that was to keep records: so nothing is removed until somebody sets them right.
    """
    try:
        return effective_log_config(overrides, defaults)
    except ConfigError as error:
        log_event.warning_limited(
            "a topic's settings are not used, and it keeps everything", key=topic, topic=topic, reason=error
        )
        return defaults._replace(cleanup_policy=frozenset())
