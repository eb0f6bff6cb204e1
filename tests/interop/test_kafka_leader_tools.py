"""Kafka's own tools that move leaders and partitions, unchanged, as far as one broker alone can be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools

from tests.interop.broker import Broker

# With the tests of the other tools: one virtual machine serves them all.
pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]


def test_leader_election_command(kafka_tools: KafkaTools, broker: Broker, topic: str) -> None:
    def elect(kind: str, *which: str) -> str:
        server = ("--bootstrap-server", broker.bootstrap)
        done = kafka_tools.run("LeaderElectionCommand", *server, "--election-type", kind, *which)
        return done.out + done.err

    one = ("--topic", topic, "--partition", "0")
    assert f"Valid replica already elected for partitions {topic}-0" in elect("PREFERRED", *one)
    assert f"Valid replica already elected for partitions {topic}-0" in elect("UNCLEAN", *one)
    assert "UnknownTopicOrPartitionException" in elect("PREFERRED", "--topic", topic, "--partition", "9")
    # Of all of them none needs it, which the tool says nothing of.
    assert "Error" not in elect("PREFERRED", "--all-topic-partitions")


def test_reassign_partitions_command(
    kafka_tools: KafkaTools, broker: Broker, admin: AdminClient, topic: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"

    def reassign(*arguments: str) -> str:
        server = ("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", str(plan))
        done = kafka_tools.run("reassign.ReassignPartitionsCommand", *server, *arguments)
        return done.out + done.err

    def planned(*replicas: int) -> None:
        moves = [{"topic": topic, "partition": 0, "replicas": list(replicas), "log_dirs": ["any"] * len(replicas)}]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))

    listed = kafka_tools.run(
        "reassign.ReassignPartitionsCommand", "--bootstrap-server", broker.bootstrap, "--list"
    ).checked()
    assert "No partition reassignments found." in listed
    broker_id = admin.list_topics(topic).topics[topic].partitions[0].replicas[0]
    planned(broker_id)
    assert "Successfully started partition reassignment" in reassign("--execute")
    assert f"Reassignment of partition {topic}-0 is completed." in reassign("--verify")
    assert "None of the specified partition reassignments are active." in reassign("--cancel")
    planned(broker_id + 1)
    assert f"Unknown broker id {broker_id + 1}" in reassign("--execute")
