"""What a person does to a running cluster with ZooKeeper's own shell, and Kafka's tools before 2.8 did by ZooKeeper.

The nodes are those of `kafka-topics`, `kafka-configs`, `kafka-reassign-partitions` and
`kafka-preferred-replica-election` with `--zookeeper`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.kafka_jars import BROKER_39
from tools.ottla_server import ottla_tree
from tools.zookeeper_server import ZooKeeperEnsemble, shell

from ottla.client.admin.results import ConfigResource, NewTopic
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin
from ottla.testing.processes import Cluster
from tests.conftest import found_jars


@pytest.fixture
def zookeeper(where: str, tmp_path: Path) -> Iterator[str]:
    found_jars(BROKER_39)
    if where == "ours":
        with ottla_tree(tmp_path / "tree") as tree:
            yield tree.bootstrap
    else:
        with ZooKeeperEnsemble(tmp_path / "ensemble") as ensemble:
            yield ensemble.connect


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("where", ["ours", "an ensemble"])
def test_what_is_written_by_hand_is_carried_out(zookeeper: str, tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    with Cluster(3, data=data, zookeeper=zookeeper, links=False) as cluster:
        assignments = {"going": [1, 2, 3], "moving": [1, 2], "led": [2, 3, 1]}
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(name, assignments={0: ids}) for name, ids in assignments.items()])
            for name in assignments:
                cluster.until_heard(name)
            # The preferred leader comes back, and another goes on leading.
            cluster.kill(2)
            cluster.until(lambda: cluster.leader("led") not in (-1, 2))
            cluster.until_in_sync("led")
            said = shell(
                zookeeper,
                'create /config/topics/by-hand {"version":1,"config":{"retention.ms":"86400000"}}',
                'create /brokers/topics/by-hand {"version":1,"partitions":{"0":[3,1],"1":[1,2]}}',
                'create /admin/delete_topics/going ""',
                'create /admin/reassign_partitions {"version":1,"partitions":'
                '[{"topic":"moving","partition":0,"replicas":[3,1]}]}',
                'create /admin/preferred_replica_election {"version":1,"partitions":[{"topic":"led","partition":0}]}',
                'set /config/topics/led {"version":1,"config":{"retention.ms":"3600000"}}',
                'create -s /config/changes/config_change_ {"version":2,"entity_path":"topics/led"}',
            )
            assert said.count("Created /") == 6, said
            cluster.until_heard("by-hand")
            found = admin.describe_topic("by-hand").partitions
            assert [partition.replicas for partition in found] == [(3, 1), (1, 2)]
            cluster.until(lambda: "going" not in admin.list_topics())
            cluster.until(lambda: admin.describe_topic("moving").partitions[0].replicas == (3, 1))
            cluster.until(lambda: cluster.leader("led") == 2)
            for topic, milliseconds in (("by-hand", "86400000"), ("led", "3600000")):
                cluster.until(lambda t=topic, ms=milliseconds: _retention(admin, t) == ms)  # type: ignore[misc]
            left = shell(zookeeper, "ls /admin", "ls /admin/delete_topics", "ls /brokers/topics")
            assert "reassign_partitions" not in left
            assert "preferred_replica_election" not in left
            assert "going" not in left
            # The logs follow: of what was moved, and of what was deleted.
            cluster.until(lambda: not list(data.glob("data*/going-0")) and not list(data.glob("data-2/moving-0")))


def _retention(admin: Admin, topic: str) -> str | None:
    try:
        resource = ConfigResource.topic(topic)
        return admin.describe_configs([resource], names=["retention.ms"])[resource]["retention.ms"].value
    except KafkaError:
        return None
