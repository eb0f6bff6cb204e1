"""Kafka Connect's exactly-once source in distributed mode, on our broker, while worker and broker are killed.

The source is Kafka's own, of a file's lines; where it stands in the file is written in the transaction of the lines.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka_jars import CONNECT

from tests.conftest import WatchServer, found_jars
from tests.interop.broker import Broker
from tests.interop.clients import eventually
from tests.interop.conftest import create_topic, new_broker
from tests.interop.connect import ConnectWorker
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.xdist_group("kafka-tools")]

CONNECTOR, TOPIC = "lines", "lines"
#: A transaction has what stands in the file when the source looks: little by little, so that a kill finds one open.
#: (Its `batch.size` cannot do that: what it leaves in its buffer waits there until the file grows again.)
LINES_AT_ONCE, PAUSE_S = 5, 0.005
#: Seen in each round before its kill.
LINES_A_ROUND = 200
ROUNDS = 6


class Lines:
    """The file, which grows inside of `with`, and what a reader of committed records finds of it."""

    def __init__(self, file: Path, bootstrap: str) -> None:
        self.file = file
        self.written: list[str] = []
        self._ends = threading.Event()
        self._writing = threading.Thread(target=self._write, daemon=True)
        self.found: list[str] = []
        self._reader = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed", "log_level": 0}
        )
        self._reader.assign([TopicPartition(TOPIC, 0, 0)])
        file.touch()

    def __enter__(self) -> Self:
        self._writing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._reader.close()

    def end(self) -> None:
        """It grows no more."""
        self._ends.set()
        self._writing.join()

    def _write(self) -> None:
        while not self._ends.wait(PAUSE_S):
            self._grow()

    def _grow(self) -> None:
        new = [f"line {len(self.written) + place}" for place in range(LINES_AT_ONCE)]
        with self.file.open("a") as out:
            out.writelines(f"{line}\n" for line in new)
        self.written += new

    def have_all_come(self) -> bool:
        """Where it grows no more. A source that was behind has some in its buffer: the file grows for these."""
        before = len(self.found)
        if self.has(len(self.written)):
            return True
        if len(self.found) == before:
            self._grow()
        return False

    def has(self, count: int) -> bool:
        """Whether so many have come; reads on."""
        for message in self._reader.consume(1000, 0.1):
            if message.error() is None:
                value = message.value()
                assert value is not None
                self.found.append(value.decode())
        return len(self.found) >= count


def kill_again_and_again(broker: Broker, worker: ConnectWorker, lines: Lines) -> None:
    for number in range(ROUNDS):
        wanted = len(lines.found) + LINES_A_ROUND
        eventually(lambda wanted=wanted: lines.has(wanted))
        victims = ("broker", "worker", "both")[number % 3]
        if victims != "worker":
            broker.server.kill()
        if victims != "broker":
            worker.kill()
        if victims != "worker":
            broker.server.start()
        if victims != "broker":
            worker.start()


def test_each_line_is_there_once(tmp_path: Path, watch_server: WatchServer) -> None:
    folder = found_jars(CONNECT)
    broker = new_broker(tmp_path / "broker", PROPERTIES)
    lines = Lines(tmp_path / "lines.txt", broker.bootstrap)
    worker = ConnectWorker(tmp_path, folder, broker.bootstrap)
    with watch_server(broker.server), broker.server, watch_server(worker), worker, lines:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), TOPIC)
        config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines.file), "topic": TOPIC}
        worker.configure(CONNECTOR, {**config, "exactly.once.support": "required", "transaction.boundary": "poll"})
        kill_again_and_again(broker, worker, lines)
        lines.end()
        eventually(lines.have_all_come)
        # Nothing comes behind the last one.
        lines.has(len(lines.written) + 1)
    assert lines.found == lines.written
