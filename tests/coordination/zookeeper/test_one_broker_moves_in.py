"""`ottla up` of one broker has outgrown its host: its tree goes into a real ensemble, its data are served from there.

What was written and what groups have committed is there, and a second broker takes copies of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cli.conftest import environment
from tests.conftest import WatchServer
from tests.interop.clients import SECONDS_MAX, eventually
from tools.ottla_server import ottla_broker, ottla_up
from tools.zookeeper_server import ZooKeeperEnsemble

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("zookeeper")]

TOPIC, GROUP = "orders", "billing"
PARTITIONS = 2
RECORDS = 200


def produce(bootstrap: str, numbers: range) -> None:
    lost: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in numbers:
        partition = number % PARTITIONS
        producer.produce(TOPIC, b"%d" % number, partition=partition, on_delivery=lambda error, _: lost.append(error))
    assert producer.flush(SECONDS_MAX) == 0
    assert set(lost) == {None}


def read_on(bootstrap: str, count: int) -> dict[int, list[int]]:
    """What the group has not committed yet, which it commits then."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest", "log_level": 0}
        | {"enable.auto.commit": False}
    )
    consumer.subscribe([TOPIC])
    found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    for _ in range(count):
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        assert message.error() is None, message.error()
        found[message.partition() or 0].append(int(message.value() or b"-1"))
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def committed(bootstrap: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]).values()
    return {one.partition: one.offset for one in found.result(SECONDS_MAX).topic_partitions if one.topic == TOPIC}


def ottla(*words: str) -> str:
    command = [sys.executable, "-m", "ottla", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(of: range) -> dict[int, list[int]]:
    return {partition: [number for number in of if number % PARTITIONS == partition] for partition in range(PARTITIONS)}


def test_records_and_commits_of_a_single_broker_are_there_in_an_ensemble(
    own_ensemble: ZooKeeperEnsemble, tmp_path: Path, watch_server: WatchServer
) -> None:
    single, data = ottla_up(tmp_path / "up"), tmp_path / "up" / "data"
    with watch_server(single), single:
        admin = AdminClient({"bootstrap.servers": single.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(SECONDS_MAX)
        produce(single.bootstrap, range(RECORDS))
        assert read_on(single.bootstrap, RECORDS) == numbers(range(RECORDS))
        produce(single.bootstrap, range(RECORDS, 2 * RECORDS))
        before = committed(single.bootstrap)
        topic_id = described_id(single.bootstrap)
        single.stop()
    assert before == dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)

    dump, place = str(tmp_path / "tree.json"), f"{own_ensemble.connect}/moved-in"
    ottla("tree", "dump", "--dir", f"{data}.coordination", "--file", dump)
    assert "topics: 2" in ottla("tree", "load", "--zookeeper", place, "--file", dump)  # one is the groups'

    (identity,) = re.findall(r"^broker\.id=(\d+)$", (data / "meta.properties").read_text(), re.MULTILINE)
    properties = {"zookeeper.connect": place, "zookeeper.connection.timeout.ms": "60000"}
    first = ottla_broker(tmp_path / "first", properties={**properties, "broker.id": identity, "log.dirs": str(data)})
    second = ottla_broker(tmp_path / "second", properties={**properties, "broker.id": str(int(identity) + 1)})
    with watch_server(first), first:
        assert committed(first.bootstrap) == before
        assert described_id(first.bootstrap) == topic_id
        produce(first.bootstrap, range(2 * RECORDS, 3 * RECORDS))
        assert read_on(first.bootstrap, 2 * RECORDS) == numbers(range(RECORDS, 3 * RECORDS))
        with watch_server(second), second:
            both = f"{first.bootstrap},{second.bootstrap}"
            moves = tmp_path / "moves.json"
            moves.write_text(ottla("reassign", "plan", "--replication-factor", "2", "-b", both))
            ottla("reassign", "run", "--file", str(moves), "--yes", "-b", both)
            # Before it has heard of the moves the second broker finds nothing lacking: the controller knows of them.
            eventually(lambda: ottla("reassign", "status", "-b", both) == "no partition is on its way\n")
            ottla("cluster", "health", "-b", both, "--exit-when-healthy")
            first.stop()
            # The one that was there first is gone, and nothing with it.
            eventually(
                lambda: committed(second.bootstrap) == dict.fromkeys(range(PARTITIONS), 3 * RECORDS // PARTITIONS)
            )
            assert stored(second.bootstrap) == numbers(range(3 * RECORDS))


def described_id(bootstrap: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    (found,) = admin.describe_topics(TopicCollection([TOPIC])).values()
    return str(found.result(SECONDS_MAX).topic_id)


def stored(bootstrap: str) -> dict[int, list[int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    for _ in range(3 * RECORDS):
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        assert message.error() is None, message.error()
        found[message.partition() or 0].append(int(message.value() or b"-1"))
    consumer.close()
    return found
