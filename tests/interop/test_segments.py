"""One format on disk: Kafka's dump tool reads what the broker wrote, and each broker opens what the other wrote."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ConsumerPartition
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools
from tools.ottla_server import ottla_up

from tests.conftest import WatchServer
from tests.interop.broker import SMALL_INDEXES, Broker, kafka_broker
from tests.interop.clients import SECONDS_MAX, Read, Row, eventually, read_confluent, read_ottla, write_confluent
from tests.interop.conftest import create_topic

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOW_MS = int(time.time() * 1000)
TOPIC = "segments"
#: Kafka's least; three megabytes of records then span several segments.
SEGMENT_BYTES = 1024 * 1024
READERS_GROUP = {"group.id": "readers", "enable.auto.commit": False}
COMPLAINTS = ("mismatch", "corrupt", "exception", "non-consecutive", "out of order", "invalid", "fatal", "fails")


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def fill(broker: Broker) -> list[Read]:
    """A partition with every codec, nulls and headers, three segments and two idempotent producers' state."""
    create_topic(admin_of(broker), TOPIC, segment_bytes=str(SEGMENT_BYTES), compression_type="producer")
    rows: list[Row] = []
    for number, codec in enumerate(CODECS):
        some = [Row(b"k%d" % n, b"%s %d" % (codec.encode(), n), (("h", b"%d" % n),), NOW_MS + n) for n in range(200)]
        some.append(Row(None, b"no key", (), NOW_MS + number))
        some.append(Row(b"no value", None, (), NOW_MS + number))
        write_confluent(broker.bootstrap, TOPIC, some, codec, enable_idempotence=number % 2 == 1)
        rows += some
    bulk = [Row(None, bytes([n % 251]) * 10_000, (), NOW_MS + 1000 + n) for n in range(300)]
    write_confluent(broker.bootstrap, TOPIC, bulk, "none", enable_idempotence=True, batch_size=65536)
    return [Read(offset, row) for offset, row in enumerate(rows + bulk)]


class Filled(NamedTuple):
    """An Apache Kafka that has been filled and stopped, and the records it holds."""

    broker: Broker
    expected: list[Read]
    topic_id: str
    #: Copies of its log directory, as a kill leaves it and as the stop has left it.
    unclean: Path
    clean: Path


@pytest.fixture(scope="module")
def kafka_filled(
    tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer
) -> Iterator[Filled]:
    properties = {**SMALL_INDEXES, "offsets.topic.num.partitions": "3"}
    broker = kafka_broker(tmp_path_factory.mktemp("kafka-filled"), kafka_jars, properties)
    copies = tmp_path_factory.mktemp("copies")
    with watch_server(broker.server):
        broker.server.start()
        expected = fill(broker)
        create_topic(admin_of(broker), "wide", partitions=3)
        commit({"bootstrap.servers": broker.bootstrap, **READERS_GROUP}, 17)
        topic_id = broker.partition_folder(TOPIC).joinpath("partition.metadata").read_text()
        logs = next(path.parent for path in broker.data.rglob("meta.properties"))
        os.kill(broker.server.pid, signal.SIGSTOP)
        unclean = shutil.copytree(logs, copies / "unclean")
        os.kill(broker.server.pid, signal.SIGCONT)
        broker.server.stop()
        clean = shutil.copytree(logs, copies / "clean")
        yield Filled(broker, expected, topic_id, unclean, clean)


def test_kafkas_dump_tool_finds_nothing_wrong(own_broker: Broker, kafka_tools: KafkaTools) -> None:
    own_broker.server.start()
    expected = fill(own_broker)
    own_broker.server.stop()
    folder = own_broker.partition_folder(TOPIC)

    segments = sorted(folder.glob("*.log"))
    assert len(segments) >= 3
    everything = ",".join(str(path) for path in segments)
    said = kafka_tools.run("DumpLogSegments", "--files", everything, "--deep-iteration", "--print-data-log").checked()
    assert_no_complaint(said)
    assert said.count("isvalid: true") > 0
    assert "isvalid: false" not in said
    records = re.findall(r"^\| offset: (\d+) \S*CreateTime: (\d+) ", said, re.MULTILINE)
    assert [(int(offset), int(timestamp)) for offset, timestamp in records] == [
        (found.offset, found.row.timestamp_ms) for found in expected
    ]
    for codec in CODECS:
        assert f"compresscodec: {codec}" in said

    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    assert len(indexes) == 2 * len(segments)
    for check in ([], ["--index-sanity-check"], ["--verify-index-only"]):
        files = ",".join(str(path) for path in indexes)
        said = kafka_tools.run("DumpLogSegments", "--files", files, *check).checked()
        assert_no_complaint(said)
        assert said.count("Dumping ") == len(indexes)
    # The last segment may be shorter than the interval between two entries.
    assert all(path.with_suffix(".index").stat().st_size for path in segments[:-1])

    snapshots = sorted(folder.glob("*.snapshot"))
    # One at the clean stop, and one a roll, unless the one before it is still on its way to the disk.
    assert len(snapshots) >= 2
    assert int(snapshots[-1].stem) == expected[-1].offset + 1
    said = kafka_tools.run("DumpLogSegments", "--files", str(snapshots[-1])).checked()
    assert_no_complaint(said)
    assert len(re.findall(r"^producerId: ", said, re.MULTILINE)) == 3


def assert_no_complaint(said: str) -> None:
    lowered = said.lower()
    for word in COMPLAINTS:
        assert word not in lowered, said


@pytest.mark.parametrize(
    "cleanly", [pytest.param(True, id="clean"), pytest.param(False, id="unclean", marks=pytest.mark.slow)]
)
def test_the_broker_opens_what_kafka_wrote(own_broker: Broker, kafka_filled: Filled, *, cleanly: bool) -> None:
    own_broker.server.start()
    create_topic(admin_of(own_broker), TOPIC, segment_bytes=str(SEGMENT_BYTES))
    write_confluent(own_broker.bootstrap, TOPIC, [Row(None, b"replaced", (), NOW_MS)], "none")
    if cleanly:
        own_broker.server.stop()
    else:
        own_broker.server.kill()
    hand_over(kafka_filled.broker, own_broker)
    verify_and_append(own_broker, kafka_filled.expected)
    own_broker.server.stop()


def test_kafka_opens_what_the_broker_wrote(own_broker: Broker, kafka_filled: Filled) -> None:
    own_broker.server.start()
    expected = fill(own_broker)
    own_broker.server.stop()
    hand_over(own_broker, kafka_filled.broker)
    verify_and_append(kafka_filled.broker, expected)


def hand_over(source: Broker, target: Broker) -> None:
    """Starts ``target`` over the files of ``source``'s partition, save for the identity of its own topic."""
    into, origin = target.partition_folder(TOPIC), source.partition_folder(TOPIC)
    for path in into.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in origin.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, into)
    # The checkpoints of the folder speak of the partition that was there before.
    for checkpoint in into.parent.glob("*-checkpoint"):
        checkpoint.unlink()
    target.server.start()


def verify_and_append(broker: Broker, expected: list[Read]) -> None:
    for read in (read_confluent, read_ottla):
        assert read(broker.bootstrap, TOPIC, len(expected)) == expected
    # Not idempotent: this cluster may hand out a producer id that the other one's segments know already.
    write_confluent(broker.bootstrap, TOPIC, [Row(None, b"appended", (), NOW_MS)], "none")
    found = read_confluent(broker.bootstrap, TOPIC, 1, start=len(expected))
    assert [(record.offset, record.row.value) for record in found] == [(len(expected), b"appended")]


@pytest.mark.parametrize("how", ["clean", "unclean"])
def test_a_log_directory_of_kafka_is_taken_over_whole(
    kafka_filled: Filled, watch_server: WatchServer, how: str
) -> None:
    """Without a tree beside it: topics, ids and committed offsets are what the folders say."""
    expected = kafka_filled.expected
    data = kafka_filled.clean if how == "clean" else kafka_filled.unclean
    assert data.joinpath(".kafka_cleanshutdown").exists() == (how == "clean")
    taken = Broker(kind="ottla", server=ottla_up(data), data=data)
    with watch_server(taken.server):
        taken.server.start()
        said = taken.server.log.read_text()
        assert "topics were taken over from the log directories" in said
        assert "__cluster_metadata-0: the log of Kafka's controllers" in said
        verify_and_append(taken, expected)
        topics = admin_of(taken).list_topics(timeout=SECONDS_MAX).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()}.items() >= {TOPIC: 1, "wide": 3}.items()
        assert committed({**READERS_GROUP, "bootstrap.servers": taken.bootstrap}) == 17
        # An idempotent producer gets an id that no log knows.
        write_confluent(taken.bootstrap, TOPIC, [Row(None, b"once", (), NOW_MS)], "none", enable_idempotence=True)
        assert read_confluent(taken.bootstrap, TOPIC, 1, start=len(expected) + 1)[0].row.value == b"once"
        taken.server.stop()
    assert taken.partition_folder(TOPIC).joinpath("partition.metadata").read_text() == kafka_filled.topic_id


def commit(group: dict[str, Any], offset: int) -> None:
    consumer = Consumer(group)

    def done() -> bool:
        try:
            consumer.commit(offsets=[ConsumerPartition(TOPIC, 0, offset)], asynchronous=False)
        except KafkaException:
            return False  # the coordinator is just being elected
        return True

    eventually(done)
    consumer.close()


def committed(group: dict[str, Any]) -> int:
    consumer = Consumer(group)
    (found,) = consumer.committed([ConsumerPartition(TOPIC, 0)], timeout=30)
    consumer.close()
    return int(found.offset)
