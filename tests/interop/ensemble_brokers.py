"""Brokers of ours and of Apache Kafka 3.9 in one cluster; either kind may take over the log directory of the other."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka_jars import BROKER_39, classpath
from tools.server_process import HOST, ServerProcess, free_port

from ottla.client.sync import Consumer
from tests.conftest import found_jars

SECONDS_MAX: Final = 120.0
TOPIC: Final = "orders"
#: A broker each prefers to lead one.
PARTITIONS: Final = 3
OURS, KAFKA = "ours", "kafka"
_FLAGS: Final = ("-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def until(found: Callable[[], bool], what: str, seconds: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


class EnsembleBrokers:
    """Three of them; `kinds` says which is whose."""

    def __init__(self, folder: Path, zookeeper: str, kinds: Mapping[int, str], session_ms: int = 6000) -> None:
        self.folder = folder
        self.kinds = dict(kinds)
        self._java = "java"
        if KAFKA in kinds.values() and shutil.which("java") is None:
            raise AssertionError("the caller looks for Java first")
        self.brokers: dict[int, ServerProcess] = {}
        self._ports = {number: free_port() for number in kinds}
        for number, port in self._ports.items():
            (folder / f"{number}.properties").write_text(
                f"broker.id={number}\n"
                f"listeners=PLAINTEXT://{HOST}:{port}\n"
                f"log.dirs={folder}/logs-{number}\n"
                f"zookeeper.connect={zookeeper}\n"
                f"zookeeper.session.timeout.ms={session_ms}\n"
                "default.replication.factor=3\n"
                "min.insync.replicas=2\n"
                "inter.broker.protocol.version=3.9\n"
                # A partition's preferred leader is not waited for.
                "leader.imbalance.check.interval.seconds=5\n"
            )
            self._make(number)

    def _make(self, number: int) -> None:
        config = str(self.folder / f"{number}.properties")
        if self.kinds[number] == OURS:
            command = [sys.executable, "-m", "ottla", "broker", "--config", config]
        else:
            command = [self._java, *_FLAGS, "-cp", classpath(found_jars(BROKER_39)), "kafka.Kafka", config]
        self.brokers[number] = ServerProcess(command, port=self._ports[number], log=self.folder / f"{number}.log")

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def start(self, first: int | None = None) -> None:
        """`first`: which becomes the controller."""
        if first is not None:
            self.brokers[first].start(SECONDS_MAX)
        for broker in self.brokers.values():
            if not broker.running:
                broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_answering(time.monotonic() + SECONDS_MAX)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        until(lambda: self._registered() == len(self.brokers), "all are registered")

    def _registered(self) -> int:
        return len(self.admin.list_topics(timeout=SECONDS_MAX).brokers)

    def create(self) -> None:
        (made,) = self.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values()
        made.result(SECONDS_MAX)

    def replace(self, number: int, kind: str) -> None:
        """The other kind's broker goes on over the same folder, under the same number."""
        self.brokers[number].stop()
        self.kinds[number] = kind
        self._make(number)
        self.brokers[number].launch()

    def end(self) -> None:
        for broker in self.brokers.values():
            broker.kill()

    def leader(self, partition: int = 0, *, asked: int | None = None) -> int:
        """As this broker names it, or any; -1 where nobody leads, or it has not heard of the topic yet."""
        admin = self.admin if asked is None else self._alone(asked)
        partitions = admin.list_topics(TOPIC, timeout=SECONDS_MAX).topics[TOPIC].partitions
        return int(partitions[partition].leader) if partition in partitions else -1

    def are_led_by_both(self) -> bool:
        """Whether there are partitions that brokers of either kind lead, which the other kind then follows."""
        return {self.kinds.get(self.leader(number)) for number in range(PARTITIONS)} == {OURS, KAFKA}

    def until_led(self) -> int:
        """The leader of the first partition, once somebody leads it."""
        found: list[int] = []

        def is_led() -> bool:
            found.append(self.leader())
            return found[-1] != -1

        until(is_led, "somebody leads")
        return found[-1]

    def living(self, *, asked: int) -> set[int]:
        """Who is registered, as this broker has heard."""
        return set(self._alone(asked).list_topics(timeout=SECONDS_MAX).brokers)

    def _alone(self, number: int) -> AdminClient:
        return AdminClient({"bootstrap.servers": f"{HOST}:{self._ports[number]}", "log_level": 0})

    def controller(self) -> int:
        return int(self.admin.list_topics(timeout=SECONDS_MAX).controller_id)

    def is_whole(self) -> bool:
        """As every broker that runs sees it: a client of one may see what another has not heard of."""
        for number, broker in self.brokers.items():
            if not broker.running:
                return False
            try:
                found = self._alone(number).list_topics(TOPIC, timeout=5).topics[TOPIC].partitions.values()
            except Exception:
                return False
            if len(found) < PARTITIONS or any(len(one.isrs) < len(self.brokers) or one.leader < 0 for one in found):
                return False
        return True

    def log_bytes(self, number: int, partition: int) -> bytes:
        """All segments in order: where each one ends, each broker decides by itself."""
        segments = sorted((self.folder / f"logs-{number}" / f"{TOPIC}-{partition}").glob("*.log"))
        return b"".join(path.read_bytes() for path in segments)

    def are_equal(self) -> bool:
        for partition in range(PARTITIONS):
            if len({self.log_bytes(number, partition) for number in self.brokers}) > 1:
                return False
        return True


class Load:
    """An idempotent producer with acks=all, all the time."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[KafkaError] = []
        #: The longest time without an acknowledgement, and since when there was none.
        self.gap_s = 0.0
        self._last = 0.0
        self._next = 0

    def reset_gap(self) -> None:
        self.gap_s, self._last = 0.0, time.monotonic()

    def _heard(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
            return
        now, value = time.monotonic(), message.value()
        self.gap_s, self._last = max(self.gap_s, now - self._last), now
        assert value is not None
        self.acknowledged.append(int(value))

    @contextmanager
    def to(self, bootstrap: str) -> Iterator[None]:
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        stop = threading.Event()
        self.reset_gap()

        def send() -> None:
            while not stop.wait(0.005):
                producer.produce(TOPIC, str(self._next), partition=self._next % PARTITIONS, on_delivery=self._heard)
                self._next += 1
                producer.poll(0)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            assert producer.flush(SECONDS_MAX) == 0

    def goes_on(self) -> None:
        """Something that is sent from here on is acknowledged."""
        wanted = self._next
        until(lambda: bool(self.acknowledged) and max(self.acknowledged[-100:]) > wanted, "records are acknowledged")

    def stands_still(self, seconds: float) -> None:
        """Nothing is acknowledged for so long, though there is always something to acknowledge."""
        until(lambda: time.monotonic() - self._last > seconds, "nothing is acknowledged")

    def check(self, bootstrap: str) -> None:
        """Each is there once and in order."""
        assert not self.failed, self.failed[:3]
        assert len(self.acknowledged) == self._next
        partitions = [(TOPIC, number) for number in range(PARTITIONS)]
        found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign(partitions)
            left = self._next
            while left:
                for record in consumer.poll(timeout_ms=1000):
                    found[record.partition].append(int(record.value))
                    left -= 1
        assert found == {number: list(range(number, self._next, PARTITIONS)) for number in range(PARTITIONS)}
