"""A Kafka Streams application with exactly-once processing, on our broker, which is killed meanwhile."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.java import java_command
from tools.kafka_jars import STREAMS, JarsUnavailable, classpath, jars

from tests.conftest import WatchServer
from tests.interop.broker import Broker
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


def count_through_kills(broker: Broker) -> None:
    lines, table = Lines(broker.bootstrap), Table(broker.bootstrap)
    for _ in range(KILLS):
        before = len(table)
        lines.write(LINES_A_ROUND)
        # Some of it is counted, and the rest on its way.
        eventually(lambda before=before: table.has(before + 1))
        broker.server.kill()
        broker.server.start()
    lines.write(LINES_A_ROUND)
    eventually(lambda: table.has(lines.counts.total()))
    assert {word: counts[-1] for word, counts in table.counts.items()} == lines.counts
    # No count is left out, and none is there twice.
    for word, counts in table.counts.items():
        assert counts == list(range(1, lines.counts[word] + 1)), word


def test_a_word_count_comes_to_the_right_table(tmp_path: Path, watch_server: WatchServer) -> None:
    try:
        folder = jars(STREAMS)
    except JarsUnavailable as missing:
        pytest.skip(str(missing))
    broker = new_broker(tmp_path / "broker", {**PROPERTIES, "group.initial.rebalance.delay.ms": "0"})
    words = (str(PROGRAM), broker.bootstrap, SOURCE, TARGET, str(tmp_path / "state"))
    with watch_server(broker.server), broker.server, (tmp_path / "streams.out").open("wb") as out:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for topic in (SOURCE, TARGET):
            create_topic(admin, topic, partitions=PARTITIONS)
        application = subprocess.Popen(
            java_command(classpath(folder), *words, flags=("-Xmx256m",)), stdin=subprocess.PIPE, stdout=out, stderr=out
        )
        try:
            count_through_kills(broker)
        finally:
            application.kill()
            application.communicate()
