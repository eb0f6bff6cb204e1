"""What DescribeConfigs tells of a topic and of a broker, beside what Apache Kafka tells of its own.

Every difference is named here, and told with its reason in `docs/configuration.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.model import ErrorCode
from ottla.protocol.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.conftest import WatchServer
from tests.interop.broker import Broker, kafka_broker, ottla_broker
from tests.interop.clients import eventually
from tests.server.conftest import Peer

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC, BROKER = 2, 4
DEFAULT = 5
#: Given to both, beside what Kafka cannot start without.
SAME = {
    "log.retention.hours": "100",
    "log.segment.bytes": "2000000",
    "log.segment.delete.delay.ms": "1000",
    "broker.rack": "r",
    "max.connections": "4000",
    "offsets.topic.replication.factor": "1",
}
OVERRIDES = {"retention.ms": "1000", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25"}

#: Kafka says "default" and names nothing, although it goes by the broker's property in another unit.
UNITS = {"flush.ms", "retention.ms", "segment.jitter.ms", "segment.ms"}
#: Kafka 4 sets it for all brokers itself when a cluster is formatted.
SET_BY_KAFKA = {"min.insync.replicas"}
#: They are not changed while a broker runs.
FIXED = {"listeners", "listener.security.protocol.map"}
#: They need not be set, so that they have a default.
OPTIONAL = {"node.id", "process.roles"}
#: A place that survives a restart of the machine.
ELSEWHERE = {"log.dir"}


class DescribedSetting(NamedTuple):
    value: str | None
    source: int
    type: int
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[tuple[str, str | None, int], ...]
    is_documented: bool


Pair = tuple[Broker, Broker]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer) -> Iterator[Pair]:
    """Kafka and this broker."""
    folder = tmp_path_factory.mktemp("configs")
    kafka = kafka_broker(folder / "kafka", kafka_jars, SAME)
    ours = ottla_broker(folder / "ours", {"node.id": "1", **SAME})
    with watch_server(kafka.server), watch_server(ours.server), kafka.server, ours.server:
        for broker in (kafka, ours):
            create(broker)
        yield kafka, ours


def peer_of(broker: Broker) -> Peer:
    return Peer(int(broker.bootstrap.rpartition(":")[2]))


def create(broker: Broker) -> None:
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in OVERRIDES.items()]
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    with peer_of(broker) as peer:
        answer = peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7, CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE
    # Kafka's controller answers; its broker hears of the topic a moment later.
    eventually(lambda: _asked(broker, TOPIC, "t").error_code == ErrorCode.NONE)


def described(broker: Broker, kind: int, name: str) -> dict[str, DescribedSetting]:
    answer = _asked(broker, kind, name)
    assert answer.error_code == ErrorCode.NONE, answer
    return {config.name: _told(config) for config in answer.configs}


def _asked(broker: Broker, kind: int, name: str) -> Any:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)],
        include_synonyms=True,
        include_documentation=True,
    )
    with peer_of(broker) as peer:
        (answer,) = peer.ask(request, 4, DescribeConfigsResponse).results
    return answer


def _told(config: Any) -> DescribedSetting:
    return DescribedSetting(
        config.value,
        config.config_source,
        config.config_type,
        config.is_sensitive,
        config.read_only,
        tuple((each.name, each.value, each.source) for each in config.synonyms),
        bool(config.documentation),
    )


def differing(
    kafka: dict[str, DescribedSetting], ours: dict[str, DescribedSetting], passed_over: set[str]
) -> dict[str, tuple[DescribedSetting, DescribedSetting]]:
    common = (kafka.keys() & ours.keys()) - passed_over
    return {name: (kafka[name], ours[name]) for name in common if kafka[name] != ours[name]}


def test_a_topic_is_told_as_by_kafka(pair: Pair) -> None:
    kafka, ours = (described(broker, TOPIC, "t") for broker in pair)
    assert ours.keys() == kafka.keys()
    assert differing(kafka, ours, UNITS | SET_BY_KAFKA) == {}
    for name in UNITS | SET_BY_KAFKA:
        assert ours[name][2:5] == kafka[name][2:5]
        assert ours[name].value == kafka[name].value


def test_a_broker_is_told_as_by_kafka(pair: Pair) -> None:
    kafka, ours = (described(broker, BROKER, "1") for broker in pair)
    assert kafka.keys() - ours.keys() == set()
    assert {name for name in ours.keys() - kafka.keys() if not name.startswith("ottla.")} == set()
    # Kafka was told more, by the tests and because it starts without nothing less.
    told_to_kafka = {
        name
        for name in kafka
        if kafka[name].source != DEFAULT and (name not in SAME or ours[name].source == DEFAULT) and name != "node.id"
    }
    assert differing(kafka, ours, told_to_kafka | FIXED | OPTIONAL | ELSEWHERE) == {}
    for name in told_to_kafka | FIXED | OPTIONAL | ELSEWHERE:
        assert (ours[name].type, ours[name].is_sensitive) == (kafka[name].type, kafka[name].is_sensitive), name
    assert all(ours[name].is_read_only and not kafka[name].is_read_only for name in FIXED)
