"""Clients of three kinds that write numbers to a topic and read them again, while others move it under them."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import aiokafka
import confluent_kafka
from tools.java import java_command
from tools.kafka_jars import classpath

from tests.interop.clients import SECONDS_MAX

#: Between two records: enough that some are under way whatever happens, and few enough for two processors.
PAUSE_S: Final = 0.005
_TOOLS: Final = "org.apache.kafka.tools."
_QUIET: Final = ("-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")


class Place(NamedTuple):
    partition: int
    value: int


class MovedClient(ABC):
    """Works in a thread of its own from `start` to `stop`, and says what it could not do."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.faults: list[str] = []
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._whole, name=type(self).__name__, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(SECONDS_MAX)
        if self._thread.is_alive():
            self.faults.append("it does not end")

    def _whole(self) -> None:
        try:
            self.run()
        except Exception as fault:  # the test says it
            self.faults.append(repr(fault))

    @abstractmethod
    def run(self) -> None:
        """Until `stopping` is set, and whatever is to be done then."""


class NumberWriter(MovedClient):
    """Writes 0, 1, 2 and so on. With `stop` it waits for what is not acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(bootstrap, topic)
        self.partitions = partitions
        self.written = 0
        self.acknowledged: set[int] = set()


class NumberReader(MovedClient):
    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.read: list[Place] = []
        self.group = f"readers-{uuid.uuid4()}"


class LibrdkafkaWriter(NumberWriter):
    def run(self) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 1, "log_level": 0}
        )
        while not self.stopping.wait(PAUSE_S):
            value, self.written = self.written, self.written + 1
            producer.produce(self.topic, b"%d" % value, partition=value % self.partitions, on_delivery=self._done)
            producer.poll(0)
        if left := producer.flush(SECONDS_MAX):
            self.faults.append(f"{left} records were never answered")

    def _done(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.faults.append(f"{message.value()!r}: {error}")
        else:
            self.acknowledged.add(int(message.value() or b"-1"))


class LibrdkafkaReader(NumberReader):
    def run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not self.stopping.is_set():
                for message in consumer.consume(500, 0.1):
                    if message.error() is None:
                        self.read.append(Place(message.partition() or 0, int(message.value() or b"-1")))
                    elif not message.error().retriable():
                        self.faults.append(str(message.error()))
        finally:
            consumer.close()


class AiokafkaWriter(NumberWriter):
    def run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, request_timeout_ms=round(SECONDS_MAX * 1000)
        )
        await producer.start()
        sent: list[asyncio.Future[object]] = []
        try:
            while not self.stopping.is_set():
                value, self.written = self.written, self.written + 1
                future = await producer.send(self.topic, b"%d" % value, partition=value % self.partitions)
                sent.append(asyncio.ensure_future(self._done(value, future)))
                await asyncio.sleep(PAUSE_S)
            await asyncio.wait_for(asyncio.gather(*sent), SECONDS_MAX)
        finally:
            await producer.stop()

    async def _done(self, value: int, sent: asyncio.Future[object]) -> None:
        try:
            await sent
        except Exception as fault:  # the test says it
            self.faults.append(f"{value}: {fault!r}")
        else:
            self.acknowledged.add(value)


class AiokafkaReader(NumberReader):
    def run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            self.topic, bootstrap_servers=self.bootstrap, group_id=self.group, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            while not self.stopping.is_set():
                for place, records in (await consumer.getmany(timeout_ms=100)).items():
                    self.read += [Place(place.partition, int(record.value)) for record in records]
        finally:
            await consumer.stop()


class JavaWriter(NumberWriter):
    """The console producer; it is idempotent by itself, and says nothing of what is acknowledged before its end."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, jar_folder: Path) -> None:
        super().__init__(bootstrap, topic, partitions)
        words = ("--bootstrap-server", bootstrap, "--topic", topic, "--max-block-ms", str(round(SECONDS_MAX * 1000)))
        # The tool tries three times by itself, where the client tries for two minutes.
        patient = ("--message-send-max-retries", str(2**31 - 1), "--timeout", "5")
        self._command = java_command(classpath(jar_folder), f"{_TOOLS}ConsoleProducer", *words, *patient, flags=_QUIET)

    def run(self) -> None:
        with _running(self._command, errors=subprocess.PIPE) as process:
            assert process.stdin is not None
            while not self.stopping.wait(PAUSE_S):
                process.stdin.write(b"%d\n" % self.written)
                process.stdin.flush()
                self.written += 1
            _, said = process.communicate(timeout=SECONDS_MAX)
        # It ends well whatever it has lost.
        if process.returncode or "Error when sending message" in said.decode():
            self.faults.append(f"exit code {process.returncode}: {said.decode()}")
        else:
            self.acknowledged.update(range(self.written))


class JavaReader(NumberReader):
    """The console consumer."""

    def __init__(self, bootstrap: str, topic: str, jar_folder: Path) -> None:
        super().__init__(bootstrap, topic)
        words = ("--bootstrap-server", bootstrap, "--topic", topic, "--group", self.group, "--from-beginning")
        shown = ("--formatter-property", "print.partition=true")
        self._command = java_command(
            classpath(jar_folder), f"{_TOOLS}consumer.ConsoleConsumer", *words, *shown, flags=_QUIET
        )
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        with _running(self._command) as self._process:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                found = re.fullmatch(r"Partition:(\d+)\t(\d+)\n", line.decode())
                assert found is not None, line
                self.read.append(Place(int(found[1]), int(found[2])))
        if not self.stopping.is_set():
            self.faults.append("the console consumer ended by itself")

    def stop(self) -> None:
        self.stopping.set()
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
        super().stop()


@contextmanager
def _running(command: list[str], *, errors: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """It ends with the block, whatever happens there."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
