"""Groups whose members are of different clients: who holds which partition, and who reads which record."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tools.java import java_command
from tools.kafka_jars import classpath

from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX
from tests.interop.conftest import Join, create_topic
from tests.interop.group_members import STARTS, Member, partitions_of, shares, wait_for
from tests.interop.group_writing import Writing, produce
from tests.searches import some

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-groups")]

CLIENTS = [*STARTS, "java"]


def test_members_of_all_clients_share_a_group(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str
) -> None:
    """One after another comes in, then one after another goes; each record is read once, by the partition's holder."""
    count = 2 * len(CLIENTS)
    create_topic(group_admin, new_name, partitions=count)
    writing = Writing(group_broker.bootstrap, new_name, count)
    partitions = partitions_of(new_name, count)
    for number, client in enumerate(CLIENTS):
        join(client, f"member-{number}", new_name, new_name)
        wait_for(lambda: shares(join.present, partitions) and all(m.assigned for m in join.present), join.members)
        writing.write_and_wait(join.present, join.members)
    # By the range assignor: as even as can be, and contiguous in the order of the members' ids.
    assert [sorted(number for _, number in member.assigned) for member in join.present] == [
        [2 * n, 2 * n + 1] for n in range(len(CLIENTS))
    ]
    for member in join.present[:-1]:
        join.leave(member)
        wait_for(lambda: shares(join.present, partitions), join.members)
        writing.write_and_wait(join.present, join.members)


@pytest.mark.parametrize("client", some(CLIENTS, "kafka-python"))
def test_one_to_four_members_over_three_partitions(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, client: str
) -> None:
    """consumer1 to consumer4 come, consumer1 to consumer3 go; with four members the last one idles."""
    topic = new_name
    create_topic(group_admin, topic, partitions=3)
    writing = Writing(group_broker.bootstrap, topic, 3)
    members: list[Member] = []

    def expect(*held: list[int]) -> None:
        wait_for(lambda: [sorted(number for _, number in member.assigned) for member in members] == list(held), members)
        writing.write_and_wait([member for member in members if member not in join.gone], members, count=6)

    def come() -> None:
        members.append(join(client, f"consumer{len(members) + 1}", topic, topic))

    come()
    expect([0, 1, 2])
    come()
    expect([0, 1], [2])
    come()
    expect([0], [1], [2])
    come()
    expect([0], [1], [2], [])
    for gone, held in ((0, ([], [0], [1], [2])), (1, ([], [], [0, 1], [2])), (2, ([], [], [], [0, 1, 2]))):
        join.leave(members[gone])
        members[gone].told("revoked", members[gone].assigned)  # not every client says so at its end
        expect(*held)


@pytest.mark.parametrize("client", some(CLIENTS, "aiokafka"))
def test_unicast_inside_a_group_and_broadcast_across_groups(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, client: str
) -> None:
    """group1 has one member, group2 three; of the keys 1, 2 and 3 the former reads all, each of the latter one."""
    topic = new_name
    create_topic(group_admin, topic, partitions=3)
    alone = join(client, "consumer1", f"{topic}-group1", topic)
    wait_for(lambda: len(alone.assigned) == 3, join.members)
    together: list[Member] = []
    for number in (2, 3, 4):
        # One after the other: kafka-python keeps an old assignment when a rebalance meets its first join.
        together.append(join(client, f"consumer{number}", f"{topic}-group2", topic))
        wait_for(
            lambda: all(member.assigned for member in together) and shares(together, partitions_of(topic, 3)),
            join.members,
        )
    produce(group_broker.bootstrap, topic, 3, [b"1", b"2", b"3"])
    wait_for(lambda: len(alone.received) == 3 and all(member.received for member in together), join.members)
    assert sorted(alone.values) == [b"1", b"2", b"3"]
    assert sorted(member.values for member in together) == [[b"1"], [b"2"], [b"3"]]


class ConsoleMember(Member):
    """Java's console consumer, a process of its own; its values are the lines that it prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__("console")
        self._process = process
        self._lines: list[bytes] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line.rstrip(b"\n"))

    @property
    def values(self) -> list[bytes]:
        return list(self._lines)

    def leave(self) -> None:
        self._process.terminate()  # the tool closes its consumer in a shutdown hook
        self._process.wait(SECONDS_MAX)
        self._reading.join()


@contextmanager
def console_consumer(jar_folder: Path, bootstrap: str, group: str, topic: str) -> Iterator[ConsoleMember]:
    words = ("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap)
    command = java_command(classpath(jar_folder), *words)
    command += ["--topic", topic, "--group", group, "--from-beginning"]
    for setting in ("heartbeat.interval.ms=100", "session.timeout.ms=30000"):
        command += ["--command-property", setting]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield ConsoleMember(process)
    finally:
        process.kill()
        process.wait()


def test_javas_console_consumer_joins_and_leaves(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, kafka_jars: Path
) -> None:
    create_topic(group_admin, new_name, partitions=2)
    writing = Writing(group_broker.bootstrap, new_name, 2)
    other = join("confluent", "other", new_name, new_name)
    wait_for(lambda: len(other.assigned) == 2, join.members)
    with console_consumer(kafka_jars, group_broker.bootstrap, new_name, new_name) as console:
        wait_for(lambda: len(other.assigned) == 1, join.members)
        writing.write_and_wait([other], [other, console], count=20)
        assert len(console.values) == 10
        console.leave()
        wait_for(lambda: len(other.assigned) == 2, join.members)
        writing.write_and_wait([other], [other, console], count=20)
        assert len(console.values) == 10
