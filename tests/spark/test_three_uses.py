"""One topic used in three ways at once, each under a group of its own: a stream, a batch job, and a mirror.

Each is killed in turn. The other two are the same processes as before, and go on; and in the end each has every record
once.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.mirror.flows import Clusters, contents, records_of
from tests.mirror.processes import MirrorProcess
from tests.spark.conftest import needs_java
from tests.spark.processes import end_all

import ottla.testing
from ottla.client.sync import Admin, Producer
from ottla.model import TopicPartition
from ottla.testing import InProcessBroker

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(3600)]

TOPIC = "orders"
PARTITIONS = 2
#: Nothing takes nearly so long.
SECONDS_MAX = 600.0
#: What each of the others does while one is dead.
RECORDS_MEANWHILE = 20
QUICK = {"A.consumer.session.timeout.ms": "1500", "A.consumer.heartbeat.interval.ms": "300"}


class Use:
    """A process that reads the topic, and may be killed and started again."""

    def __init__(self, name: str, start: Callable[[], subprocess.Popen[bytes]], done: Callable[[], int]) -> None:
        self.name = name
        self._start = start
        #: How many records it has dealt with.
        self.done = done
        self.process = start()

    def kill(self) -> None:
        end_all(self.process.pid)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def start(self) -> None:
        self.process = self._start()


class Writer(threading.Thread):
    """Records with rising numbers, some at a time, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._address = bootstrap
        self._ends = threading.Event()
        self.count = 0

    def run(self) -> None:
        with Producer(bootstrap_servers=self._address) as producer:
            while not self._ends.wait(0.5):
                for _ in range(5):
                    producer.send(TOPIC, b"%d" % self.count, partition=self.count % PARTITIONS)
                    self.count += 1
                producer.flush()

    def stop(self) -> None:
        self._ends.set()
        self.join()


def until(holds: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < give_up, what
        time.sleep(0.1)


def numbers(folder: Path) -> list[int]:
    return [int(line) for file in folder.glob("*.numbers") for line in file.read_text().splitlines()]


def committed(bootstrap: str, group: str) -> int:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return sum(one.offset for tp, one in admin.list_group_offsets(group).items() if tp.topic == TOPIC)


@pytest.fixture
def clusters() -> Iterator[tuple[InProcessBroker, InProcessBroker]]:
    quick = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500"}
    with ottla.testing.broker(properties=quick) as source, ottla.testing.broker(properties=quick) as target:
        source.create_topic(TOPIC, partitions=PARTITIONS)
        yield source, target


def test_each_is_killed_and_the_others_go_on(clusters: tuple[InProcessBroker, InProcessBroker], tmp_path: Path) -> None:
    source, target = clusters
    both = Clusters(source.bootstrap, target.bootstrap)
    folders = {name: tmp_path / name for name in ("stream", "batch", "mirror")}
    for folder in folders.values():
        folder.mkdir()

    def stream() -> subprocess.Popen[bytes]:
        words = (source.bootstrap, TOPIC, str(folders["stream"]), "local[2]", '{"records": "1000"}')
        return python("tests.spark.source.killed_driver", *words)

    def batch() -> subprocess.Popen[bytes]:
        return python("tests.spark.batch_driver", source.bootstrap, TOPIC, "nightly", str(folders["batch"]))

    def mirror() -> subprocess.Popen[bytes]:
        return MirrorProcess(folders["mirror"], {**both.properties(topics=TOPIC), **QUICK}).process

    def copied() -> int:
        with Admin(bootstrap_servers=target.bootstrap) as admin:
            if f"A.{TOPIC}" not in admin.list_topics():
                return 0
            places = {TopicPartition(f"A.{TOPIC}", number): -1 for number in range(PARTITIONS)}
            return sum(one.offset for one in admin.list_offsets(places).values())

    writer = Writer(source.bootstrap)
    uses: list[Use] = []
    try:
        writer.start()
        uses.append(Use("stream", stream, lambda: len(numbers(folders["stream"]))))
        uses.append(Use("batch", batch, lambda: len(numbers(folders["batch"]))))
        uses.append(Use("mirror", mirror, copied))
        for victim in uses:
            others = [one for one in uses if one is not victim]
            for one in uses:
                until(lambda one=one: one.done() > 0, f"{one.name} does something")
            victim.kill()
            before = {one.name: one.done() for one in others}
            for one in others:
                wanted = before[one.name] + RECORDS_MEANWHILE
                until(lambda one=one, wanted=wanted: one.done() >= wanted, f"{one.name} goes on")
                assert one.process.poll() is None, f"{one.name} has ended"
            stood = victim.done()
            victim.start()
            until(lambda victim=victim, stood=stood: victim.done() > stood, f"{victim.name} is back")
        writer.stop()
        for one in uses:
            until(lambda one=one: one.done() >= writer.count, f"{one.name} has all")
        for group in ("group-of-orders", "nightly", "ottla-mirror.A->B"):
            until(lambda group=group: committed(source.bootstrap, group) == writer.count, group)
    finally:
        if writer.is_alive():
            writer.stop()
        for one in uses:
            one.kill()
    everything = list(range(writer.count))
    assert sorted(numbers(folders["stream"])) == everything
    assert sorted(numbers(folders["batch"])) == everything
    for partition in range(PARTITIONS):
        original = asyncio.run(records_of(source.bootstrap, TOPIC, partition))
        assert contents(asyncio.run(records_of(target.bootstrap, f"A.{TOPIC}", partition))) == contents(original)


def python(module: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        cwd=REPOSITORY,
    )
