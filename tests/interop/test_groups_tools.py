"""Kafka's ConsumerGroupCommand describes, resets and deletes groups; DumpLogSegments reads the offsets topic."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools, ToolResult

from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, Row, confluent_consumer, write_confluent
from tests.interop.conftest import GROUP_PROPERTIES, Join, create_topic, new_broker
from tests.interop.group_members import ConfluentMember, wait_for
from tests.interop.group_writing import produce

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

COMPLAINTS = ("mismatch", "corrupt", "exception", "invalid", "fatal", "unknown", "error")
MINUTE_MS = 60_000


class GroupCommand:
    def __init__(self, tools: KafkaTools, bootstrap: str) -> None:
        self._tools = tools
        self._bootstrap = bootstrap

    def run(self, *arguments: str) -> ToolResult:
        server = ("--bootstrap-server", self._bootstrap)
        return self._tools.run("consumer.group.ConsumerGroupCommand", *server, *arguments)

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """The table that the tool prints, by its headings."""
        lines = [line.split() for line in self.run(*arguments).checked().splitlines() if line.strip()]
        start = next(number for number, words in enumerate(lines) if "GROUP" in words)
        return [dict(zip(lines[start], words, strict=False)) for words in lines[start + 1 :]]


@pytest.fixture
def groups(kafka_tools: KafkaTools, group_broker: Broker) -> GroupCommand:
    return GroupCommand(kafka_tools, group_broker.bootstrap)


def commit(bootstrap: str, group: str, topic: str, *offsets: int) -> None:
    """From outside of the group, as a consumer that assigns its partitions itself."""
    consumer = confluent_consumer(bootstrap, **{"group.id": group})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described(
    groups: GroupCommand, join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, protocol: str
) -> None:
    create_topic(group_admin, new_name, partitions=2)
    produce(group_broker.bootstrap, new_name, 2, [b"%d" % n for n in range(10)])
    settings = {} if protocol == "classic" else {"group_protocol": "consumer"}
    settings["enable_auto_commit"] = "false"
    members = [join("confluent", f"member-{number}", new_name, new_name, **settings) for number in range(2)]
    wait_for(lambda: all(len(member.assigned) == 1 for member in members), members)

    assert new_name in groups.run("--list").checked().split()
    listed = groups.rows("--list", "--state", "Stable", "--type", protocol)
    assert {"GROUP": new_name, "TYPE": protocol.capitalize(), "STATE": "Stable"} in listed
    by_id = {member.member_id: member for member in members if isinstance(member, ConfluentMember)}
    described = groups.rows("--describe", "--group", new_name)
    assert {(row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in described} == {
        ("0", "-", "5", "-"),
        ("1", "-", "5", "-"),
    }
    for row in described:
        assert by_id[row["CONSUMER-ID"]].assigned == {(new_name, int(row["PARTITION"]))}
        assert row["HOST"] == "/127.0.0.1"
        assert row["CLIENT-ID"] == by_id[row["CONSUMER-ID"]].name
    shown = groups.rows("--describe", "--group", new_name, "--members", "--verbose")
    assert {(row["CONSUMER-ID"], row["#PARTITIONS"]) for row in shown} == {(name, "1") for name in by_id}
    (state,) = groups.rows("--describe", "--group", new_name, "--state")
    strategy = "range" if protocol == "classic" else "uniform"
    assert (state["STATE"], state["#MEMBERS"], state["ASSIGNMENT-STRATEGY"]) == ("Stable", "2", strategy)
    assert group_broker.bootstrap in state.values()

    refused = groups.run("--delete", "--group", new_name)
    assert "is not empty" in refused.out + refused.err
    for member in members:
        join.leave(member)
    (state,) = groups.rows("--describe", "--group", new_name, "--state", "--verbose")
    assert "Empty" in state.values()
    assert "successful" in groups.run("--delete", "--group", new_name).checked()
    assert new_name not in groups.run("--list").checked().split()


def test_offsets_are_reset(
    groups: GroupCommand, group_broker: Broker, group_admin: AdminClient, new_name: str, tmp_path: Path
) -> None:
    create_topic(group_admin, new_name, partitions=2)
    # Ten minutes lie between two of them: the tool may be asked for the last time some minutes later.
    first_ms = int(time.time() * 1000) - 100 * MINUTE_MS
    rows = [Row(None, b"v", (), first_ms + 10 * MINUTE_MS * number) for number in range(10)]
    write_confluent(group_broker.bootstrap, new_name, rows, "none")
    commit(group_broker.bootstrap, new_name, new_name, 3, 0)
    partition = ("--group", new_name, "--topic", f"{new_name}:0")

    def offset() -> str:
        asked = ConsumerGroupTopicPartitions(new_name, [TopicPartition(new_name, 0)])
        (told,) = group_admin.list_consumer_group_offsets([asked])[new_name].result(SECONDS_MAX).topic_partitions
        return str(told.offset)

    def reset(*scope: str) -> str:
        (done,) = groups.rows("--reset-offsets", *partition, *scope, "--execute")
        assert offset() == done["NEW-OFFSET"]
        return done["NEW-OFFSET"]

    (planned,) = groups.rows("--reset-offsets", *partition, "--to-latest", "--dry-run")
    assert (planned["NEW-OFFSET"], offset()) == ("10", "3")
    assert reset("--to-latest") == "10"
    assert reset("--to-earliest") == "0"
    assert reset("--to-offset", "7") == "7"
    assert reset("--shift-by", "-2") == "5"
    assert reset("--shift-by", "100") == "10"
    then = time.strftime("%Y-%m-%dT%H:%M:%S.000", time.gmtime((first_ms + 25 * MINUTE_MS) / 1000))
    assert reset("--to-datetime", then) == "3"
    assert reset("--by-duration", "PT49M") == "6"
    assert reset("--to-current") == "6"
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{new_name},0,2\n")
    (row,) = groups.rows("--reset-offsets", "--group", new_name, "--from-file", str(plan), "--execute")
    assert (row["NEW-OFFSET"], offset()) == ("2", "2")
    described = {row["PARTITION"]: row["CURRENT-OFFSET"] for row in groups.rows("--describe", "--group", new_name)}
    assert described == {"0": "2", "1": "0"}


def test_offsets_are_not_reset_under_a_member(
    groups: GroupCommand, join: Join, group_admin: AdminClient, new_name: str
) -> None:
    create_topic(group_admin, new_name)
    member = join("confluent", "member", new_name, new_name)
    wait_for(lambda: len(member.assigned) == 1, join.members)
    reset = ("--reset-offsets", "--group", new_name, "--topic", new_name, "--to-earliest", "--execute")
    refused = groups.run(*reset)
    assert "Assignments can only be reset if the group" in refused.out + refused.err
    kept = groups.run("--delete-offsets", "--group", new_name, "--topic", new_name)
    assert "subscribed to" in kept.out + kept.err


def test_offsets_are_deleted(
    groups: GroupCommand, group_broker: Broker, group_admin: AdminClient, new_name: str
) -> None:
    for suffix in ("-a", "-b"):
        create_topic(group_admin, new_name + suffix, partitions=2)
        commit(group_broker.bootstrap, new_name, new_name + suffix, 0, 0)
    said = groups.run("--delete-offsets", "--group", new_name, "--topic", f"{new_name}-a:1").checked()
    assert "Successful" in said
    left = {(row["TOPIC"], row["PARTITION"]) for row in groups.rows("--describe", "--group", new_name)}
    assert left == {(f"{new_name}-a", "0"), (f"{new_name}-b", "0"), (f"{new_name}-b", "1")}
    groups.run("--delete-offsets", "--group", new_name, "--topic", f"{new_name}-b").checked()
    left = {(row["TOPIC"], row["PARTITION"]) for row in groups.rows("--describe", "--group", new_name)}
    assert left == {(f"{new_name}-a", "0")}
    groups.run("--delete", "--group", new_name).checked()
    gone = groups.run("--describe", "--group", new_name)
    assert "GroupIdNotFoundException" in gone.out + gone.err


@pytest.fixture
def own_group_broker(tmp_path: Path, watch_server: WatchServer) -> Iterator[Broker]:
    own = new_broker(tmp_path / "own-broker", GROUP_PROPERTIES)
    with watch_server(own.server), own.server:
        yield own


def test_the_dump_tool_decodes_the_offsets_topic(own_group_broker: Broker, kafka_tools: KafkaTools) -> None:
    """Commits, a classic and a new group whose members have come and gone, deleted offsets and a deleted group."""
    bootstrap = own_group_broker.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    create_topic(admin, "dumped", partitions=2)
    commit(bootstrap, "simple", "dumped", 11, 22)
    commit(bootstrap, "doomed", "dumped", 1)
    produce(bootstrap, "dumped", 2, [b"%d" % n for n in range(6)])
    for group, settings in (("classic", {}), ("new", {"group_protocol": "consumer"})):
        member = ConfluentMember("member", bootstrap, group, ["dumped"], **settings)
        wait_for(lambda member=member: len(member.received) == 6, [member])  # type: ignore[misc]
        member.leave()
    admin.delete_consumer_groups(["doomed"])["doomed"].result(SECONDS_MAX)
    own_group_broker.server.stop()
    logs = sorted(own_group_broker.data.rglob("__consumer_offsets-*/*.log"))
    assert len(logs) == int(GROUP_PROPERTIES["offsets.topic.num.partitions"])
    files = ",".join(map(str, logs))
    said = kafka_tools.run("DumpLogSegments", "--files", files, "--offsets-decoder", "--deep-iteration").checked()
    for line in said.splitlines():
        assert not any(word in line.lower().replace("errorcode", "") for word in COMPLAINTS), line
    assert "isvalid: false" not in said
    payloads = re.findall(r"key: (\{.*?\}\}?) payload: (.*)$", said, re.MULTILINE)
    assert len(payloads) > 15
    committed = [(key, value) for key, value in payloads if '"group":"simple"' in key and '"topic":"dumped"' in key]
    assert [('"partition":0' in key, re.findall(r'"offset":(\d+)', value)) for key, value in committed] == [
        (True, ["11"]),
        (False, ["22"]),
    ]
    types = {int(found) for key, _ in payloads for found in re.findall(r'"type":"?(\d+)', key)}
    assert {1, 2, 3, 5, 6, 7, 8} <= types
    doomed = [value for key, value in payloads if '"group":"doomed"' in key]
    assert doomed[-1].strip() in {"<DELETE>", "null"} or "null" in doomed[-1]
