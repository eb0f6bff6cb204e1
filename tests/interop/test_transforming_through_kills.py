"""Consume, transform, produce: SIGKILL of the application and of the broker, between every two steps of a transaction.

Each record of the input is in the output once, and the group stands at the input's end.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX
from tests.interop.conftest import create_topic, new_broker
from tests.interop.transaction_answers import PROPERTIES
from tests.interop.transforming import GROUP, STEPS, transformed

SOURCE, TARGET = "input", "output"
PARTITIONS = 2
#: Before a round's kill; the application takes some of them in each of its transactions.
RECORDS_A_ROUND = 100
#: Steps that a round sees at the most before it kills: several transactions.
STEPS_A_ROUND = 12
_REPOSITORY = Path(__file__).resolve().parents[2]


class Application:
    """The process, started again and again."""

    def __init__(self, bootstrap: str, module: str = "tests.interop.transforming", *more: str) -> None:
        self._command = [sys.executable, "-m", module, bootstrap, SOURCE, TARGET, *more]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=_REPOSITORY
        )

    def next_step(self) -> str:
        """Starts it again where it has ended: it does so after a fault that it cannot repeat."""
        while True:
            assert self._process is not None
            assert self._process.stdout is not None
            if line := self._process.stdout.readline():
                return line.strip()
            self.kill()
            self.start()

    def until(self, step: str) -> None:
        while self.next_step() != step:
            pass

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def write(bootstrap: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in numbers:
        producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(SECONDS_MAX) == 0


def committed(bootstrap: str) -> list[bytes]:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "log_level": 0}
    )
    reader.assign([TopicPartition(TARGET, partition, 0) for partition in range(PARTITIONS)])
    found: list[bytes] = []
    ends = 0
    while ends < PARTITIONS:
        message = reader.poll(SECONDS_MAX)
        assert message is not None, "the last stable offset does not move"
        if message.error() is None:
            found.append(message.value() or b"")
        else:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
            ends += 1
    reader.close()
    return found


def position(bootstrap: str) -> int:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    stands = reader.committed([TopicPartition(SOURCE, partition) for partition in range(PARTITIONS)], SECONDS_MAX)
    reader.close()
    return sum(each.offset for each in stands)


def kill_again_and_again(broker: Broker, application: Application, rounds: int) -> None:
    chance = random.Random(rounds)
    for number in range(rounds):
        write(broker.bootstrap, range(number * RECORDS_A_ROUND, (number + 1) * RECORDS_A_ROUND))
        for _ in range(chance.randrange(STEPS_A_ROUND)):
            application.next_step()
        application.until(STEPS[number % len(STEPS)])
        victims = ("application", "broker", "both")[number % 3]
        if victims != "application":
            broker.server.kill()
        if victims != "broker":
            application.kill()
        if victims != "application":
            broker.server.start()
        if victims != "broker":
            application.start()


@pytest.mark.parametrize("rounds", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_every_record_is_there_once(tmp_path: Path, watch_server: WatchServer, rounds: int) -> None:
    broker = new_broker(tmp_path, PROPERTIES)
    application = Application(broker.bootstrap)
    with watch_server(broker.server), broker.server:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for topic in (SOURCE, TARGET):
            create_topic(admin, topic, partitions=PARTITIONS)
        application.start()
        try:
            kill_again_and_again(broker, application, rounds)
            while position(broker.bootstrap) < rounds * RECORDS_A_ROUND:
                application.next_step()
        finally:
            application.kill()
        expected = Counter(transformed(b"%d" % number) for number in range(rounds * RECORDS_A_ROUND))
        assert Counter(committed(broker.bootstrap)) == expected
        assert position(broker.bootstrap) == rounds * RECORDS_A_ROUND
