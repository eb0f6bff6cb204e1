"""How this broker carries out what its controller decided: roles, metadata, and what follows from changed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla import logs
from ottla.config import ConfigError, LogConfig
from ottla.config.dynamic import with_dynamic
from ottla.config.topic import effective_log_config
from ottla.handlers.call import Services
from ottla.metadata import MetadataUpdate, PartitionState
from ottla.model import ErrorCode, TopicPartition

log_event = logs.logger("server")


class Announced:
    """Implements the controller's `Announcements` for the broker in this process."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def log_config(self, topic: str) -> LogConfig:
        """What governs a topic's logs. Overrides that are not sound are passed over with a warning."""
        defaults = self._services.config.log
        try:
            return effective_log_config(self._services.metadata.topic_config(topic), defaults)
        except ConfigError as error:
            log_event.warning_limited("a topic's settings are not used", key=topic, topic=topic, reason=error)
            return defaults

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        answers = self._services.replicas.apply(states, self.log_config)
        return {tp: error for tp, error in answers.items() if error != ErrorCode.NONE}

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        if not self._services.metadata.apply(update):
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
            error = self._services.replicas.stop(tp, delete=delete)
            if error != ErrorCode.NONE:
                failed[tp] = error
        return failed

    def _take_broker_settings(self) -> None:
        services = self._services
        metadata = services.metadata
        try:
            services.config = with_dynamic(
                services.config, metadata.default_broker_config(), metadata.broker_config(services.broker_id)
            )
        except ConfigError as error:
            log_event.warning("dynamic settings are not used", reason=error)

    def _reconfigure(self, topics: Mapping[str, object] | None) -> None:
        """Hands changed settings to the logs that are open; None: to all of them."""
        configs: dict[str, LogConfig] = {}
        for tp, log in self._services.replicas.directories.logs.items():
            if topics is None or tp.topic in topics:
                config = configs.get(tp.topic)
                if config is None:
                    config = configs[tp.topic] = self.log_config(tp.topic)
                log.reconfigure(config)
