"""A topic's own properties, over the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.definitions import topic_definitions
from ottla.config.errors import BrokenRuleError, UnknownConfigError
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
    "replica.lag.max.messages": "lag_messages_max",
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

#: The broker's properties that a topic property falls back on, the strongest first.
SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": (
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
    ),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "replica.lag.max.messages": ("replica.lag.max.messages",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": (
        "log.roll.jitter.ms",
        "log.roll.jitter.hours",
    ),
    "segment.ms": (
        "log.roll.ms",
        "log.roll.hours",
    ),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
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


def validate_topic_configs(overrides: Mapping[str, str | None], defaults: LogConfig | None = None) -> None:
    """Raises ConfigError (INVALID_CONFIG) unless each name is known, each value is good, and all go together, also with
    the broker's `defaults` of what the topic does not say."""
    defaults = defaults or LogConfig()
    known = topic_definitions()
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        definition = known.get(name)
        if definition is None:
            raise UnknownConfigError(name, "topic")
        if text is None:
            raise BrokenRuleError(f"Null value not supported for topic configs: {name}")
        values[name] = parse(definition, text)
    low = values.get("min.compaction.lag.ms", defaults.min_compaction_lag_ms)
    high = values.get("max.compaction.lag.ms", defaults.max_compaction_lag_ms)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        why = f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        raise BrokenRuleError(why)
    if values.get("remote.storage.enable") is True:
        raise BrokenRuleError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
