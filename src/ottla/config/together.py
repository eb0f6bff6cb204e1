"""What is wrong only in company: the rules between properties that stop Kafka's start, and ours."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Final

from ottla.config.errors import BrokenRuleError, ConfigError
from ottla.config.slices import GroupsConfig, ReplicationConfig, ServerConfig, StorageConfig

if TYPE_CHECKING:
    from ottla.config.broker import Config


#: How Kafka begins what it says of some of them.
_FAILED: Final = "requirement failed"


def check_together(config: Config) -> None:
    """Raises ConfigError, which names one of those that do not go together."""
    _check_server(config.server)
    _check_replication(config.replication)
    _check_storage(config.storage)
    _check_consumer_groups(config.groups)


def _check_server(server: ServerConfig) -> None:
    if server.connections_per_ip_max == 0 and not server.connections_per_ip_overrides:
        condition = "max.connections.per.ip.overrides property is set"
        raise BrokenRuleError(f"{_FAILED}: max.connections.per.ip can be set to zero only if {condition}.")
    if 0 <= server.queued_request_bytes_max < server.request_bytes_max:
        why = f"must not be less than socket.request.max.bytes, which is {server.request_bytes_max}"
        raise ConfigError("queued.max.request.bytes", str(server.queued_request_bytes_max), why)


def _check_replication(replication: ReplicationConfig) -> None:
    wait_ms = replication.fetch_wait_ms_max
    for name, limit_ms in (
        ("replica.socket.timeout.ms", replication.socket_timeout_ms),
        ("replica.lag.time.max.ms", replication.lag_time_ms_max),
    ):
        if wait_ms > limit_ms:
            why = f"must not be more than {name}, which is {limit_ms}"
            raise ConfigError("replica.fetch.wait.max.ms", str(wait_ms), why)


def _check_storage(storage: StorageConfig) -> None:
    paths = [os.path.abspath(path) for path in storage.log_dirs]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise ConfigError("log.dirs", ",".join(storage.log_dirs), f"{twice} stands there twice")
    if storage.cleaner_enabled and storage.cleaner_dedupe_buffer_bytes < storage.cleaner_threads << 20:
        raise BrokenRuleError(f"{_FAILED}: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")


def _check_consumer_groups(groups: GroupsConfig) -> None:
    heartbeat_ms, session_ms = groups.consumer_heartbeat_interval_ms, groups.consumer_session_timeout_ms
    heartbeat_min, heartbeat_max = groups.consumer_heartbeat_interval_ms_min, groups.consumer_heartbeat_interval_ms_max
    session_min, session_max = groups.consumer_session_timeout_ms_min, groups.consumer_session_timeout_ms_max
    for name, value, low, high in (
        ("heartbeat.interval.ms", heartbeat_ms, heartbeat_min, heartbeat_max),
        ("session.timeout.ms", session_ms, session_min, session_max),
    ):
        if not low <= value <= high:
            why = f"must be from group.consumer.min.{name} to group.consumer.max.{name}, which are {low} and {high}"
            raise ConfigError(f"group.consumer.{name}", str(value), why)
    if heartbeat_ms >= session_ms:
        why = f"must be less than group.consumer.session.timeout.ms, which is {session_ms}"
        raise ConfigError("group.consumer.heartbeat.interval.ms", str(heartbeat_ms), why)
