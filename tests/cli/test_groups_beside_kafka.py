"""`ottla group` beside Kafka's own ConsumerGroupCommand: both see the same groups, and read each other's files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tools.kafka_tools import KafkaTools

from ottla.testing import InProcessBroker
from tests.cli.conftest import Command
from tests.cli.test_groups import TWO_KEPT, commit, committed, filled, group, member

__all__ = ["filled", "group"]  # fixtures

# One virtual machine serves them all, so they stay together on one of the test run's processes.
pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]


def rows_of(table: str, *columns: str) -> list[list[str]]:
    """Of a table of Kafka's, these columns; a column without an entry is one that was left out of all rows."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    at = next(index for index, line in enumerate(lines) if "GROUP" in line)
    places = [lines[at].index(column) for column in columns]
    return sorted([line[place] for place in places] for line in lines[at + 1 :])


def fields_of(file: Path) -> list[list[str]]:
    with file.open(newline="") as opened:
        return list(csv.reader(opened))


def text(value: Any) -> str:
    return "-" if value is None else str(value)


@TWO_KEPT
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_both_describe_a_group_alike(
    ottla: Command, ottla_broker: InProcessBroker, kafka_tools: KafkaTools, filled: str, group: str, protocol: str
) -> None:
    asked = ("--bootstrap-server", ottla_broker.bootstrap, "--describe", "--group", group)
    with member(ottla_broker, group, filled, group_protocol=protocol, client_id="worker") as consumer:
        consumer.commit(offsets=[_at(filled, 0, 7)], asynchronous=False)
        kafkas = kafka_tools.run("consumer.group.ConsumerGroupCommand", *asked).checked()
        (told,) = json.loads(ottla("group", "describe", group, "-o", "json").out)
        columns = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
        ours = ("partition", "current", "end", "lag", "member", "host", "client")
        assert rows_of(kafkas, *columns) == [[text(row[name]) for name in ours] for row in told["partitions"]]
        members = kafka_tools.run("consumer.group.ConsumerGroupCommand", *asked, "--members").checked()
        assert rows_of(members, "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS") == [
            [one["member"], one["host"], one["client"], str(len(one["assignment"]))] for one in told["members"]
        ]
        state = kafka_tools.run("consumer.group.ConsumerGroupCommand", *asked, "--state").checked()
        (line,) = [line.split() for line in state.splitlines() if line.startswith(group)]
        assert line[1:] == [
            f"{told['coordinator']['host']}:{told['coordinator']['port']}",
            f"({told['coordinator']['id']})",
            told["assignor"],
            told["state"],
            str(len(told["members"])),
        ]


def _at(topic: str, partition: int, offset: int) -> Any:
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, partition, offset)


@TWO_KEPT
@pytest.mark.parametrize("count", [1, 2])
def test_each_reads_what_the_other_exported(
    ottla: Command,
    ottla_broker: InProcessBroker,
    kafka_tools: KafkaTools,
    filled: str,
    group: str,
    tmp_path: Path,
    count: int,
) -> None:
    names = [f"{group}-{number}" for number in range(count)]
    for number, name in enumerate(names):
        commit(ottla_broker, name, filled, 5 + number, 2)
    which = [word for name in names for word in ("--group", name)]
    kafka = ("consumer.group.ConsumerGroupCommand", "--bootstrap-server", ottla_broker.bootstrap, *which)
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    ours.write_text(ottla("group", "reset", *which, "--all-topics", "--to-current", "--export").out)
    reset = ("--reset-offsets", "--dry-run", "--export")
    said = kafka_tools.run(*kafka, *reset, "--all-topics", "--to-current").checked()
    theirs.write_text("".join(f"{line}\n" for line in said.splitlines() if line.count(",") == 1 + min(count, 2)))
    # Kafka puts quotes around long names and has no order; the rows are the same.
    assert sorted(fields_of(theirs)) == fields_of(ours)

    assert ottla("group", "reset", *which, "--all-topics", "--to-earliest", "--yes").code == 0
    assert ottla("group", "reset", *which, "--from-file", str(theirs), "--yes").code == 0
    assert [committed(ottla_broker, name, filled) for name in names] == [[5 + at, 2] for at in range(count)]

    assert ottla("group", "reset", *which, "--all-topics", "--to-latest", "--yes").code == 0
    kafka_tools.run(*kafka, "--reset-offsets", "--execute", "--from-file", str(ours)).checked()
    assert [committed(ottla_broker, name, filled) for name in names] == [[5 + at, 2] for at in range(count)]
