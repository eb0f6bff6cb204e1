"""What governs one partition's log: the broker's defaults under the topic's own overrides."""

from typing import Final, NamedTuple

LONG_MAX: Final = 2**63 - 1
DAY_MS: Final = 24 * 60 * 60 * 1000


class LogConfig(NamedTuple):
    """Kafka's topic properties, typed; built by name. The defaults are those of a broker without configuration.

    A named tuple: immutable, changed with `_replace`, and a quarter of a dataclass's cost at import.
    """

    #: The active segment is rolled before it grows past this, when it is this old (minus up to the jitter), ...
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    #: ... or when an index is full. The file is allocated at this size while active.
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096

    #: -1 keeps for ever.
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000

    #: Out of "delete" and "compact"; empty keeps everything.
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX

    #: fsync after this many records or milliseconds; LONG_MAX leaves it to the system's page cache.
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX

    max_message_bytes: int = 1_048_588
    #: "CreateTime" or "LogAppendTime".
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000

    #: "producer" stores what comes; else uncompressed, gzip, snappy, lz4 or zstd.
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    #: A follower that is more records behind leaves the in-sync replicas, as in Kafka 0.8; None: only time decides.
    lag_messages_max: int | None = None
    #: `partition:broker`, or a single "*" for all. For quotas of replication, which come with a second broker.
    leader_throttled_replicas: tuple[str, ...] = ()
    follower_throttled_replicas: tuple[str, ...] = ()

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def may_have_gaps(self) -> bool:
        """Whether offsets may be missing inside: nobody knows what cleaned a log that keeps everything now."""
        return self.is_compacted or not self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """How old the active segment may get: only sealed ones are compacted, and in time for max.compaction.lag.ms."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"
