"""A Kafka Streams application with exactly-once processing, on one broker or three, which are killed meanwhile."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.java import java_command
from tools.kafka_jars import STREAMS, JarsUnavailable, classpath, jars

import ottla.testing
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC
from tests.conftest import WatchServer
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic, new_broker
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.xdist_group("kafka-tools")]

PROGRAM = Path(__file__).resolve().parent / "java" / "WordCount.java"
SOURCE, TARGET = "lines", "counts"
PARTITIONS = 2
WORDS = ("one", "event", "log", "that", "nobody", "reads", "twice")
LINES_A_ROUND = 150
WORDS_A_LINE = 4
KILLS = 4
BROKERS = 3
CLUSTER_KILLS = int(os.environ.get("OTTLA_ROUNDS", "6"))


class Lines:
    """What is written, and how often each word is in it."""

    def __init__(self, bootstrap: str) -> None:
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(1)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})

    def write(self, number: int) -> None:
        for line in range(number):
            words = self._chance.choices(WORDS, k=WORDS_A_LINE)
            self.counts.update(words)
            self._producer.produce(SOURCE, " ".join(words), partition=line % PARTITIONS)
        assert self._producer.flush(SECONDS_MAX) == 0


class Table:
    """Every count of every word, as a reader of committed records finds them, from the begin on."""

    def __init__(self, bootstrap: str) -> None:
        self.counts: dict[str, list[int]] = {word: [] for word in WORDS}
        self._reader = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed", "log_level": 0}
        )
        self._reader.assign([TopicPartition(TARGET, partition, 0) for partition in range(PARTITIONS)])

    def __len__(self) -> int:
        return sum(map(len, self.counts.values()))

    def has(self, number: int) -> bool:
        """Whether so many have come; reads on."""
        for message in self._reader.consume(1000, 0.1):
            if message.error() is None:
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                self.counts[key.decode()].append(int.from_bytes(value, "big"))
        return len(self) >= number


def count_through_kills(bootstrap: str, kill: Callable[[int], None], kills: int) -> None:
    lines, table = Lines(bootstrap), Table(bootstrap)
    for number in range(kills):
        before = len(table)
        lines.write(LINES_A_ROUND)
        # Some of it is counted, and the rest on its way.
        eventually(lambda before=before: table.has(before + 1))
        kill(number)
    lines.write(LINES_A_ROUND)
    eventually(lambda: table.has(lines.counts.total()))
    assert {word: counts[-1] for word, counts in table.counts.items()} == lines.counts
    # No count is left out, and none is there twice.
    for word, counts in table.counts.items():
        assert counts == list(range(1, lines.counts[word] + 1)), word


@contextmanager
def application(tmp_path: Path, bootstrap: str, *more: str) -> Iterator[None]:
    try:
        folder = jars(STREAMS)
    except JarsUnavailable as missing:
        pytest.skip(str(missing))
    words = (str(PROGRAM), bootstrap, SOURCE, TARGET, str(tmp_path / "state"), *more)
    with (tmp_path / "streams.out").open("wb") as out:
        started = subprocess.Popen(
            java_command(classpath(folder), *words, flags=("-Xmx256m",)), stdin=subprocess.PIPE, stdout=out, stderr=out
        )
        try:
            yield
        finally:
            started.kill()
            started.communicate()


def test_a_word_count_comes_to_the_right_table(tmp_path: Path, watch_server: WatchServer) -> None:
    broker = new_broker(tmp_path / "broker", {**PROPERTIES, "group.initial.rebalance.delay.ms": "0"})

    def kill(_: int) -> None:
        broker.server.kill()
        broker.server.start()

    with watch_server(broker.server), broker.server:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for topic in (SOURCE, TARGET):
            create_topic(admin, topic, partitions=PARTITIONS)
        with application(tmp_path, broker.bootstrap):
            count_through_kills(broker.bootstrap, kill, KILLS)


@pytest.mark.timeout(3600)
def test_a_word_count_on_three_brokers_while_leaders_and_coordinators_are_killed(tmp_path: Path) -> None:
    """In turns the leader of what is written, of the transactions' topic and of the group's offsets."""
    properties = {
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    led = (TARGET, TRANSACTION_TOPIC, OFFSETS_TOPIC)
    with ottla.testing.cluster(BROKERS, properties=properties) as cluster:
        for topic in (SOURCE, TARGET):
            cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=BROKERS)

        def kill(number: int) -> None:
            cluster.until(lambda: all(map(cluster.is_serving, cluster.addresses)))
            cluster.kill_leader(led[number % len(led)])  # and it is started again

        with application(tmp_path, cluster.bootstrap, str(BROKERS)):
            count_through_kills(cluster.bootstrap, kill, CLUSTER_KILLS)
    print(f"{CLUSTER_KILLS} leaders killed, {(CLUSTER_KILLS + 1) * LINES_A_ROUND * WORDS_A_LINE} words counted once")
