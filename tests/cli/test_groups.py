"""Groups from the command line: who they are, how far they have come, and where they go on."""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer

from ottla.cli import faults
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin
from ottla.model import TopicPartition
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, environment
from tests.cli.test_completion import offered, offers_in_the_end

TWO_KEPT = pytest.mark.ottla_topic(partitions=2, configs={"retention.ms": "-1"})
FIRST_MS = 1_700_000_000_000
SECONDS_MAX = 60.0

_numbers = itertools.count()


@pytest.fixture
def group() -> str:
    """The name of a group that no other test has."""
    return f"billing-{next(_numbers)}"


@pytest.fixture
def filled(ottla_broker: InProcessBroker, topic: str) -> str:
    """Ten records in partition 0, a second apart, and four in partition 1."""
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "log_level": 0})
    for partition, count in ((0, 10), (1, 4)):
        for number in range(count):
            producer.produce(topic, f"{partition}:{number}", partition=partition, timestamp=FIRST_MS + number * 1000)
    assert producer.flush(30) == 0
    return topic


@contextmanager
def member(broker: InProcessBroker, group: str, topic: str, **settings: str) -> Iterator[Consumer]:
    """A consumer that has its partitions; it sends heartbeats as long as it is in the group."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer(
        # What librdkafka has to say would stand among what the command says.
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0, **named}
    )
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS_MAX
        while not consumer.assignment():
            assert time.monotonic() < deadline, "the group did not settle"
            consumer.poll(0.02)
        yield consumer
    finally:
        consumer.close()


def commit(broker: InProcessBroker, group: str, topic: str, *offsets: int | None) -> None:
    """By partition."""
    wanted = {TopicPartition(topic, at): offset for at, offset in enumerate(offsets) if offset is not None}
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_group_offsets(group, wanted)


def committed(broker: InProcessBroker, group: str, topic: str) -> list[int | None]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        found = admin.list_group_offsets(group)
    return [found[tp].offset if (tp := TopicPartition(topic, at)) in found else None for at in range(2)]


def described(ottla: Command, *words: str) -> Any:
    ran = ottla("group", "describe", *words, "-o", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# list


@TWO_KEPT
def test_list_by_state_and_type(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    commit(ottla_broker, f"{group}-empty", filled, 1)
    newer = {"group_protocol": "consumer"}
    with member(ottla_broker, group, filled), member(ottla_broker, f"{group}-new", filled, **newer):
        rows = {row["group"]: row for row in json.loads(ottla("group", "list", "-o", "json").out)}
        assert rows[group] == {"group": group, "state": "Stable", "type": "classic", "protocol": "consumer"}
        assert rows[f"{group}-empty"]["state"] == "Empty"
        assert rows[f"{group}-empty"]["protocol"] is None
        assert rows[f"{group}-new"]["type"] == "consumer"

        def listed(*words: str) -> set[str]:
            names = {row["group"] for row in json.loads(ottla("group", "list", *words, "-o", "json").out)}
            return {name for name in names if name == group or name.startswith(f"{group}-")}

        assert listed("--state", "stable,EMPTY", "--type", "Classic") == {group, f"{group}-empty"}
        assert listed("--state", "empty") == {f"{group}-empty"}
        assert listed("--type", "consumer") == {f"{group}-new"}
        assert listed("--state", "--type") == {group, f"{group}-empty", f"{group}-new"}
        table = ottla("group", "list").lines
        assert table[0].split() == ["GROUP", "STATE", "TYPE", "PROTOCOL"]
    ran = ottla("group", "list", "--state", "Sleepy")
    assert ran.code == faults.USAGE
    assert "there is no Sleepy; known are Empty," in ran.err


# describe


@TWO_KEPT
def test_describe_says_everything(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    commit(ottla_broker, group, filled, 7)
    with member(ottla_broker, group, filled, client_id="me", group_instance_id="fixed"):
        (told,) = described(ottla, group)
        (one,) = told["members"]
        assert (told["group"], told["state"], told["type"], told["assignor"]) == (group, "Stable", "classic", "range")
        assert told["coordinator"]["port"] == ottla_broker.port
        assert told["lag"] == 3
        assert (one["client"], one["instance"], one["topics"]) == ("me", "fixed", [filled])
        assert one["assignment"] == [{"topic": filled, "partition": number} for number in range(2)]
        assert [
            (row["partition"], row["current"], row["end"], row["lag"], row["member"]) for row in told["partitions"]
        ] == [(0, 7, 10, 3, one["member"]), (1, None, 4, None, one["member"])]
        head, columns, first, second = ottla("group", "describe", "--group", group).lines
        at = f"{told['coordinator']['id']} ({ottla_broker.bootstrap})"
        assert head == f"{group}  Stable  classic, range  coordinator {at}  1 member  lag 3"
        assert columns.split() == ["TOPIC", "PARTITION", "CURRENT", "END", "LAG", "MEMBER", "HOST", "CLIENT"]
        assert first.split()[:5] == [filled, "0", "7", "10", "3"]
        assert second.split()[:5] == [filled, "1", "-", "4", "-"]
        members = ottla("group", "describe", group, "--members", "--verbose").lines
        assert members[1].split() == ["MEMBER", "HOST", "CLIENT", "PARTITIONS", "INSTANCE", "ASSIGNMENT"]
        assert members[2].split()[-4:] == ["me", "2", "fixed", f"{filled}:0,1"]
        state = ottla("group", "describe", group, "--state").lines
        assert state[0].split() == ["GROUP", "STATE", "TYPE", "ASSIGNOR", "COORDINATOR", "MEMBERS", "LAG"]
        assert state[1].split()[0] == group
        verbose = ottla("group", "describe", group, "--offsets", "--verbose").lines
        assert verbose[1].split()[-3:] == ["EPOCH", "METADATA", "INSTANCE"]


@TWO_KEPT
def test_describe_a_newer_group(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    with member(ottla_broker, group, filled, group_protocol="consumer"):
        (told,) = described(ottla, group)
        (one,) = told["members"]
        assert (told["type"], told["assignor"], told["epoch"]) == ("consumer", "uniform", told["assignment_epoch"])
        assert one["target"] == [{"topic": filled, "partition": number} for number in range(2)]
        members = ottla("group", "describe", group, "--members", "--verbose").lines
        assert members[1].split()[-3:] == ["EPOCH", "UPGRADED", "TARGET"]
        assert members[2].split()[-1] == f"{filled}:0,1"


@TWO_KEPT
def test_describe_a_group_that_nobody_is_in(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str
) -> None:
    commit(ottla_broker, group, filled, 10, 1)
    lines = ottla("group", "describe", group).lines
    assert "no members  lag 3" in lines[0]
    assert lines[1].split() == ["TOPIC", "PARTITION", "CURRENT", "END", "LAG"]
    assert ottla("group", "describe", group, "--members").lines[1] == "it has no members now"
    with Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        admin.delete_group_offsets(group, [TopicPartition(filled, 0), TopicPartition(filled, 1)])
    with Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        try:
            admin.describe_group(group)
        except KafkaError:
            return  # a group of offsets alone may end with them
    assert ottla("group", "describe", group).lines[1].startswith("it has committed nothing")


@TWO_KEPT
def test_describe_several_and_all(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    names = [f"{group}-{letter}" for letter in "ab"]
    for name in names:
        commit(ottla_broker, name, filled, 1)
    told = described(ottla, names[0], "--group", names[1])
    assert [one["group"] for one in told] == names
    assert set(names) <= {one["group"] for one in described(ottla, "--all-groups")}
    assert yaml.safe_load(ottla("group", "describe", *names, "-o", "yaml").out) == told
    assert ottla("group", "describe", *names).lines.count("") == 1


def test_groups_that_are_not_there(ottla: Command, group: str) -> None:
    for words in (("describe",), ("delete", "--yes"), ("delete", "--delete-offsets", "--topic", "t")):
        ran = ottla("group", words[0], group, *words[1:])
        assert (ran.code, ran.err) == (
            faults.NOT_FOUND,
            f"ottla: {group}: there is no such group; `ottla group list` names the groups\n",
        )
    ran = ottla("group", "describe", group, f"{group}-too")
    assert ran.code == faults.NOT_FOUND
    assert ran.err.startswith("ottla: 2 of 2 failed: ")
    assert ottla("group", "delete", group, "--if-exists").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["describe"], "a group is missing"),
        (["describe", "g", "--all-groups"], "name groups, or give --all-groups"),
        (["describe", "g", "--members", "--state"], "not allowed with"),
        (["describe", "g", "--interval", "0"], "between 0.01 and 3600"),
        (["describe", ""], "not empty"),
        (["reset", "g", "--topic", "t"], "say where to: give one of --to-earliest"),
        (["reset", "g", "--topic", "t", "--to-earliest", "--to-latest"], "--to-earliest and --to-latest exclude"),
        (["reset", "g", "--to-earliest"], "say in which partitions"),
        (["reset", "g", "--to-earliest", "--topic", "t", "--all-topics"], "say in which partitions"),
        (["reset", "g", "--to-earliest", "--topic", "t:x"], "neither TOPIC nor TOPIC:N,N"),
        (["reset", "g", "--to-earliest", "--topic", "t:99999999999"], "neither TOPIC nor TOPIC:N,N"),
        (["reset", "g", "--to-offset", "-1", "--topic", "t"], "is not between 0"),
        (["reset", "g", "--to-datetime", "soon", "--topic", "t"], "'soon' is not a time"),
        (["reset", "g", "--by-duration", "soon", "--topic", "t"], "'soon' is no duration"),
        (["reset", "g", "--to-latest", "--topic", "t", "--yes", "--dry-run"], "give --dry-run, or --yes"),
        (["reset", "g", "--to-latest", "--topic", "t", "--export", "-o", "json"], "--export prints CSV"),
        (["delete", "g", "--topic", "t"], "--topic belongs to --delete-offsets"),
        (["delete", "g", "--delete-offsets"], "say in which topics"),
    ],
)
def test_what_cannot_be_meant(ottla: Command, words: list[str], said: str) -> None:
    ran = ottla("group", *words)
    assert (ran.code, ran.err.count("\n")) == (faults.USAGE, 1)
    assert said in ran.err


def test_watch_shows_it_again_until_it_is_interrupted(ottla_broker: InProcessBroker, topic: str, group: str) -> None:
    commit(ottla_broker, group, topic, 0)
    words = ["group", "describe", group, "--watch", "--interval", "0.05", "-o", "json"]
    command = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        env=environment(OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    with command:
        for lag in (0, 1):
            while json.loads(command.stdout.readline())[0]["lag"] != lag:
                pass
            if lag == 0:
                producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "log_level": 0})
                producer.produce(topic, "one", partition=0)
                assert producer.flush(30) == 0
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == faults.INTERRUPTED


# reset


@TWO_KEPT
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to-earliest"], [0, 0]),
        (["--to-latest"], [10, 4]),
        (["--to-current"], [5, 4]),
        (["--to-offset", "6"], [6, 4]),
        (["--to-datetime", f"{FIRST_MS + 3000}"], [3, 3]),
        (["--to-datetime", "2023-11-14T22:13:25.000"], [5, 4]),
        (["--to-datetime", "2023-11-15T00:13:25+02:00"], [5, 4]),
        (["--by-duration", "P1D"], [10, 4]),
        (["--by-duration", "9000d"], [0, 0]),
    ],
)
def test_where_to(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str, words: list[str], expected: list[int]
) -> None:
    commit(ottla_broker, group, filled, 5)
    ran = ottla("group", "reset", group, "--topic", filled, *words)
    assert (ran.code, ran.err) == (faults.NOT_CONFIRMED, "ottla: nothing was done; add --yes to do this\n")
    assert committed(ottla_broker, group, filled) == [5, None]
    ran = ottla("group", "reset", "--group", group, "--topic", filled, *words, "--dry-run", "-o", "json")
    assert ran.code == 0
    assert [(row["current"], row["new"]) for row in json.loads(ran.out)] == [(5, expected[0]), (None, expected[1])]
    assert committed(ottla_broker, group, filled) == [5, None]
    assert ottla("group", "reset", group, "--topic", filled, *words, "--yes").lines[-1] == "done"
    assert committed(ottla_broker, group, filled) == expected


@TWO_KEPT
def test_shifting(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    commit(ottla_broker, group, filled, 5)
    reset = ("group", "reset", group, "--execute", "--shift-by")
    assert ottla(*reset, "-2", "--topic", f"{filled}:0").code == 0
    assert committed(ottla_broker, group, filled) == [3, None]
    assert ottla(*reset, "4", "--all-topics").code == 0
    assert committed(ottla_broker, group, filled) == [7, None]
    ran = ottla(*reset, "100", "--all-topics")
    assert "107 is not there: the end is 10" in ran.out
    ran = ottla(*reset, "-100", "--all-topics")
    assert "-90 is not there: the first is 0" in ran.out
    ran = ottla(*reset, "1", "--topic", filled)
    assert ran.code == faults.FAILED
    assert "there is nothing to shift" in ran.err
    assert committed(ottla_broker, group, filled) == [0, None]


@TWO_KEPT
def test_partitions_can_be_named(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    reset = ("group", "reset", group, "--to-latest", "--yes", "--topic")
    assert ottla(*reset, f"{filled}:1").code == 0
    assert committed(ottla_broker, group, filled) == [None, 4]
    assert ottla(*reset, f"{filled}:0,1").code == 0
    assert committed(ottla_broker, group, filled) == [10, 4]
    ran = ottla(*reset, f"{filled}:0,7")
    assert (ran.code, ran.err) == (faults.NOT_FOUND, f"ottla: {filled} has 2 partitions, and no 7\n")
    assert ottla(*reset, f"{filled}-none").code == faults.NOT_FOUND


@TWO_KEPT
def test_what_was_exported_can_be_brought_back(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str, tmp_path: Path
) -> None:
    commit(ottla_broker, group, filled, 5, 2)
    file = tmp_path / "positions.csv"
    ran = ottla("group", "reset", group, "--all-topics", "--to-current", "--export")
    assert (ran.code, ran.out) == (0, f"{filled},0,5\n{filled},1,2\n")
    file.write_text(ran.out)
    assert ottla("group", "reset", group, "--all-topics", "--to-earliest", "--yes").code == 0
    assert ottla("group", "reset", group, "--from-file", str(file), "--yes").code == 0
    assert committed(ottla_broker, group, filled) == [5, 2]

    commit(ottla_broker, f"{group}-two", filled, 1)
    both = ("--group", group, "--group", f"{group}-two")
    ran = ottla("group", "reset", *both, "--all-topics", "--to-current", "--export")
    assert ran.lines == [f"{group},{filled},0,5", f"{group},{filled},1,2", f"{group}-two,{filled},0,1"]
    file.write_text(ran.out)
    assert ottla("group", "reset", *both, "--topic", filled, "--to-latest", "--yes", "--export").lines == [
        f"{name},{filled},{partition},{end}" for name in (group, f"{group}-two") for partition, end in ((0, 10), (1, 4))
    ]
    assert ottla("group", "reset", *both, "--from-file", str(file), "--yes").code == 0
    assert committed(ottla_broker, group, filled) == [5, 2]
    assert committed(ottla_broker, f"{group}-two", filled) == [1, 4]


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ("", faults.USAGE, "is empty"),
        ("t,0\n", faults.USAGE, "line 1: it should be topic,partition,offset or"),
        ("t,0,1\nt,x,1\n", faults.USAGE, "line 2: partition and offset are whole numbers"),
        ("t,0,-1\n", faults.USAGE, "whole numbers"),
        ("t,0,9223372036854775808\n", faults.USAGE, "whole numbers"),
        ("t,0,1\ng,t,0,1\n", faults.USAGE, "mixes rows"),
        ("other,t,0,1\n", faults.FAILED, "the file has no row for the group"),
        ("\x00\x01", faults.USAGE, "line 1"),
        ("none-such-topic,0,1\n", faults.FAILED, "none-such-topic-0: not there, or without a leader"),
    ],
)
def test_files_that_will_not_do(ottla: Command, group: str, tmp_path: Path, content: str, code: int, said: str) -> None:
    file = tmp_path / "positions.csv"
    file.write_text(content)
    ran = ottla("group", "reset", group, "--from-file", str(file), "--yes")
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert said in ran.err


def test_a_file_without_groups_is_for_one(ottla: Command, group: str, tmp_path: Path) -> None:
    file = tmp_path / "positions.csv"
    file.write_text("t,0,1\n")
    ran = ottla("group", "reset", group, f"{group}-b", "--from-file", str(file))
    assert ran.code == faults.USAGE
    assert "name the one that it is for" in ran.err
    file.write_bytes(b"\xff\xfe,0,1\n")
    assert "not a CSV file" in ottla("group", "reset", group, "--from-file", str(file)).err
    assert ottla("group", "reset", group, "--from-file", str(tmp_path / "none")).code == faults.NOT_FOUND


@TWO_KEPT
def test_an_active_group_is_left_alone(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    commit(ottla_broker, group, filled, 5)
    with member(ottla_broker, group, filled, client_id="worker"):
        for verb in (("reset", group, "--topic", filled, "--to-latest"), ("delete", group)):
            for more in ((), ("--yes",)):
                ran = ottla("group", *verb, *more)
                assert (ran.code, ran.out) == (faults.FAILED, "")
                assert f"{group} is Stable, with worker on 127.0.0.1; stop them" in ran.err
        ran = ottla("group", "delete", group, "--delete-offsets", "--topic", filled, "--yes")
        assert ran.code == faults.FAILED
        assert "members subscribe to the topic; stop them first" in ran.err
    assert committed(ottla_broker, group, filled) == [5, None]
    assert ottla("group", "reset", group, "--topic", filled, "--to-latest", "--yes").code == 0


def test_nothing_to_move(ottla: Command, group: str) -> None:
    ran = ottla("group", "reset", group, "--all-topics", "--to-latest", "--yes")
    assert (ran.code, ran.out) == (0, "there is nothing to move: no position was committed\n")
    assert ottla("group", "reset", group, "--all-topics", "--to-latest", "-o", "json").out == "[]\n"


# delete


@TWO_KEPT
def test_delete_groups_and_positions(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    names = [f"{group}-a", f"{group}-b"]
    for name in names:
        commit(ottla_broker, name, filled, 5, 2)
    words = ("group", "delete", names[0], "--delete-offsets", "--topic", f"{filled}:1")
    assert ottla(*words).code == faults.NOT_CONFIRMED
    assert committed(ottla_broker, names[0], filled) == [5, 2]
    ran = ottla(*words, "--yes")
    assert (ran.code, ran.lines[-1]) == (0, "done")
    assert committed(ottla_broker, names[0], filled) == [5, None]
    assert ottla(*words).lines[0] == "nothing was committed there:"
    ran = ottla("group", "delete", *names, "-o", "json")
    assert ran.code == faults.NOT_CONFIRMED
    assert json.loads(ran.out) == [
        {"group": names[0], "state": "Empty", "positions": 1},
        {"group": names[1], "state": "Empty", "positions": 2},
    ]
    ran = ottla("group", "delete", *names, f"{group}-none", "--if-exists", "--yes")
    assert (ran.code, ran.lines[-1]) == (0, f"deleted {names[0]}, {names[1]}")
    listed = {row["group"] for row in json.loads(ottla("group", "list", "-o", "json").out)}
    assert not listed & set(names)


# consume --group


@TWO_KEPT
def test_consume_as_a_member_goes_on_where_it_was(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str
) -> None:
    consume = ("consume", filled, "--group", group, "--from-beginning", "-e")
    first = ottla(*consume, "-c", "5")
    assert (first.code, len(first.lines), first.err) == (0, 5, "")
    assert sum(offset or 0 for offset in committed(ottla_broker, group, filled)) == 5
    second = ottla(*consume)
    expected = [f"0:{n}" for n in range(10)] + [f"1:{n}" for n in range(4)]
    assert sorted(first.lines + second.lines) == expected
    assert committed(ottla_broker, group, filled) == [10, 4]
    assert ottla(*consume).out == ""
    commit(ottla_broker, group, filled, 0, 0)
    ran = ottla(*consume, "--where", "offset == 2", "-f", "%p:%o\\n")
    assert sorted(ran.lines) == ["0:2", "1:2"]
    assert committed(ottla_broker, group, filled) == [10, 4]


@TWO_KEPT
def test_a_new_group_begins_at_the_end(ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str) -> None:
    ran = ottla("consume", filled, "--consumer-property", f"group.id={group}", "-e")
    assert (ran.code, ran.out) == (0, "")
    # And stays there: it is not new any more.
    assert committed(ottla_broker, group, filled) == [10, 4]
    ran = ottla("consume", filled, "--group", group, "--from-beginning", "--timeout-ms", "200")
    assert (ran.code, ran.lines) == (0, [])


@TWO_KEPT
def test_a_member_that_is_interrupted_commits_and_leaves(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str
) -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "ottla", "consume", filled, "--group", group, "--from-beginning"],
        env=environment(OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    with command:
        for _ in range(14):
            assert command.stdout.readline()
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == faults.INTERRUPTED
    (told,) = described(ottla, group)
    assert (told["state"], told["lag"]) == ("Empty", 0)


@TWO_KEPT
def test_partitions_that_go_to_another_member_go_with_what_was_printed(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str
) -> None:
    words = ["--group", group, "--from-beginning", "--consumer-property", "heartbeat.interval.ms=50"]
    command = subprocess.Popen(
        [sys.executable, "-m", "ottla", "consume", filled, *words],
        env=environment(OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    assert command.stderr is not None
    with command, ExitStack() as ended:
        ended.callback(command.kill)  # whatever fails: it would be waited for
        for _ in range(14):
            assert command.stdout.readline()
        ran = ottla("consume", filled, *words, "-e")
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == faults.INTERRUPTED
        assert (command.stdout.read(), command.stderr.read()) == (b"", b"")
    assert committed(ottla_broker, group, filled) == [10, 4]


@TWO_KEPT
def test_a_broken_pipe_commits_nothing_that_was_not_read(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "consume", filled, "--group", group, "--from-beginning"],
        env=environment(OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap),
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (faults.BROKEN_PIPE, b"")
    assert committed(ottla_broker, group, filled) == [None, None]
    assert described(ottla, group)[0]["members"] == []


def test_a_group_and_an_offset_exclude_each_other(ottla: Command) -> None:
    for words in (("--offset", "5"), ("-p", "0")):
        ran = ottla("consume", "t", "--group", "g", *words)
        assert ran.code == faults.USAGE
        assert "`ottla group reset` moves it" in ran.err


def test_names_of_groups_are_completed(ottla_broker: InProcessBroker, topic: str, group: str, tmp_path: Path) -> None:
    commit(ottla_broker, f"{group}-live", topic, 0)
    for typed in ("group describe", "group reset --group", "group delete other", "consume --group"):
        words = f"ottla {typed} {group}-li"
        assert offers_in_the_end(words, {f"{group}-live"}, tmp_path, ottla_broker.bootstrap)
    assert re.search("group", " ".join(offered("ottla gr", tmp_path)))


@TWO_KEPT
@pytest.mark.parametrize("how", ["end", "beginning"])
def test_a_new_group_that_is_stopped_goes_on_where_it_stopped(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str, how: str
) -> None:
    """Also where nothing has come yet: what comes while nobody reads is read by the next."""
    begun = ("--from-beginning",) if how == "beginning" else ()
    ran = ottla("consume", filled, "--group", group, *begun, "--timeout-ms", "2000")
    assert ran.code == 0, ran.err
    assert len(ran.lines) == (14 if begun else 0)
    assert committed(ottla_broker, group, filled) == [10, 4]
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "log_level": 0})
    producer.produce(filled, "meanwhile", partition=1)
    assert producer.flush(30) == 0
    assert ottla("consume", filled, "--group", group, "--timeout-ms", "2000").lines == ["meanwhile"]
    assert committed(ottla_broker, group, filled) == [10, 5]


@TWO_KEPT
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_commits_where_a_new_group_is(
    ottla_broker: InProcessBroker, filled: str, group: str, number: int
) -> None:
    command = [sys.executable, "-m", "ottla", "consume", filled, "--group", group]
    settings = ["--bootstrap-server", ottla_broker.bootstrap, "--consumer-property", "auto.commit.interval.ms=100000"]
    child = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "log_level": 0})
    assert child.stdout is not None
    try:
        while not select.select([child.stdout], [], [], 0.1)[0]:
            producer.produce(filled, "told", partition=0)
            assert producer.flush(30) == 0
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()
    assert (child.returncode, err) == (128 + number, b"")
    assert committed(ottla_broker, group, filled)[1] == 4


@TWO_KEPT
def test_a_bounded_reader_commits_no_further_than_it_has_looked(
    ottla: Command, ottla_broker: InProcessBroker, filled: str, group: str
) -> None:
    ran = ottla("consume", filled, "--group", group, "--from-beginning", "-c", "3", "-f", "%p\\n")
    assert ran.code == 0, ran.err
    read = [ran.lines.count("0"), ran.lines.count("1")]
    assert [offset or 0 for offset in committed(ottla_broker, group, filled)] == read
    rest = ottla("consume", filled, "--group", group, "-e").lines
    assert len(rest) == 11
