"""A topic's own properties, over the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.definitions import nearest, topic_definitions
from ottla.config.errors import ConfigError, UnknownConfigError
from ottla.config.log import LogConfig
from ottla.config.values import Value, parse

#: The field of LogConfig that a topic property fills; the others are known but do nothing here.
FIELDS: Final = {
    "cleanup.policy": "cleanup_policy",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.type": "compression_type",
    "compression.zstd.level": "compression_zstd_level",
    "delete.retention.ms": "delete_retention_ms",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "follower.replication.throttled.replicas": "follower_throttled_replicas",
    "index.interval.bytes": "index_interval_bytes",
    "leader.replication.throttled.replicas": "leader_throttled_replicas",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.after.max.ms": "message_timestamp_after_max_ms",
    "message.timestamp.before.max.ms": "message_timestamp_before_max_ms",
    "message.timestamp.type": "message_timestamp_type",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "min.insync.replicas": "min_insync_replicas",
    "preallocate": "preallocate",
    "retention.bytes": "retention_bytes",
    "retention.ms": "retention_ms",
    "segment.bytes": "segment_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.ms": "segment_ms",
    "unclean.leader.election.enable": "unclean_leader_election",
    # Kafka's switch for tests that want segments below segment.bytes' minimum of 1 MiB: it wins over segment.bytes.
    "internal.segment.bytes": "segment_bytes",
}


def effective_log_config(overrides: Mapping[str, str], defaults: LogConfig) -> LogConfig:
    """What governs a topic's logs. Names without a field are passed over; a bad value raises ConfigError."""
    if not overrides:
        return defaults
    known = topic_definitions()
    changes: dict[str, object] = {}
    for name, field in FIELDS.items():
        text = overrides.get(name)
        if text is not None:
            changes[field] = _field_value(parse(known[name], text), field)
    return defaults._replace(**changes)  # type: ignore[arg-type]


def _field_value(value: Value, field: str) -> object:
    if isinstance(value, list):
        return frozenset(value) if field == "cleanup_policy" else tuple(value)
    return value


def validate_topic_configs(overrides: Mapping[str, str | None]) -> None:
    """Raises ConfigError (INVALID_CONFIG on the wire) unless each name is known, each value good, and all go together."""
    known = topic_definitions()
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        definition = known.get(name)
        if definition is None:
            raise UnknownConfigError(name, "topic", nearest(name, "topic"))
        if text is None:
            raise ConfigError(name, None, "Null value not supported for topic configs")
        values[name] = parse(definition, text)
    low, high = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        why = f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        raise ConfigError("min.compaction.lag.ms", str(low), why)
    if values.get("remote.storage.enable") is True:
        raise ConfigError("remote.storage.enable", "true", "Tiered Storage functionality is disabled in the broker")


def has_effect(name: str) -> bool:
    """Whether a topic's property changes anything here."""
    return name in FIELDS
