"""Followers: one that was away catches up, and all that keep up leave the leader's disk alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import machine
from bench.cluster.brokers import ALONE, Cluster, ClusterContext, restarts, started
from bench.cluster.throughput import ALL, LEADER
from bench.cluster.topics import fresh_topic
from bench.frames import TOPIC, batch, batch_of_size, produce
from bench.load import Outcome, Work, run_against
from bench.results import Figures, Goal, Measure, Results
from bench.throughput import MIB

SIDE_TOPIC = "side"
MISSED_BYTES = 10**9
#: Below what any of these brokers can do beside a follower that catches up: what is timed is the wait.
SIDE_RATE = 1000
#: Shorter than the fastest catching up.
SIDE_SECONDS = 1.5
CATCH_UP_SECONDS_MAX = 300.0
KEPT_UP_BYTES = 10**9


def size_on(cluster: Cluster, broker: int, topic: str = TOPIC) -> int:
    """Bytes of the partition's segments on this broker."""
    folder = cluster.folders[broker] / "log" / f"{topic}-0"
    return sum(_size(path) for path in folder.glob("*.log"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # swapped or removed between two looks
        return 0


def filled(cluster: Cluster, context: ClusterContext, acks: int, size: int) -> Outcome:
    """Writes so much to the topic, a megabyte a request."""
    frame = produce(batch_of_size(MIB)[0], acks=acks)
    work = Work(frame=frame, connections=4, warm=0, seconds=CATCH_UP_SECONDS_MAX, limit=size // frame.payload)
    pids = [broker.pid for broker in cluster.brokers.values() if broker.running]
    return run_against(work, cluster.port, context.places, kind=cluster.kind, pids=pids)


@dataclass(frozen=True, kw_only=True)
class CatchingUp:
    """The third broker is stopped, a gigabyte is written, and it is started again.

    The time runs from its first byte to its last one: starting a process is no part of it. Meanwhile another partition
    of the same leader, of which the third broker has no replica, is written to.
    """

    name: str = "catch-up"
    title: str = "a follower catches up 1 GB"
    measures: Sequence[Measure] = (
        Measure(name="rate", label="rate", unit="MB/s"),
        Measure(name="cpu", label="CPU of leader and follower", unit="s a GB", digits=2),
        Measure(name="before", label="produce p99 at the leader, before", unit="us"),
        Measure(name="during", label="and meanwhile", unit="us"),
        Measure(name="times", label="so many times as long", unit="", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="rate", at_least=300), Goal(measure="times", at_most=2))

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as cluster:
                return self.once(cluster, context)

        context.stop_clusters()
        kinds = [kind for kind in context.kinds if kind != ALONE]
        context.measure_in_turns(results, kinds, take, lambda kind: restarts(context)[kind])
        return results

    def once(self, cluster: Cluster, context: ClusterContext) -> Figures:
        fresh_topic(cluster.port, TOPIC, [1, 2, 3])
        fresh_topic(cluster.port, SIDE_TOPIC, [1, 2])
        late = cluster.brokers[3]
        late.stop()
        filled(cluster, context, ALL, MISSED_BYTES)
        wanted = size_on(cluster, 1)
        self._side(cluster, context)
        before = self._side(cluster, context)
        late.launch()
        deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
        while size_on(cluster, 3) == 0:
            self._pause(deadline)
        begun, began = size_on(cluster, 3), time.monotonic()
        cpu = sum(machine.cpu_seconds(cluster.brokers[number].pid) for number in (1, 3))
        with ThreadPoolExecutor(1) as beside:
            during = beside.submit(self._side, cluster, context)
            while (size := size_on(cluster, 3)) < wanted:
                self._pause(deadline)
            took = time.monotonic() - began
            cpu = sum(machine.cpu_seconds(cluster.brokers[number].pid) for number in (1, 3)) - cpu
            meanwhile = during.result()
        return {
            "rate": (size - begun) / took / 1e6,
            "cpu": cpu / ((size - begun) / 1e9),
            "before": before.p99,
            "during": meanwhile.p99,
            "times": meanwhile.p99 / before.p99,
        }

    @staticmethod
    def _pause(deadline: float) -> None:
        if time.monotonic() > deadline:
            raise TimeoutError("the follower does not catch up")
        time.sleep(0.002)

    @staticmethod
    def _side(cluster: Cluster, context: ClusterContext) -> Outcome:
        frame = produce(batch(1), topic=SIDE_TOPIC, acks=LEADER)
        work = Work(frame=frame, connections=10, warm=0.1, seconds=SIDE_SECONDS, rate=SIDE_RATE)
        return run_against(work, cluster.port, context.places, kind=cluster.kind, pids=[])


@dataclass(frozen=True, kw_only=True)
class KeepingUp:
    """A gigabyte of large batches, each acknowledged by all: what the leader reads from its disk for its followers."""

    name: str = "leader-reads"
    title: str = "produce acks=all, 1 MB batches, 4 connections"
    measures: Sequence[Measure] = (
        Measure(name="read", label="the leader's disk reads", unit="MB a GB", digits=2),
        Measure(name="gigabytes", label="rate", unit="GB/s", digits=2),
        Measure(name="cpu", label="CPU of all brokers", unit="s a GB", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="read", at_most=1),)

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            cluster = context.cluster(kind)
            fresh_topic(cluster.port, TOPIC, list(cluster.brokers))
            filled(cluster, context, ALL, KEPT_UP_BYTES // 10)
            before = machine.disk_reads(cluster.brokers[1].pid)
            outcome = filled(cluster, context, ALL, KEPT_UP_BYTES)
            read = machine.disk_reads(cluster.brokers[1].pid) - before
            return {
                "read": read / 1e6 / (outcome.payload / 1e9),
                "gigabytes": outcome.gigabytes_per_second,
                "cpu": outcome.cpu_seconds_per_gigabyte,
            }

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        context.stop_clusters()
        return results


def scenarios() -> list[CatchingUp | KeepingUp]:
    return [KeepingUp(), CatchingUp()]
