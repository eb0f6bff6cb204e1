"""The parts of the broker's configuration, one a room: each gets its own and sees no other.

Named tuples, because importing `dataclasses` costs more than all of this package (18 ms against 5, measured); and
their annotations are evaluated at once, because postponed ones cost a named tuple half as much again.
"""

from typing import NamedTuple

from ottla.config.listeners import Listener


class BrokerConfig(NamedTuple):
    """Who this broker is, and what it does with topics as a whole."""

    #: -1: take what stands in meta.properties, or the next number of the cluster.
    id: int
    id_generation: bool
    #: Generated ids start above this one.
    reserved_id_max: int
    rack: str | None
    num_partitions: int
    default_replication_factor: int
    auto_create_topics: bool
    delete_topics: bool
    #: At most this many partitions in one answer to DescribeTopicPartitions.
    describe_partitions_max: int
    controlled_shutdown: bool
    controlled_shutdown_retries_max: int
    controlled_shutdown_retry_backoff_ms: int


class ServerConfig(NamedTuple):
    """Listeners, connections and what they may ask for."""

    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    #: The name of the listener that brokers use among themselves.
    inter_broker_listener: str
    #: The listener for the controller's requests, if it has one of its own.
    control_plane_listener: str | None
    request_bytes_max: int
    #: A connection without a request for so long is closed; negative: never.
    connections_idle_ms_max: int
    connections_max: int
    connections_per_ip_max: int
    #: By address or host name.
    connections_per_ip_overrides: dict[str, int]
    #: By listener name, where a listener has a limit of its own (`listener.name.<name>.max.connections`).
    connections_per_listener: dict[str, int]
    connection_creation_rate_max: int
    #: The same (`listener.name.<name>.max.connection.creation.rate`).
    connection_creation_rate_per_listener: dict[str, int]
    #: -1: no limit.
    queued_request_bytes_max: int
    fetch_bytes_max: int
    fetch_sessions_max: int
    #: Of each connection's socket; -1: the system's choice. None where nobody has chosen.
    send_buffer_bytes: int | None


class StorageConfig(NamedTuple):
    """The log directories and the work that goes on in them."""

    log_dirs: tuple[str, ...]
    #: New partitions are not placed in these.
    cordoned_log_dirs: frozenset[str]
    retention_check_interval_ms: int
    flush_check_interval_ms: int
    flush_checkpoint_interval_ms: int
    start_offset_checkpoint_interval_ms: int
    initial_task_delay_ms: int
    producer_id_expiration_ms: int
    producer_id_check_interval_ms: int
    cleaner_enabled: bool
    cleaner_threads: int
    cleaner_backoff_ms: int
    cleaner_dedupe_buffer_bytes: int
    cleaner_dedupe_load_factor: float
    cleaner_io_buffer_bytes: int
    cleaner_io_bytes_per_second_max: float


class ReplicationConfig(NamedTuple):
    """Followers, the ISR, and leaders' places."""

    lag_time_ms_max: int
    fetchers_per_broker: int
    fetch_bytes_min: int
    fetch_bytes_max: int
    fetch_response_bytes_max: int
    fetch_wait_ms_max: int
    fetch_backoff_ms: int
    socket_timeout_ms: int
    socket_receive_buffer_bytes: int
    high_watermark_checkpoint_interval_ms: int
    auto_leader_rebalance: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_percentage: int
    unclean_election_interval_ms: int
    #: Bytes a second for the throttled replicas of topics.
    leader_throttled_rate: int
    follower_throttled_rate: int
    alter_log_dirs_bytes_per_second_max: int
    request_timeout_ms: int


class OffsetsConfig(NamedTuple):
    """The topic in which groups keep their offsets."""

    topic_partitions: int
    topic_replication_factor: int
    topic_segment_bytes: int
    topic_compression_codec: int
    metadata_bytes_max: int
    load_buffer_bytes: int
    retention_minutes: int
    retention_check_interval_ms: int
    commit_timeout_ms: int


class GroupsConfig(NamedTuple):
    """Consumer groups, by both protocols."""

    session_timeout_ms_min: int
    session_timeout_ms_max: int
    initial_rebalance_delay_ms: int
    size_max: int
    rebalance_protocols: frozenset[str]
    consumer_session_timeout_ms: int
    consumer_session_timeout_ms_min: int
    consumer_session_timeout_ms_max: int
    consumer_heartbeat_interval_ms: int
    consumer_heartbeat_interval_ms_min: int
    consumer_heartbeat_interval_ms_max: int
    consumer_size_max: int
    consumer_assignors: tuple[str, ...]
    consumer_migration_policy: str
    offsets: OffsetsConfig


class TransactionsConfig(NamedTuple):
    """The transaction coordinator and its topic."""

    topic_partitions: int
    topic_replication_factor: int
    topic_min_isr: int
    topic_segment_bytes: int
    load_buffer_bytes: int
    timeout_ms_max: int
    transactional_id_expiration_ms: int
    abort_check_interval_ms: int
    expiration_check_interval_ms: int
    partition_verification: bool
    two_phase_commit: bool
    add_partitions_backoff_ms: int
    add_partitions_backoff_ms_max: int


class CoordinationConfig(NamedTuple):
    """Where the znode tree is: empty `zookeeper_connect` means in this process."""

    zookeeper_connect: str
    session_timeout_ms: int
    connection_timeout_ms: int
    set_acl: bool
    in_flight_requests_max: int


class ObserveConfig(NamedTuple):
    """How the broker can be watched: its own log, and its metrics."""

    log_level: str
    log_json: bool
    metrics_host: str
    #: None serves no metrics; 0 takes a free port.
    metrics_port: int | None
