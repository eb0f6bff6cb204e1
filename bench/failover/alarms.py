"""False alarms: for ten minutes every core is busy, a log is cleaned, replicas catch up, and groups come and go. No
session may end and no replica may leave an ISR, since nobody has died.

    python -m bench.failover alarms --minutes 10
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Producer

from bench.failover.cycles import BROKERS, keep_log, tell
from bench.failover.load import QUICK, Task
from ottla.client.admin.results import NewTopic
from ottla.client.sync import Admin
from ottla.model import TopicPartition
from ottla.testing.processes import Cluster

GROUPS: Final = 10
#: Of each member in a group.
MEMBER_S: Final = 4.0
#: What a catch-up carries.
CATCH_UP_MB: Final = 200
#: Below those that the system gives to connections.
METRICS_PORT: Final = 19_404
_SPIN: Final = "while True: pass"
_COMPACTED: Final = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
_STALL: Final = "ottla_loop_stall_seconds_max"


class Alarms(NamedTuple):
    seconds: float
    #: Lines of the logs that say that a session has ended, and that an ISR has lost somebody.
    sessions_ended: list[str]
    isr_shrinks: list[str]
    #: Of each broker's loop, in seconds; and of the tree's.
    stalls: dict[str, float]
    catch_ups: int
    members: int
    load: float

    def report(self) -> str:
        stalls = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.stalls.items())
        return "\n".join(
            [
                f"{self.seconds:.0f} s, load {self.load:.1f}",
                f"{self.catch_ups} catch-ups, {self.members} members came and went",
                f"sessions that ended: {len(self.sessions_ended)}; ISRs that shrank: {len(self.isr_shrinks)}",
                f"longest stall of each loop: {stalls}",
                *self.sessions_ended[:5],
                *self.isr_shrinks[:5],
            ]
        )


def run(minutes: float, keep: Path | None) -> Alarms:
    properties = {"log.cleaner.backoff.ms": "1000", "group.initial.rebalance.delay.ms": "100"}
    wanted = Cluster(BROKERS, properties=properties, links=False, metrics_port=METRICS_PORT)
    with _busy_cores(), wanted as cluster:
        cluster.create_topic("compacted", 3, configs=_COMPACTED)
        cluster.create_topic("grouped", 6)
        began = len(cluster.log)
        work = _Work(cluster)
        tasks = [Task(work.rewrite, "rewrite"), Task(work.catch_up, "catch-up"), Task(work.join, "join")]
        for task in tasks:
            work.stopping.append(task)
            task.start()
        started, load = time.monotonic(), 0.0
        while time.monotonic() < started + minutes * 60:
            time.sleep(5)
            load = max(load, os.getloadavg()[0])
        for task in tasks:
            task.stop()
        lines = cluster.log[began:]
        stalls = _stalls(cluster)
        keep_log(cluster, keep, "alarms")
        return Alarms(
            time.monotonic() - started,
            [line for line in lines if "sessions were not heard of" in line or "the session with" in line],
            [line for line in lines if _shrinks(line)],
            stalls,
            work.catch_ups,
            work.members,
            load,
        )


def _shrinks(line: str) -> bool:
    """Of topics that always have three replicas."""
    told = "in-sync replicas have changed" in line and "caught-up" not in line
    return told and line.partition('isr="[')[2].partition("]")[0].count(",") < BROKERS - 1


class _Work:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stopping: list[Task] = []
        self.catch_ups = self.members = 0

    @property
    def _ends(self) -> bool:
        return any(task.stopping.is_set() for task in self.stopping)

    def rewrite(self) -> None:
        """A few keys, over and over: the cleaner has to do."""
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap, "linger.ms": 20, **QUICK})
        number = 0
        while not self._ends:
            with contextlib.suppress(BufferError):
                producer.produce("compacted", os.urandom(500), key=str(number % 1_000))
                number += 1
            producer.poll(0.001)
        producer.flush(30)

    def catch_up(self) -> None:
        """A topic with one replica gets three."""
        while not self._ends:
            name = f"caught-up-{self.catch_ups}"
            with Admin(bootstrap_servers=self._cluster.bootstrap) as admin:
                brokers = list(self._cluster.addresses)
                configs = {"min.insync.replicas": "1"}
                admin.create_topics([NewTopic(name, assignments={0: brokers[:1]}, configs=configs)])
                self._fill(name)
                admin.alter_partition_reassignments({TopicPartition(name, 0): brokers})
                while not self._ends and len(self._cluster.isrs(name)[0]) < BROKERS:
                    time.sleep(0.2)
                admin.delete_topic(name)
            self.catch_ups += 1

    def _fill(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap, "linger.ms": 20, **QUICK})
        value = os.urandom(100_000)
        for _ in range(CATCH_UP_MB * 10):
            if self._ends:
                break
            producer.produce(topic, value)
            while len(producer) > 200:
                producer.poll(0.05)
        producer.flush(30)

    def join(self) -> None:
        """Members of a few groups that come all at once, and go."""
        while not self._ends:
            settings = {"bootstrap.servers": self._cluster.bootstrap, "auto.offset.reset": "latest", **QUICK}
            members = [Consumer({**settings, "group.id": f"g{number % GROUPS}"}) for number in range(2 * GROUPS)]
            for member in members:
                member.subscribe(["grouped"])
            ends = time.monotonic() + MEMBER_S
            while time.monotonic() < ends and not self._ends:
                for member in members:
                    member.poll(0.01)
            for member in members:
                member.close()
            self.members += len(members)


def _stalls(cluster: Cluster) -> dict[str, float]:
    found = {}
    for place, broker in enumerate(cluster.addresses):
        assert cluster.metrics_port is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{cluster.metrics_port + place}/metrics", timeout=10) as page:
            for line in page.read().decode().splitlines():
                if line.startswith(f"{_STALL} "):
                    found[f"broker {broker}"] = float(line.split()[1])
    return found


@contextlib.contextmanager
def _busy_cores() -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(os.cpu_count() or 1)]
    tell(f"{len(spinning)} processes compute beside it")
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
