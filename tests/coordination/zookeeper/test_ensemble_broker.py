"""A broker whose tree is in a real ensemble: a server of the ensemble dies, the broker stops and starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conftest import WatchServer
from tools.ottla_server import ottla_broker
from tools.zookeeper_server import ZooKeeperEnsemble

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("zookeeper")]


def test_a_broker_keeps_its_tree_in_an_ensemble(
    own_ensemble: ZooKeeperEnsemble, tmp_path: Path, watch_server: WatchServer
) -> None:
    properties = {"zookeeper.connect": f"{own_ensemble.connect}/broker", "zookeeper.connection.timeout.ms": "60000"}
    broker = ottla_broker(tmp_path / "data", properties=properties)
    with watch_server(broker), broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("before", 3, 1)])["before"].result(60)
        own_ensemble.leader().kill()
        own_ensemble.start()
        # What was under way when the ensemble lost its leader is unknown; the broker finds out.
        admin.create_topics([NewTopic("after", 2, 1)])["after"].result(60)
        assert broker.running
        broker.stop()
        broker.start()
        topics = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=60).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"before": 3, "after": 2}
        assert not (tmp_path / "data" / "log.coordination").exists()
