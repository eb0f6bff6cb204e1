"""A broker's configuration: parsed once, checked whole, then handed out in slices.

A property's value comes from, in this order: the dynamic configuration of this broker, that of all brokers, the
environment (`KAFKA_*`), the file, Kafka's default. What comes out is frozen; a dynamic change makes a new `Config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config import environment
from ottla.config.errors import BrokenRuleError, ConfigError
from ottla.config.listeners import (
    Listener,
    check_advertised,
    check_bindable,
    parse_listeners,
    parse_protocol_map,
)
from ottla.config.log import LogConfig
from ottla.config.reader import PropertyReader
from ottla.config.slices import (
    BrokerConfig,
    CoordinationConfig,
    GroupsConfig,
    ObserveConfig,
    OffsetsConfig,
    ReplicationConfig,
    ServerConfig,
    StorageConfig,
    TransactionsConfig,
)
from ottla.config.together import check_together

HOUR_MS: Final = 60 * 60 * 1000
MINUTE_MS: Final = 60 * 1000


class Config(NamedTuple):
    broker: BrokerConfig
    server: ServerConfig
    #: What holds for a topic that overrides nothing.
    log: LogConfig
    storage: StorageConfig
    replication: ReplicationConfig
    groups: GroupsConfig
    transactions: TransactionsConfig
    coordination: CoordinationConfig
    observe: ObserveConfig
    #: What the file and the environment set, as text: the ground on which dynamic changes stand.
    properties: Mapping[str, str]
    #: What of them neither the file nor the environment says, but `ottla up` by itself.
    defaults: Mapping[str, str]
    #: The two layers of dynamic overrides above them (`ottla.config.dynamic`).
    dynamic_default: Mapping[str, str]
    dynamic_broker: Mapping[str, str]
    #: Where logs go when no property says so.
    data_directory: str
    #: One line for each name that is unknown, or that protects nothing here; to be logged once at start.
    warnings: tuple[str, ...]
    #: Names that Kafka knows and that do nothing here, or not yet.
    without_effect: tuple[str, ...]

    def __repr__(self) -> str:
        """Without the properties' text: passwords may be in it, and a configuration may end in a log."""
        return f"Config(broker={self.broker}, server={self.server}, log={self.log}, storage={self.storage}, ...)"

    @classmethod
    def parse(
        cls,
        properties: Mapping[str, str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> Config:
        """Reads a file's properties, and the environment's `KAFKA_*` over them; raises ConfigError on a bad value.

        `defaults` hold where neither says otherwise (`up_defaults`); they are our own, so nobody is warned of them.
        """
        env = env or {}
        given = {**(properties or {}), **environment.properties_from(env)}
        everything = {**(defaults or {}), **given}
        data_directory = environment.default_data_directory(env)
        _check_text({**everything, "log.dirs": everything.get("log.dirs", data_directory)})
        reader = PropertyReader(everything)
        config = assemble(reader, everything, data_directory)
        unsaid = {name: text for name, text in (defaults or {}).items() if name not in given}
        return config._replace(
            defaults=unsaid, warnings=tuple(reader.warnings(given)), without_effect=reader.without_effect(given)
        )


def _check_text(properties: Mapping[str, str]) -> None:
    """What a command line or a variable has as other bytes could be said to no client: names of log directories are."""
    for name, text in properties.items():
        try:
            (name + text).encode()
        except UnicodeEncodeError:
            raise ConfigError(name, text, "it is no UTF-8 text") from None


def assemble(reader: PropertyReader, static: Mapping[str, str], data_directory: str) -> Config:
    """Types and checks what is read; `static` is what of it does not come from dynamic changes."""
    config = Config(
        broker=_broker(reader),
        server=_server(reader),
        log=_log(reader),
        storage=_storage(reader, data_directory),
        replication=reader.slice(
            ReplicationConfig, socket_receive_buffer_bytes=_if_set(reader, "replica.socket.receive.buffer.bytes")
        ),
        groups=_groups(reader),
        transactions=reader.slice(TransactionsConfig),
        coordination=_coordination(reader),
        observe=reader.slice(ObserveConfig),
        properties=static,
        defaults={},
        dynamic_default={},
        dynamic_broker={},
        data_directory=data_directory,
        warnings=(),
        without_effect=(),
    )
    reader.check_rest()
    check_together(config)
    return config


def _broker(reader: PropertyReader) -> BrokerConfig:
    node_id, broker_id = reader.integer("node.id"), reader.integer("broker.id")
    if node_id >= 0 and broker_id >= 0 and node_id != broker_id:
        raise ConfigError("node.id", str(node_id), f"must be the same as broker.id, which is {broker_id}")
    roles = reader.strings("process.roles")
    if roles and "broker" not in roles:
        raise ConfigError("process.roles", ",".join(roles), "a process that is only a controller does not exist here")
    return reader.slice(
        BrokerConfig,
        id=max(node_id, broker_id),
        rack=reader.text_or_none("broker.rack") or None,
    )


def _server(reader: PropertyReader) -> ServerConfig:
    listeners, advertised = _listeners(reader)
    return reader.slice(
        ServerConfig,
        listeners=listeners,
        advertised_listeners=advertised,
        inter_broker_listener=_inter_broker_listener(reader, listeners),
        control_plane_listener=_control_plane_listener(reader, listeners),
        connections_per_ip_overrides=_per_ip_overrides(reader),
        connections_per_listener=_per_listener(reader, listeners, "max.connections"),
        connection_creation_rate_per_listener=_per_listener(reader, listeners, "max.connection.creation.rate"),
        send_buffer_bytes=_if_set(reader, "socket.send.buffer.bytes"),
    )


def _if_set(reader: PropertyReader, name: str) -> int | None:
    value = reader.integer(name)
    return value if reader.is_set(name) else None


def _per_listener(reader: PropertyReader, listeners: tuple[Listener, ...], name: str) -> dict[str, int]:
    limits = ((listener.name, reader.listener_integer(listener.name, name)) for listener in listeners)
    return {listener: limit for listener, limit in limits if limit is not None}


def _listeners(reader: PropertyReader) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    protocols = parse_protocol_map(reader.text("listener.security.protocol.map"))
    # A property file for Kafka's own quorum names the controllers' listeners: those are not ours to open.
    controllers = {name.upper() for name in reader.strings("controller.listener.names")}
    for name in controllers:
        protocols.setdefault(name, "PLAINTEXT")

    def served(prop: str) -> tuple[Listener, ...]:
        everything = parse_listeners(prop, reader.strings(prop), protocols)
        return tuple(listener for listener in everything if listener.name not in controllers)

    listeners = served("listeners")
    if not listeners:
        raise ConfigError("listeners", reader.text_of("listeners"), "no listener is left for clients")
    check_bindable(listeners)
    prop = "advertised.listeners" if reader.strings("advertised.listeners") else "listeners"
    advertised = served(prop)
    check_advertised(advertised, listeners, prop)
    return listeners, advertised


def _inter_broker_listener(reader: PropertyReader, listeners: tuple[Listener, ...]) -> str:
    name = reader.text_or_none("inter.broker.listener.name")
    protocol = reader.text("security.inter.broker.protocol")
    if name is None:
        for listener in listeners:
            if listener.name == protocol:
                return listener.name
        if reader.is_set("security.inter.broker.protocol"):
            raise ConfigError("security.inter.broker.protocol", protocol, "no listener has this name")
        return listeners[0].name
    if reader.is_set("security.inter.broker.protocol"):
        why = "only one of inter.broker.listener.name and security.inter.broker.protocol may be set"
        raise ConfigError("inter.broker.listener.name", name, why)
    return _named_listener("inter.broker.listener.name", name, listeners)


def _control_plane_listener(reader: PropertyReader, listeners: tuple[Listener, ...]) -> str | None:
    name = reader.text_or_none("control.plane.listener.name")
    return None if name is None else _named_listener("control.plane.listener.name", name, listeners)


def _named_listener(prop: str, name: str, listeners: tuple[Listener, ...]) -> str:
    if name.upper() not in {listener.name for listener in listeners}:
        raise ConfigError(prop, name, "no listener has this name")
    return name.upper()


def _per_ip_overrides(reader: PropertyReader) -> dict[str, int]:
    prop = "max.connections.per.ip.overrides"
    text = reader.text(prop)
    limits: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, separator, limit = item.rpartition(":")
        if not separator or not host or not (limit.isascii() and limit.isdigit() and int(limit[:11]) < 2**31):
            raise ConfigError(prop, text, f"'{item}' is not HOST:NUMBER")
        limits[host.strip().strip("[]")] = int(limit)
    return limits


def _log(reader: PropertyReader) -> LogConfig:
    flush_ms = reader.integer_or_none("log.flush.interval.ms")
    scheduler_ms = reader.integer("log.flush.scheduler.interval.ms")
    roll_ms = reader.first(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS))
    jitter_ms = reader.first(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS))
    retention_ms = reader.first(
        ("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)
    )
    return LogConfig(
        segment_bytes=reader.integer("log.segment.bytes"),
        segment_ms=roll_ms,
        segment_jitter_ms=jitter_ms,
        segment_index_bytes=reader.integer("log.index.size.max.bytes"),
        index_interval_bytes=reader.integer("log.index.interval.bytes"),
        retention_ms=max(-1, retention_ms),
        retention_bytes=reader.integer("log.retention.bytes"),
        file_delete_delay_ms=reader.integer("log.segment.delete.delay.ms"),
        cleanup_policy=frozenset(reader.strings("log.cleanup.policy")),
        delete_retention_ms=reader.integer("log.cleaner.delete.retention.ms"),
        min_cleanable_dirty_ratio=reader.real("log.cleaner.min.cleanable.ratio"),
        min_compaction_lag_ms=reader.integer("log.cleaner.min.compaction.lag.ms"),
        max_compaction_lag_ms=reader.integer("log.cleaner.max.compaction.lag.ms"),
        flush_messages=reader.integer("log.flush.interval.messages"),
        flush_ms=scheduler_ms if flush_ms is None else flush_ms,
        max_message_bytes=reader.integer("message.max.bytes"),
        message_timestamp_type=reader.text("log.message.timestamp.type"),
        message_timestamp_before_max_ms=reader.integer("log.message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=reader.integer("log.message.timestamp.after.max.ms"),
        compression_type=reader.text("compression.type"),
        compression_gzip_level=reader.integer("compression.gzip.level"),
        compression_lz4_level=reader.integer("compression.lz4.level"),
        compression_zstd_level=reader.integer("compression.zstd.level"),
        min_insync_replicas=reader.integer("min.insync.replicas"),
        unclean_leader_election=reader.boolean("unclean.leader.election.enable"),
        lag_messages_max=reader.integer_or_none("replica.lag.max.messages"),
    )


def _storage(reader: PropertyReader, data_directory: str) -> StorageConfig:
    directories = reader.strings_or_none("log.dirs") or reader.strings_or_none("log.dir") or [data_directory]
    cordoned = reader.strings("cordoned.log.dirs")
    if cordoned == ["*"]:
        cordoned = directories
    missing = [directory for directory in cordoned if directory not in directories]
    if missing:
        rule = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir"
        raise BrokenRuleError(f"requirement failed: {rule}. Missing entries : {', '.join(missing)}")
    return reader.slice(
        StorageConfig,
        log_dirs=tuple(directories),
        cordoned_log_dirs=frozenset(cordoned),
    )


def _check_assignment_intervals(reader: PropertyReader) -> None:
    """They may be changed while the broker runs, within bounds that may not."""
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        least, greatest = (f"group.{kind}.{bound}.assignment.interval.ms" for bound in ("min", "max"))
        if reader.checked_integer(name) < reader.checked_integer(least):
            raise BrokenRuleError(f"{name} must be greater than or equal to {least}")
        if reader.checked_integer(name) > reader.checked_integer(greatest):
            raise BrokenRuleError(f"{name} must be less than or equal to {greatest}")


def _groups(reader: PropertyReader) -> GroupsConfig:
    _check_assignment_intervals(reader)
    return reader.slice(
        GroupsConfig,
        rebalance_protocols=frozenset(reader.strings("group.coordinator.rebalance.protocols")),
        consumer_assignors=tuple(reader.strings("group.consumer.assignors")),
        consumer_migration_policy=reader.text("group.consumer.migration.policy").lower(),
        offsets=reader.slice(OffsetsConfig),
    )


def _coordination(reader: PropertyReader) -> CoordinationConfig:
    session_ms = reader.integer("zookeeper.session.timeout.ms")
    connection_ms = reader.integer_or_none("zookeeper.connection.timeout.ms")
    if reader.boolean("zookeeper.ssl.client.enable") and reader.text_or_none("zookeeper.connect"):
        why = "connections to ZooKeeper are plain ones yet, and what was to be encrypted is not sent in the clear"
        raise ConfigError("zookeeper.ssl.client.enable", "true", why)
    return reader.slice(
        CoordinationConfig,
        zookeeper_connect=reader.text_or_none("zookeeper.connect") or "",
        session_timeout_ms=session_ms,
        connection_timeout_ms=session_ms if connection_ms is None else connection_ms,
    )
