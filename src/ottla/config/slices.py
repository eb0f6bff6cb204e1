"""The parts of the broker's configuration, one a room: each gets its own and sees no other.

A field that is one property's value has that property's name beside its type, and is read by it
(`PropertyReader.slice`). What is made of several, or of one in another form, `config/broker.py` computes.

Named tuples, because importing `dataclasses` costs more than all of this package (18 ms against 5, measured); and
their annotations are evaluated at once, because postponed ones cost a named tuple half as much again.
"""

from typing import Annotated, NamedTuple

from ottla.config.listeners import Listener


class BrokerConfig(NamedTuple):
    """Who this broker is, and what it does with topics as a whole."""

    #: -1: take what stands in meta.properties, or the next number of the cluster.
    id: int
    id_generation: Annotated[bool, "broker.id.generation.enable"]
    #: Generated ids start above this one.
    reserved_id_max: Annotated[int, "reserved.broker.max.id"]
    #: -1: generate one. For a broker that has neither an id nor data.
    new_id: Annotated[int, "ottla.new.broker.id"]
    #: For a cluster that has no id yet.
    new_cluster_id: Annotated[str | None, "ottla.new.cluster.id"]
    rack: str | None
    num_partitions: Annotated[int, "num.partitions"]
    default_replication_factor: Annotated[int, "default.replication.factor"]
    auto_create_topics: Annotated[bool, "auto.create.topics.enable"]
    delete_topics: Annotated[bool, "delete.topic.enable"]
    #: At most this many partitions in one answer to DescribeTopicPartitions.
    describe_partitions_max: Annotated[int, "max.request.partition.size.limit"]
    controlled_shutdown: Annotated[bool, "controlled.shutdown.enable"]
    controlled_shutdown_retries_max: Annotated[int, "controlled.shutdown.max.retries"]
    controlled_shutdown_retry_backoff_ms: Annotated[int, "controlled.shutdown.retry.backoff.ms"]


class ServerConfig(NamedTuple):
    """Listeners, connections and what they may ask for."""

    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    #: The name of the listener that brokers use among themselves.
    inter_broker_listener: str
    #: The listener for the controller's requests, if it has one of its own.
    control_plane_listener: str | None
    request_bytes_max: Annotated[int, "socket.request.max.bytes"]
    #: A connection without a request for so long is closed; negative: never.
    connections_idle_ms_max: Annotated[int, "connections.max.idle.ms"]
    connections_max: Annotated[int, "max.connections"]
    connections_per_ip_max: Annotated[int, "max.connections.per.ip"]
    #: By address or host name.
    connections_per_ip_overrides: dict[str, int]
    #: By listener name, where a listener has a limit of its own (`listener.name.<name>.max.connections`).
    connections_per_listener: dict[str, int]
    connection_creation_rate_max: Annotated[int, "max.connection.creation.rate"]
    #: The same (`listener.name.<name>.max.connection.creation.rate`).
    connection_creation_rate_per_listener: dict[str, int]
    #: -1: no limit.
    queued_request_bytes_max: Annotated[int, "queued.max.request.bytes"]
    fetch_bytes_max: Annotated[int, "fetch.max.bytes"]
    fetch_sessions_max: Annotated[int, "max.incremental.fetch.session.cache.slots"]
    #: Of each connection's socket; -1: the system's choice. None where nobody has chosen.
    send_buffer_bytes: int | None

    @property
    def broker_listeners(self) -> frozenset[str]:
        """Those that brokers use among themselves."""
        return frozenset({self.inter_broker_listener, self.control_plane_listener or self.inter_broker_listener})

    @property
    def controller_listener(self) -> str:
        """Where a controller reaches brokers, and brokers their controller."""
        return self.control_plane_listener or self.inter_broker_listener


class StorageConfig(NamedTuple):
    """The log directories and the work that goes on in them."""

    log_dirs: tuple[str, ...]
    #: New partitions are not placed in these.
    cordoned_log_dirs: frozenset[str]
    retention_check_interval_ms: Annotated[int, "log.retention.check.interval.ms"]
    flush_check_interval_ms: Annotated[int, "log.flush.scheduler.interval.ms"]
    flush_checkpoint_interval_ms: Annotated[int, "log.flush.offset.checkpoint.interval.ms"]
    start_offset_checkpoint_interval_ms: Annotated[int, "log.flush.start.offset.checkpoint.interval.ms"]
    initial_task_delay_ms: Annotated[int, "log.initial.task.delay.ms"]
    producer_id_expiration_ms: Annotated[int, "producer.id.expiration.ms"]
    producer_id_check_interval_ms: Annotated[int, "producer.id.expiration.check.interval.ms"]
    cleaner_enabled: Annotated[bool, "log.cleaner.enable"]
    cleaner_threads: Annotated[int, "log.cleaner.threads"]
    cleaner_backoff_ms: Annotated[int, "log.cleaner.backoff.ms"]
    cleaner_dedupe_buffer_bytes: Annotated[int, "log.cleaner.dedupe.buffer.size"]
    cleaner_dedupe_load_factor: Annotated[float, "log.cleaner.io.buffer.load.factor"]
    cleaner_io_buffer_bytes: Annotated[int, "log.cleaner.io.buffer.size"]
    cleaner_io_bytes_per_second_max: Annotated[float, "log.cleaner.io.max.bytes.per.second"]


class ReplicationConfig(NamedTuple):
    """Followers, the ISR, and leaders' places."""

    lag_time_ms_max: Annotated[int, "replica.lag.time.max.ms"]
    fetchers_per_broker: Annotated[int, "num.replica.fetchers"]
    fetch_bytes_min: Annotated[int, "replica.fetch.min.bytes"]
    fetch_bytes_max: Annotated[int, "replica.fetch.max.bytes"]
    fetch_response_bytes_max: Annotated[int, "replica.fetch.response.max.bytes"]
    fetch_wait_ms_max: Annotated[int, "replica.fetch.wait.max.ms"]
    fetch_backoff_ms: Annotated[int, "replica.fetch.backoff.ms"]
    socket_timeout_ms: Annotated[int, "replica.socket.timeout.ms"]
    #: Of the sockets that followers fetch through; -1: the system's choice. None where nobody has chosen.
    socket_receive_buffer_bytes: int | None
    #: Names the replica that a consumer is to read from; None: the leader.
    selector: Annotated[str | None, "replica.selector.class"]
    high_watermark_checkpoint_interval_ms: Annotated[int, "replica.high.watermark.checkpoint.interval.ms"]
    auto_leader_rebalance: Annotated[bool, "auto.leader.rebalance.enable"]
    leader_imbalance_check_interval_seconds: Annotated[int, "leader.imbalance.check.interval.seconds"]
    leader_imbalance_percentage: Annotated[int, "leader.imbalance.per.broker.percentage"]
    #: Bytes a second for the throttled replicas of topics.
    leader_throttled_rate: Annotated[int, "leader.replication.throttled.rate"]
    follower_throttled_rate: Annotated[int, "follower.replication.throttled.rate"]
    alter_log_dirs_bytes_per_second_max: Annotated[int, "replica.alter.log.dirs.io.max.bytes.per.second"]
    #: How many samples of how many seconds such a rate is measured over; and that of moves between log directories.
    quota_samples: Annotated[int, "replication.quota.window.num"]
    quota_sample_seconds: Annotated[int, "replication.quota.window.size.seconds"]
    alter_log_dirs_quota_samples: Annotated[int, "alter.log.dirs.replication.quota.window.num"]
    alter_log_dirs_quota_sample_seconds: Annotated[int, "alter.log.dirs.replication.quota.window.size.seconds"]
    #: Of what this broker asks the controller, where nothing else says a time; of what a controller asks brokers.
    request_timeout_ms: Annotated[int, "request.timeout.ms"]
    controller_socket_timeout_ms: Annotated[int, "controller.socket.timeout.ms"]


class OffsetsConfig(NamedTuple):
    """The topic in which groups keep their offsets."""

    topic_partitions: Annotated[int, "offsets.topic.num.partitions"]
    topic_replication_factor: Annotated[int, "offsets.topic.replication.factor"]
    topic_segment_bytes: Annotated[int, "offsets.topic.segment.bytes"]
    topic_compression_codec: Annotated[int, "offsets.topic.compression.codec"]
    metadata_bytes_max: Annotated[int, "offset.metadata.max.bytes"]
    load_buffer_bytes: Annotated[int, "offsets.load.buffer.size"]
    retention_minutes: Annotated[int, "offsets.retention.minutes"]
    retention_check_interval_ms: Annotated[int, "offsets.retention.check.interval.ms"]
    commit_timeout_ms: Annotated[int, "offsets.commit.timeout.ms"]


class GroupsConfig(NamedTuple):
    """Consumer groups, by both protocols."""

    session_timeout_ms_min: Annotated[int, "group.min.session.timeout.ms"]
    session_timeout_ms_max: Annotated[int, "group.max.session.timeout.ms"]
    initial_rebalance_delay_ms: Annotated[int, "group.initial.rebalance.delay.ms"]
    size_max: Annotated[int, "group.max.size"]
    rebalance_protocols: frozenset[str]
    consumer_session_timeout_ms: Annotated[int, "group.consumer.session.timeout.ms"]
    consumer_session_timeout_ms_min: Annotated[int, "group.consumer.min.session.timeout.ms"]
    consumer_session_timeout_ms_max: Annotated[int, "group.consumer.max.session.timeout.ms"]
    consumer_heartbeat_interval_ms: Annotated[int, "group.consumer.heartbeat.interval.ms"]
    consumer_heartbeat_interval_ms_min: Annotated[int, "group.consumer.min.heartbeat.interval.ms"]
    consumer_heartbeat_interval_ms_max: Annotated[int, "group.consumer.max.heartbeat.interval.ms"]
    consumer_size_max: Annotated[int, "group.consumer.max.size"]
    consumer_assignors: tuple[str, ...]
    consumer_migration_policy: str
    offsets: OffsetsConfig


class TransactionsConfig(NamedTuple):
    """The transaction coordinator and its topic."""

    topic_partitions: Annotated[int, "transaction.state.log.num.partitions"]
    topic_replication_factor: Annotated[int, "transaction.state.log.replication.factor"]
    topic_min_isr: Annotated[int, "transaction.state.log.min.isr"]
    topic_segment_bytes: Annotated[int, "transaction.state.log.segment.bytes"]
    load_buffer_bytes: Annotated[int, "transaction.state.log.load.buffer.size"]
    timeout_ms_max: Annotated[int, "transaction.max.timeout.ms"]
    transactional_id_expiration_ms: Annotated[int, "transactional.id.expiration.ms"]
    abort_check_interval_ms: Annotated[int, "transaction.abort.timed.out.transaction.cleanup.interval.ms"]
    expiration_check_interval_ms: Annotated[int, "transaction.remove.expired.transaction.cleanup.interval.ms"]
    partition_verification: Annotated[bool, "transaction.partition.verification.enable"]
    add_partitions_retry_ms: Annotated[int, "add.partitions.to.txn.retry.backoff.ms"]
    add_partitions_retry_ms_max: Annotated[int, "add.partitions.to.txn.retry.backoff.max.ms"]
    #: For what comes (KIP-939): Kafka has not released it either.
    two_phase_commit: Annotated[bool, "transaction.two.phase.commit.enable"]


class CoordinationConfig(NamedTuple):
    """Where the znode tree is: empty `zookeeper_connect` means in this process."""

    zookeeper_connect: str
    session_timeout_ms: int
    connection_timeout_ms: int
    set_acl: Annotated[bool, "zookeeper.set.acl"]
    in_flight_requests_max: Annotated[int, "zookeeper.max.in.flight.requests"]


class ObserveConfig(NamedTuple):
    """How the broker can be watched: its own log, and its metrics."""

    log_level: Annotated[str, "ottla.log.level"]
    log_json: Annotated[bool, "ottla.log.json"]
    metrics_host: Annotated[str, "ottla.metrics.host"]
    #: None serves no metrics; 0 takes a free port.
    metrics_port: Annotated[int | None, "ottla.metrics.port"]
