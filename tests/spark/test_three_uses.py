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
from tests.spark.processes import descendants, end_all, listening

import ottla.testing
from ottla.client.sync import Admin, Producer
from ottla.model import TopicPartition
from ottla.pipeline.flows import SLOW_START
from ottla.testing import InProcessBroker

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(3600)]

TOPIC = "orders"
PARTITIONS = 2
#: Nothing takes nearly so long, on a machine with little other work.
SECONDS_MAX = 1200.0
#: What each of the others does while one is dead.
RECORDS_MEANWHILE = 20
#: Of each of them, until the others are the same processes before and after.
KILLS_MAX = 3
QUICK = {"A.consumer.session.timeout.ms": "1500", "A.consumer.heartbeat.interval.ms": "300"}


class Use:
    """A process that reads the topic, and may be killed and started again."""

    def __init__(
        self, name: str, start: Callable[[], subprocess.Popen[bytes]], done: Callable[[], int], log: Path
    ) -> None:
        self.name = name
        self._start = start
        self.log = log
        #: How many records it has dealt with.
        self.done = done
        self.process = start()
        #: How often Spark gave its Python too little time to start, so that it had to be started again.
        self.slow_starts = 0

    def kill(self) -> None:
        end_all(self.process.pid)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def start(self) -> None:
        self.process = self._start()

    def until(self, records: int) -> None:
        """Until it has dealt with so many, and has not ended before."""
        give_up = time.monotonic() + SECONDS_MAX
        while self.done() < records:
            assert time.monotonic() < give_up, f"{self.name} has dealt with {self.done()}, not {records}: {self.said()}"
            if self.process.poll() is not None:
                # Spark gives Python ten seconds to start, and has no setting for that; all of this starts at once.
                assert SLOW_START in self.said(), f"{self.name} has ended: {self.said()}"
                self.slow_starts += 1
                self.kill()
                self.log.unlink()
                self.start()
            time.sleep(0.1)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-5000:]


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
    logs = {name: folder / f"{name}.log" for name, folder in folders.items()}
    for folder in folders.values():
        folder.mkdir()

    def stream() -> subprocess.Popen[bytes]:
        words = (source.bootstrap, TOPIC, str(folders["stream"]), "local[2]", '{"records": "1000"}')
        return python(logs["stream"], "tests.spark.source.killed_driver", *words)

    def batch() -> subprocess.Popen[bytes]:
        return python(
            logs["batch"], "tests.spark.batch_driver", source.bootstrap, TOPIC, "nightly", str(folders["batch"])
        )

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
        starts: dict[str, tuple[Callable[[], subprocess.Popen[bytes]], Callable[[], int]]] = {
            "stream": (stream, lambda: len(numbers(folders["stream"]))),
            "batch": (batch, lambda: len(numbers(folders["batch"]))),
            "mirror": (mirror, copied),
        }
        for name, (start, done) in starts.items():
            uses.append(Use(name, start, done, logs[name]))
            uses[-1].until(1)  # two that start at once start more slowly than Spark waits for
        for victim in uses:
            others = [one for one in uses if one is not victim]
            # Spark may give one of them up in just that while, as it may at any time on a busy machine: then again.
            for _ in range(KILLS_MAX):
                for one in uses:
                    one.until(one.done() + 1)
                victim.kill()
                there = [one.process.pid for one in others]
                for one in others:
                    one.until(one.done() + RECORDS_MEANWHILE)
                undisturbed = [one.process.pid for one in others] == there
                victim.start()
                victim.until(victim.done() + 1)
                if undisturbed:
                    break
            assert undisturbed, [(one.name, one.slow_starts) for one in others]
        everyone = [pid for one in uses for pid in (one.process.pid, *descendants(one.process.pid))]
        assert {address.split()[0] for address in listening(everyone)} <= {"127.0.0.1", "::1"}
        writer.stop()
        for one in uses:
            one.until(writer.count)
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


def python(log: Path, module: str, *words: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", module, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=REPOSITORY
        )
