"""Kafka 2.8's own tools with `--zookeeper`, which write into the tree by themselves: what they write is carried out,
and what they read is there. On our tree, spoken to by the ZooKeeper client of that time, and on an ensemble."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.kafka_jars import BROKER_28, BROKER_39
from tools.kafka_tools import KafkaTools
from tools.ottla_server import ottla_tree
from tools.zookeeper_server import ZooKeeperEnsemble

from ottla.client.admin.results import ConfigResource, NewTopic
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin
from ottla.testing.processes import Cluster
from tests.conftest import found_jars

#: The same by the nodes alone, as these tools write them, is in `tests/controller/test_tree_changes.py`.
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]

THROTTLED = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


@pytest.fixture
def zookeeper(where: str, tmp_path: Path) -> Iterator[str]:
    found_jars(BROKER_39)
    if where == "ours":
        with ottla_tree(tmp_path / "tree") as tree:
            yield tree.bootstrap
    else:
        with ZooKeeperEnsemble(tmp_path / "ensemble") as ensemble:
            yield ensemble.connect


@pytest.mark.parametrize("where", ["ours", "an ensemble"])
def test_what_the_tools_of_kafka_2_8_write_is_carried_out(zookeeper: str, tmp_path: Path) -> None:
    with (
        KafkaTools(found_jars(BROKER_28)) as tools,
        Cluster(3, data=tmp_path / "cluster", zookeeper=zookeeper, links=False) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        asked = Asked(tools, zookeeper, cluster, admin, tmp_path)
        asked.topics_are_created_grown_and_deleted()
        asked.settings_are_changed()
        asked.replicas_are_moved()
        asked.preferred_leaders_are_elected()
        asked.quotas_are_set()


class Asked:
    """What a person does who has the tools of that time, one subject after the other."""

    def __init__(self, tools: KafkaTools, zookeeper: str, cluster: Cluster, admin: Admin, folder: Path) -> None:
        self._tools = tools
        self._zookeeper = zookeeper
        self._cluster = cluster
        self._admin = admin
        self._folder = folder

    def _run(self, tool: str, *arguments: str) -> str:
        return self._tools.run(f"kafka.admin.{tool}", "--zookeeper", self._zookeeper, *arguments).checked()

    def _file(self, content: object) -> str:
        path = self._folder / "asked.json"
        path.write_text(json.dumps(content))
        return str(path)

    def _replicas(self, topic: str) -> list[tuple[int, ...]]:
        try:
            return [partition.replicas for partition in self._admin.describe_topic(topic).partitions]
        except KafkaError:
            return []

    def _until_set(self, resource: ConfigResource, name: str, value: str) -> None:
        def is_set() -> bool:
            try:
                found = self._admin.describe_configs([resource], names=[name])[resource]
            except KafkaError:
                return False  # it has not heard of the topic yet
            return name in found and found[name].value == value

        self._cluster.until(is_set)

    def topics_are_created_grown_and_deleted(self) -> None:
        placed = ("--replica-assignment", "3:1,1:2", "--config", "retention.ms=86400000")
        assert "Created topic made" in self._run("TopicCommand", "--create", "--topic", "made", *placed)
        counted = ("--partitions", "4", "--replication-factor", "2")
        self._run("TopicCommand", "--create", "--topic", "spread", *counted)
        for topic in ("made", "spread"):
            self._cluster.until_heard(topic)
        assert self._replicas("made") == [(3, 1), (1, 2)]
        assert all(len(set(replicas)) == 2 for replicas in self._replicas("spread"))
        self._until_set(ConfigResource.topic("made"), "retention.ms", "86400000")
        grown = ("--partitions", "3", "--replica-assignment", "3:1,1:2,2:3")
        self._run("TopicCommand", "--alter", "--topic", "made", *grown)
        self._cluster.until(lambda: self._replicas("made") == [(3, 1), (1, 2), (2, 3)])
        self._cluster.until_heard("made")
        # What it reads is what the brokers have written.
        shown = self._run("TopicCommand", "--describe", "--topic", "made")
        assert "PartitionCount: 3" in shown
        assert "Topic: made\tPartition: 2\tLeader: 2\tReplicas: 2,3\tIsr: 2,3" in shown
        assert "retention.ms=86400000" in shown
        self._run("TopicCommand", "--delete", "--topic", "spread")
        self._cluster.until(lambda: "spread" not in self._admin.list_topics())
        self._cluster.until(lambda: not list((self._folder / "cluster").glob("data*/spread-*")))
        assert self._run("TopicCommand", "--list").split() == ["made"]

    def settings_are_changed(self) -> None:
        of_topic = ("--entity-type", "topics", "--entity-name", "made")
        self._run("ConfigCommand", "--alter", *of_topic, "--add-config", "retention.ms=3600000")
        self._until_set(ConfigResource.topic("made"), "retention.ms", "3600000")
        assert "retention.ms=3600000" in self._run("ConfigCommand", "--describe", *of_topic)
        self._run("ConfigCommand", "--alter", *of_topic, "--delete-config", "retention.ms")
        self._until_set(ConfigResource.topic("made"), "retention.ms", "604800000")

    def replicas_are_moved(self) -> None:
        self._admin.create_topics([NewTopic("moving", assignments={0: [1, 2]})])
        self._cluster.until_heard("moving")
        wanted = {"version": 1, "partitions": [{"topic": "moving", "partition": 0, "replicas": [3, 1]}]}
        named = ("--reassignment-json-file", self._file(wanted))
        self._run("ReassignPartitionsCommand", *named, "--execute", "--throttle", "50000000")
        self._cluster.until(lambda: self._replicas("moving") == [(3, 1)])
        self._cluster.until(lambda: not list((self._folder / "cluster").glob("data-2/moving-0")))
        assert "is complete" in self._run("ReassignPartitionsCommand", *named, "--verify")
        # Which takes the throttle away that it has set.
        for broker in (1, 2, 3):
            configs = self._run("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", str(broker))
            assert not any(name in configs for name in THROTTLED)

    def preferred_leaders_are_elected(self) -> None:
        self._admin.create_topics([NewTopic("led", assignments={0: [2, 3, 1]})])
        self._cluster.until_heard("led")
        self._cluster.kill(2)
        self._cluster.until(lambda: self._cluster.leader("led") not in (-1, 2))
        self._cluster.until_in_sync("led")
        named = self._file({"partitions": [{"topic": "led", "partition": 0}]})
        self._run("PreferredReplicaLeaderElectionCommand", "--path-to-json-file", named)
        self._cluster.until(lambda: self._cluster.leader("led") == 2)

    def quotas_are_set(self) -> None:
        of_client = ("--entity-type", "clients", "--entity-name", "slow")
        self._run("ConfigCommand", "--alter", *of_client, "--add-config", "producer_byte_rate=1024")
        assert "producer_byte_rate=1024" in self._run("ConfigCommand", "--describe", *of_client)
        # They hold nobody back here, which is said.
        self._cluster.until(lambda: any("quotas and passwords in the tree" in line for line in self._cluster.log))
