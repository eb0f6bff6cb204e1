"""Kafka's own command line tools, unchanged, against the broker."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools

from ottla.cli.lines import LineFault, kafka_lines
from tests.interop.broker import Broker
from tests.interop.clients import Row, eventually, read_confluent, write_confluent
from tests.interop.conftest import create_topic

# One virtual machine serves them all, so they stay together on one of the test run's processes.
pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]


def test_topic_command(kafka_tools: KafkaTools, bootstrap: str, new_name: str) -> None:
    def topics(*arguments: str) -> str:
        return kafka_tools.run("TopicCommand", "--bootstrap-server", bootstrap, *arguments).checked()

    created = topics("--create", "--topic", new_name, "--partitions", "3", "--config", "retention.ms=100000000")
    assert f"Created topic {new_name}" in created
    eventually(lambda: new_name in topics("--list").split())
    described = topics("--describe", "--topic", new_name)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=100000000" in described
    assert described.count("Leader: ") == 3
    topics("--alter", "--topic", new_name, "--partitions", "5")
    eventually(lambda: "PartitionCount: 5" in topics("--describe", "--topic", new_name))
    for filtered in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert new_name not in topics("--describe", filtered)
    topics("--delete", "--topic", new_name)
    eventually(lambda: new_name not in topics("--list").split())


def test_topic_command_says_what_kafka_refuses(kafka_tools: KafkaTools, bootstrap: str, topic: str) -> None:
    arguments = ["--bootstrap-server", bootstrap, "--create", "--topic"]
    again = kafka_tools.run("TopicCommand", *arguments, topic)
    assert again.exit_code == 1
    assert f"Topic '{topic}' already exists." in again.out
    wrong = kafka_tools.run("TopicCommand", *arguments, f"{topic}-b", "--config", "min.insync.replicas=x")
    assert wrong.exit_code == 1
    assert "min.insync.replicas" in wrong.out + wrong.err


def test_config_command(kafka_tools: KafkaTools, bootstrap: str, topic: str) -> None:
    def configs(*arguments: str) -> str:
        server = ("--bootstrap-server", bootstrap)
        return kafka_tools.run("kafka.admin.ConfigCommand", *server, *arguments).checked()

    entity = ("--entity-type", "topics", "--entity-name", topic)
    configs(*entity, "--alter", "--add-config", "max.message.bytes=5000000,cleanup.policy=[compact,delete]")
    eventually(lambda: "max.message.bytes=5000000" in configs(*entity, "--describe"))
    assert "cleanup.policy=compact,delete" in configs(*entity, "--describe")
    everything = configs(*entity, "--describe", "--all")
    assert "segment.bytes=1073741824" in everything
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in everything
    configs(*entity, "--alter", "--delete-config", "max.message.bytes")
    eventually(lambda: "max.message.bytes=5000000" not in configs(*entity, "--describe"))

    brokers = ("--entity-type", "brokers", "--entity-default")
    configs(*brokers, "--alter", "--add-config", "log.cleaner.threads=2")
    eventually(lambda: "log.cleaner.threads=2" in configs(*brokers, "--describe"))
    configs(*brokers, "--alter", "--delete-config", "log.cleaner.threads")


@pytest.mark.parametrize("marker", [None, "", "NIL"])
def test_lines_are_what_they_are_to_the_console_producer(
    kafka_tools: KafkaTools, bootstrap: str, topic: str, marker: str | None
) -> None:
    lines = [b"a:1\tk\tv", b"a:\tk\t", b"a:NIL\tNIL\tNIL", b"a:1,b:,,\t\tNIL", b",\tk\tv"]
    refused = [b"\tk\tv", b"a\tk\tv", b"a:1,,b:\tk\tv"]
    lines.append({None: b"a:\t\t", "": refused.pop(0), "NIL": b"NIL\tk\tv"}[marker])
    properties = {"parse.key": "true", "parse.headers": "true", **({} if marker is None else {"null.marker": marker})}
    named = [word for name, value in properties.items() for word in ("--reader-property", f"{name}={value}")]
    words = ("--bootstrap-server", bootstrap, "--topic", topic, *named)
    said = b"".join(line + b"\n" for line in lines)
    kafka_tools.run("ConsoleProducer", *words, stdin=said).checked()
    parse = kafka_lines({name: value.encode() for name, value in properties.items()})
    for line in refused:
        assert kafka_tools.run("ConsoleProducer", *words, stdin=line + b"\n").exit_code == 1
        with pytest.raises(LineFault, match="has no ':'"):
            parse(line)
    ours = [(one.key, one.value, tuple(one.headers)) for one in map(parse, lines)]
    stored = [found.row for found in read_confluent(bootstrap, topic, len(lines))]
    assert [(row.key, row.value, row.headers) for row in stored] == ours


def test_console_producer_and_consumer(kafka_tools: KafkaTools, bootstrap: str, topic: str) -> None:
    lines = b"".join(b"h:%d\tk%d\tvalue %d\n" % (n, n, n) for n in range(50))
    properties = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
    kafka_tools.run(
        "ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", topic, *properties, stdin=lines
    ).checked()
    stored = [found.row for found in read_confluent(bootstrap, topic, 50)]
    assert [(row.key, row.value, row.headers) for row in stored] == [
        (b"k%d" % n, b"value %d" % n, (("h", b"%d" % n),)) for n in range(50)
    ]

    position = ["--topic", topic, "--partition", "0", "--offset", "10", "--max-messages", "40", "--timeout-ms", "60000"]
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "print.offset=true"]
    printed = kafka_tools.run("consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, *position, *shown).checked()
    assert printed.splitlines() == [f"Offset:{n}\tk{n}\tvalue {n}" for n in range(10, 50)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_javas_producer_and_consumer_with_each_codec(
    kafka_tools: KafkaTools, bootstrap: str, topic: str, codec: str
) -> None:
    lines = b"".join(b"value %d %s\n" % (n, b"again " * 20) for n in range(100))
    producer = ["ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", topic]
    kafka_tools.run(*producer, "--compression-codec", codec, stdin=lines).checked()
    write_confluent(bootstrap, topic, [Row(None, line, (), 1) for line in lines.splitlines()], codec)
    expected = lines.decode().splitlines() * 2
    assert [(found.row.value or b"").decode() for found in read_confluent(bootstrap, topic, 200)] == expected
    position = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "200"]
    consumer = ["consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, *position, "--timeout-ms", "60000"]
    assert kafka_tools.run(*consumer).checked().splitlines() == expected


def test_get_offset_shell(kafka_tools: KafkaTools, bootstrap: str, admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, partitions=2)
    now = int(time.time() * 1000)
    for n in range(4):
        write_confluent(bootstrap, new_name, [Row(None, b"v", (), now + 1000 * n)], "none")

    def offsets(moment: str) -> list[str]:
        server = ("--bootstrap-server", bootstrap)
        return kafka_tools.run("GetOffsetShell", *server, "--topic", new_name, "--time", moment).checked().split()

    assert offsets("-1") == [f"{new_name}:0:4", f"{new_name}:1:0"]
    assert offsets("-2") == [f"{new_name}:0:0", f"{new_name}:1:0"]
    assert offsets("max-timestamp")[0] == f"{new_name}:0:3"
    assert offsets(str(now + 1500))[0] == f"{new_name}:0:2"


def test_delete_records_command(kafka_tools: KafkaTools, bootstrap: str, topic: str, tmp_path: Path) -> None:
    write_confluent(bootstrap, topic, [Row(None, b"v", (), 1)] * 10, "none")
    asked = tmp_path / "offsets.json"
    asked.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 7}]}))
    server = ("--bootstrap-server", bootstrap)
    said = kafka_tools.run("DeleteRecordsCommand", *server, "--offset-json-file", str(asked)).checked()
    assert f"partition: {topic}-0\tlow_watermark: 7" in said


def test_log_dirs_command(kafka_tools: KafkaTools, broker: Broker, topic: str) -> None:
    write_confluent(broker.bootstrap, topic, [Row(None, b"v" * 1000, (), 1)] * 10, "none")
    server = ("--bootstrap-server", broker.bootstrap)
    said = kafka_tools.run("LogDirsCommand", *server, "--describe", "--topic-list", topic).checked()
    answer = json.loads(said.splitlines()[-1])
    folders = answer["brokers"][0]["logDirs"]
    sizes = {
        replica["partition"]: (replica["size"], replica["offsetLag"], replica["isFuture"])
        for folder in folders
        for replica in folder["partitions"]
    }
    written = sum(path.stat().st_size for path in broker.partition_folder(topic).glob("*.log"))
    assert sizes == {f"{topic}-0": (written, 0, False)}
    assert Path(folders[0]["logDir"]) == broker.partition_folder(topic).parent
    assert folders[0]["error"] is None


def test_broker_api_versions_command(kafka_tools: KafkaTools, bootstrap: str) -> None:
    said = kafka_tools.run("BrokerApiVersionsCommand", "--bootstrap-server", bootstrap).checked()
    assert said.startswith(f"{bootstrap} (id: ")
    for advertised in (
        "Produce(0): 0 to 13 [usable: 13]",
        "Fetch(1): 4 to 18 [usable: 18]",
        "ListOffsets(2): 1 to 11 [usable: 11]",
        "Metadata(3): 0 to 13 [usable: 13]",
        "ApiVersions(18): 0 to 4 [usable: 4]",
        "CreateTopics(19): 2 to 7 [usable: 7]",
        "InitProducerId(22): 0 to 5 [usable: 5]",
        "DescribeTopicPartitions(75): 0 [usable: 0]",
    ):
        assert advertised in said


def test_producer_performance(kafka_tools: KafkaTools, bootstrap: str, topic: str) -> None:
    work = ["--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    said = kafka_tools.run("ProducerPerformance", "--bootstrap-server", bootstrap, *work).checked()
    assert "20000 records sent" in said
    counted = ["GetOffsetShell", "--bootstrap-server", bootstrap, "--topic", topic]
    assert kafka_tools.run(*counted).checked().split() == [f"{topic}:0:20000"]
