"""`Config.parse`: defaults, precedence, what is refused with which line, and what is warned of."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Annotated, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searches import examples

import ottla.config
from ottla.config import Config, ConfigError, Listener, LogConfig, slices, up_defaults
from ottla.config.broker import assemble
from ottla.config.definitions import broker_definitions, nearest, topic_definitions
from ottla.config.files import parse_properties
from ottla.config.reader import WARNINGS_MAX, PropertyReader
from ottla.config.topic import FIELDS, effective_log_config

HOUR_MS = 3_600_000
SLICES = [kind for kind in vars(slices).values() if isinstance(kind, type) and hasattr(kind, "_fields")]
SOURCES = Path(ottla.config.__file__).parents[1]


def test_nothing_set_is_kafkas_default_broker() -> None:
    config = Config.parse()
    assert config.log == LogConfig()
    assert config.server.listeners == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert config.server.advertised_listeners == config.server.listeners
    assert config.server.inter_broker_listener == "PLAINTEXT"
    assert config.server.request_bytes_max == 104_857_600
    assert config.broker.id == -1
    assert config.broker.num_partitions == 1
    assert config.groups.offsets.topic_partitions == 50
    assert config.groups.initial_rebalance_delay_ms == 3000
    assert config.broker.new_id == -1
    assert config.transactions.topic_min_isr == 2
    assert config.replication.lag_time_ms_max == 30_000
    assert config.coordination.zookeeper_connect == ""
    # Kafka 3.9's is 18,000: a dead broker's partitions would wait three times as long for their next leaders.
    assert config.coordination.connection_timeout_ms == config.coordination.session_timeout_ms == 6_000
    assert config.observe.metrics_port is None
    assert config.warnings == ()


def test_every_value_stands_in_a_slice_as_its_type() -> None:
    config = Config.parse(
        {
            "node.id": " 7 ",
            "broker.rack": "host-1",
            "log.dirs": "/a, /b",
            "auto.create.topics.enable": "FALSE",
            "log.cleanup.policy": "compact,delete",
            "log.cleaner.min.cleanable.ratio": "0.25",
            "max.connections.per.ip.overrides": "10.0.0.1:5, [::1]:7,host:0",
            "listener.name.plaintext.max.connections": "3",
            "zookeeper.connect": "a:2181,b:2181/kafka",
            "process.roles": "broker,controller",
        }
    )
    assert (config.warnings, config.without_effect) == ((), ())
    assert config.broker.id == 7
    assert config.broker.rack == "host-1"
    assert config.storage.log_dirs == ("/a", "/b")
    assert config.broker.auto_create_topics is False
    assert config.log.cleanup_policy == {"compact", "delete"}
    assert config.log.is_compacted
    assert config.log.is_deleted
    assert config.log.min_cleanable_dirty_ratio == 0.25
    assert config.server.connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 7, "host": 0}
    assert config.server.connections_per_listener == {"PLAINTEXT": 3}
    assert config.coordination.zookeeper_connect == "a:2181,b:2181/kafka"


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1", "log.retention.hours": "5"}, -1),
        ({"log.retention.ms": "-7"}, -1),
    ],
)
def test_retention_milliseconds_beat_minutes_beat_hours(properties: dict[str, str], retention_ms: int) -> None:
    assert Config.parse(properties).log.retention_ms == retention_ms


def test_roll_and_flush_fall_back_on_their_other_names() -> None:
    config = Config.parse(
        {"log.roll.hours": "3", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "2000"}
    )
    assert (config.log.segment_ms, config.log.segment_jitter_ms) == (3 * HOUR_MS, HOUR_MS)
    assert config.log.flush_ms == config.storage.flush_check_interval_ms == 2000
    config = Config.parse({"log.roll.hours": "3", "log.roll.ms": "9", "log.flush.interval.ms": "50"})
    assert (config.log.segment_ms, config.log.flush_ms) == (9, 50)


def test_environment_beats_the_file() -> None:
    config = Config.parse(
        {"num.partitions": "3", "broker.rack": "r"}, env={"KAFKA_NUM_PARTITIONS": "5", "KAFKA_OPTS": "-Xmx1g"}
    )
    assert (config.broker.num_partitions, config.broker.rack) == (5, "r")
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("properties", "directories"),
    [
        ({"log.dirs": "/a,/b", "log.dir": "/c"}, ("/a", "/b")),
        ({"log.dir": "/c"}, ("/c",)),
        ({}, ("/homes/me/.local/state/ottla/data",)),
    ],
)
def test_log_dirs_beat_log_dir_beats_the_users_folder(properties: dict[str, str], directories: tuple[str, ...]) -> None:
    assert Config.parse(properties, env={"HOME": "/homes/me"}).storage.log_dirs == directories


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        (
            {"log.segment.bytes": "abc"},
            "Invalid value abc for configuration log.segment.bytes: Not a number of type INT",
        ),
        ({"num.partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ({"log.cleaner.min.cleanable.ratio": "2"}, "Value must be no more than 1"),
        ({"compression.type": "GZIP"}, "must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ({"auto.create.topics.enable": "yes"}, "Expected value to be either true or false"),
        ({"log.dirs": "/a,,/b"}, "Configuration 'log.dirs' values must not be empty."),
        ({"log.dirs": ""}, "Must not be empty"),
        ({"num.io.threads": "many"}, "Invalid value many for configuration num.io.threads: Not a number of type INT"),
        ({"listener.name.x.ssl.client.auth": "maybe"}, "Invalid value maybe for configuration ssl.client.auth"),
        (
            {"node.id": "1", "broker.id": "2"},
            "Invalid value 1 for configuration node.id: must be the same as broker.id",
        ),
        ({"process.roles": "controller"}, "a process that is only a controller does not exist here"),
        ({"max.connections.per.ip": "0"}, "zero only if max.connections.per.ip.overrides property is set."),
        ({"max.connections.per.ip.overrides": "a:1,b"}, "'b' is not HOST:NUMBER"),
        ({"queued.max.request.bytes": "5"}, "must not be less than socket.request.max.bytes"),
        ({"replica.fetch.wait.max.ms": "40000"}, "must not be more than replica.socket.timeout.ms"),
        ({"replica.lag.time.max.ms": "400"}, "must not be more than replica.lag.time.max.ms"),
        (
            {"log.cleaner.dedupe.buffer.size": "5"},
            "must be at least 1MB per cleaner thread.",
        ),
        ({"cordoned.log.dirs": "/x", "log.dirs": "/a"}, "Missing entries : /x"),
        ({"log.dirs": "/a,/b,/a/"}, "/a stands there twice"),
        ({"group.consumer.heartbeat.interval.ms": "4999"}, "must be from group.consumer.min.heartbeat.interval.ms to"),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "which are 5000 and 15000"),
        ({"group.consumer.session.timeout.ms": "60001"}, "which are 45000 and 60000"),
        (
            {"group.consumer.session.timeout.ms": "44999"},
            "must be from group.consumer.min.session.timeout.ms to group.consumer.max.session.timeout.ms",
        ),
        (
            {
                "group.consumer.heartbeat.interval.ms": "9000",
                "group.consumer.session.timeout.ms": "9000",
                "group.consumer.min.session.timeout.ms": "9000",
            },
            "must be less than group.consumer.session.timeout.ms, which is 9000",
        ),
        ({"offsets.topic.compression.codec": "9"}, "Unknown compression type id: 9"),
        ({"inter.broker.listener.name": "INSIDE"}, "no listener has this name"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "only one of inter.broker.listener.name and security.inter.broker.protocol may be set",
        ),
        ({"control.plane.listener.name": "CONTROL"}, "no listener has this name"),
        ({"log.dirs": "/data/\udcff"}, r"Invalid value /data/\udcff for configuration log.dirs: it is no UTF-8 text"),
    ],
)
def test_a_bad_value_is_one_line_that_names_it(properties: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.parse(properties)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert any(name.endswith(caught.value.name) for name in {*properties, "replica.fetch.wait.max.ms"})


def test_a_bad_values_line_breaks_and_length_are_tamed() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.parse({"num.partitions": "1\n2" + "x" * 5000})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_unknown_name_warns_with_the_nearest() -> None:
    config = Config.parse({"log.retention.hour": "3", "quite.something.else.entirely": "1"})
    assert config.warnings == (
        "log.retention.hour is not a known property; did you mean log.retention.hours?",
        "quite.something.else.entirely is not a known property",
    )
    assert config.properties["log.retention.hour"] == "3"


def test_a_name_without_effect_is_named() -> None:
    config = Config.parse({"num.network.threads": "8", "rsm.config.bucket": "b", "log.dirs": "/a"})
    assert config.without_effect == ("num.network.threads",)
    assert config.warnings == ("rsm.config.bucket is meant for a plug-in and has no effect here",)


def test_what_was_to_protect_warns_by_name() -> None:
    """Whoever sets an authorizer and gets none is warned, not told beside other things."""
    config = Config.parse({"authorizer.class.name": "a.B", "listener.name.a.ssl.key.password": "x"})
    assert config.without_effect == ()
    assert config.warnings == (
        "authorizer.class.name is known to Kafka but has no effect here",
        "listener.name.a.ssl.key.password is known to Kafka but has no effect here",
    )


@pytest.mark.parametrize(("size", "warned"), [(14, True), (107_370, True), (1_048_575, True), (1_048_576, False)])
def test_small_segments_are_taken_with_one_warning(size: int, warned: bool) -> None:
    config = Config.parse({"log.segment.bytes": str(size)})
    assert config.log.segment_bytes == size
    assert len(config.warnings) == (1 if warned else 0)
    assert not warned or f"log.segment.bytes is {size}: segments below 1048576 bytes" in config.warnings[0]
    assert effective_log_config({"segment.bytes": str(size)}, config.log).segment_bytes == size


def test_segments_below_a_records_overhead_are_refused() -> None:
    with pytest.raises(ConfigError, match="Value must be at least 14"):
        Config.parse({"log.segment.bytes": "13"})


#: What stands in config/server.properties of Apache Kafka 4.3.1, and in that of 3.9 with ZooKeeper.
SAMPLES = {
    "4.3": """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\
    SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
""",
    "3.9": """
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
""",
}


@pytest.mark.parametrize("version", SAMPLES)
def test_kafkas_sample_file_warns_of_nothing(version: str) -> None:
    config = Config.parse(parse_properties(SAMPLES[version].encode()))
    assert config.warnings == ()
    assert {"num.network.threads", "num.io.threads", "socket.receive.buffer.bytes"} <= set(config.without_effect)
    assert config.broker.id == (1 if version == "4.3" else 0)


CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def test_cluster_id_as_kafkas_image_takes_it() -> None:
    assert Config.parse(env={"CLUSTER_ID": CLUSTER}).broker.new_cluster_id == CLUSTER
    assert Config.parse(env={"CLUSTER_ID": ""}).broker.new_cluster_id is None
    with pytest.raises(ConfigError, match=r"CLUSTER_ID.*does not appear to be a valid UUID"):
        Config.parse(env={"CLUSTER_ID": "production"})


def test_a_password_is_told_to_nobody() -> None:
    assert "s3cret" not in repr(Config.parse({"ssl.key.password": "s3cret"}))
    # The listener's name makes it another name, which must be known for a password all the same.
    prefixed = Config.parse({"listener.name.a.ssl.key.password": "s3cret"})
    assert "s3cret" not in repr(prefixed) + repr(prefixed.warnings)


def test_what_is_still_to_come_is_named_too() -> None:
    config = Config.parse({"transaction.two.phase.commit.enable": "true"})
    assert (config.warnings, config.without_effect) == ((), ("transaction.two.phase.commit.enable",))


def test_warnings_are_bounded() -> None:
    config = Config.parse({f"zzz{number}": "1" for number in range(WARNINGS_MAX + 50)})
    assert len(config.warnings) == WARNINGS_MAX + 1


def test_a_kraft_file_works_without_its_controllers_listener() -> None:
    config = Config.parse(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert [listener.port for listener in config.server.listeners] == [9092]
    assert [listener.host for listener in config.server.advertised_listeners] == ["localhost"]
    assert (config.warnings, config.without_effect) == ((), ("controller.quorum.voters",))


def test_a_property_has_a_status_if_and_only_if_it_is_read() -> None:
    """The table's word that something goes by a property is held to what parsing really reads."""
    reader = PropertyReader({})
    assemble(reader, {}, "/data")
    assert reader.read == {name for name, known in broker_definitions().items() if known.status in {"used", "later"}}
    assert FIELDS.keys() == {name for name, known in topic_definitions().items() if known.status in {"used", "later"}}


def test_who_is_said_to_go_by_a_property_reads_it() -> None:
    """Behind each name that is `used` stands a field which somebody outside of parsing asks for."""
    filled: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse((SOURCES / "config" / "broker.py").read_text())):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg is not None:
                texts = [each.value for each in ast.walk(keyword.value) if isinstance(each, ast.Constant)]
                filled.setdefault(keyword.arg, set()).update(text for text in texts if isinstance(text, str))
    for kind in SLICES:
        for field, annotation in kind.__annotations__.items():
            if get_origin(annotation) is Annotated:
                filled.setdefault(field, set()).add(get_args(annotation)[1])
    asked = {
        node.attr
        for path in SOURCES.rglob("*.py")
        if path != SOURCES / "config" / "broker.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    used = {name for name, known in broker_definitions().items() if known.status == "used"}
    named = {name: field for field, names in filled.items() for name in names & used}
    # The others go through a line of their own: listeners, folders, and names for one thing in several units.
    assert len(named) > 60
    assert {name for name, field in named.items() if field not in asked} == set()


def test_every_property_is_documented_in_one_sentence() -> None:
    for definition in (*broker_definitions().values(), *topic_definitions().values()):
        assert definition.documentation.endswith("."), definition.name
        assert len(definition.documentation) > 15, definition.name


def test_every_default_is_good() -> None:
    with_defaults = {
        name: known.default for name, known in broker_definitions().items() if known.default not in {None, ""}
    }
    # Names that exclude each other when both are set.
    with_defaults.pop("security.inter.broker.protocol")
    assert Config.parse({name: str(text) for name, text in with_defaults.items()}).log == LogConfig()


def test_nearest_is_bounded_and_silent_on_nonsense() -> None:
    assert nearest("x" * 30_000, "broker") is None
    assert nearest("segment.byte", "topic") == "segment.bytes"


@pytest.mark.parametrize(("brokers", "copies", "needed"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_up_defaults_fit_the_cluster(brokers: int, copies: int, needed: int) -> None:
    config = Config.parse(defaults=up_defaults(brokers))
    assert config.warnings == ()
    assert config.broker.default_replication_factor == copies
    assert config.groups.offsets.topic_replication_factor == copies
    assert config.transactions.topic_replication_factor == copies
    assert config.groups.initial_rebalance_delay_ms == 0
    assert config.broker.new_id == 1
    assert config.transactions.topic_min_isr == config.log.min_insync_replicas == needed


def test_up_defaults_leave_out_no_copies_of_an_internal_topic() -> None:
    ends = (".replication.factor", ".min.isr", "min.insync.replicas")
    known = {name for name in broker_definitions() if name.endswith(ends)}
    assert known <= up_defaults(1).keys(), known - up_defaults(1).keys()
    assert {value for name, value in up_defaults(1).items() if name in known} == {"1"}


def test_what_one_is_told_beats_up_defaults() -> None:
    config = Config.parse({"min.insync.replicas": "1"}, defaults=up_defaults(3))
    assert config.log.min_insync_replicas == 1
    assert config.broker.default_replication_factor == 3


@examples(300)
@given(st.dictionaries(st.sampled_from(sorted(broker_definitions())) | st.text(max_size=20), st.text(max_size=40)))
def test_any_properties_are_read_or_refused_by_configerror(properties: dict[str, str]) -> None:
    try:
        Config.parse(properties)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are good


def test_importing_config_does_not_read_the_tables() -> None:
    program = (
        "import sys, ottla.config, ottla.metrics, ottla.logs\n"
        "heavy = {'asyncio', 'logging', 'dataclasses', 'inspect', 'json', 'difflib', 'ottla.config.definitions.log'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


#: What a field holds, by the type of its property.
FIELD_TYPES = {"INT": int, "LONG": int, "SHORT": int, "DOUBLE": float, "BOOLEAN": bool, "STRING": str}


@pytest.mark.parametrize("kind", SLICES, ids=lambda kind: kind.__name__)
def test_a_field_has_the_type_of_the_property_beside_it(kind: type) -> None:
    for field, annotation in kind.__annotations__.items():
        if get_origin(annotation) is Annotated:
            holds, name = get_args(annotation)
            definition = broker_definitions()[name]
            expected = FIELD_TYPES[definition.type]
            assert holds == (expected if definition.default is not None else expected | None), field


def test_a_property_stands_beside_one_field_only() -> None:
    named = [get_args(each)[1] for kind in SLICES for each in kind.__annotations__.values() if get_args(each)[1:]]
    beside = [name for name in named if isinstance(name, str)]
    assert len(set(beside)) == len(beside) > 60


def test_tls_towards_zookeeper_is_refused_and_not_passed_over() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.client\.enable"):
        Config.parse({"zookeeper.connect": "zk:2181", "zookeeper.ssl.client.enable": "true"})
    Config.parse({"zookeeper.connect": "zk:2181", "zookeeper.ssl.client.enable": "false"})
    # Without an ensemble there is nothing to speak to.
    Config.parse({"zookeeper.ssl.client.enable": "true"})
