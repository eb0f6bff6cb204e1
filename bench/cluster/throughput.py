"""Small records to one partition: what a request costs all brokers together, how many there are, how long one takes.

The CPU comes first. Three brokers and the load share the cores of one machine, so that rates and times say as much
about its scheduler as about brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.cluster.brokers import ALONE, Cluster, ClusterContext
from bench.cluster.topics import ask_for_topic, fresh_topic
from bench.frames import TOPIC, batch, produce
from bench.load import Outcome, Work, run_against
from bench.results import Figures, Goal, Measure, Results
from bench.servers import KAFKA
from bench.throughput import P50, P99, RATE, figures
from bench.wire import delete_topic

ALL, LEADER = -1, 1
IDLE_TOPIC = "idle"
IDLE_PARTITIONS = 1000

CPU = Measure(name="cpu", label="CPU of all brokers", unit="us a request", digits=1)


@dataclass(frozen=True, kw_only=True)
class Produce:
    """One 100-byte record a request, over and over."""

    name: str
    title: str
    acks: int
    connections: int
    measures: Sequence[Measure]
    goals: Sequence[Goal]

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            cluster = context.cluster(kind)
            self.once(cluster, context, warm_seconds(kind, context))
            return figures(self.once(cluster, context, context.effort.seconds))

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        return results

    def once(self, cluster: Cluster, context: ClusterContext, seconds: float) -> Outcome:
        fresh_topic(cluster.port, TOPIC, list(cluster.brokers))
        try:
            return produced(cluster, context, self.acks, self.connections, seconds)
        finally:
            delete_topic(cluster.port, TOPIC)


def warm_seconds(kind: str, context: ClusterContext) -> float:
    """Java compiles what it has seen often; ours is as fast from the beginning."""
    return context.effort.warm_seconds if kind == KAFKA else 1.0


def produced(cluster: Cluster, context: ClusterContext, acks: int, connections: int, seconds: float) -> Outcome:
    work = Work(frame=produce(batch(1), acks=acks), connections=connections, seconds=seconds)
    return run_against(work, cluster.port, context.places, kind=cluster.kind, pids=cluster.pids)


@dataclass(frozen=True, kw_only=True)
class AmongIdle:
    """One request at a time, before there are a thousand other partitions and among them."""

    name: str = "single-among-idle"
    title: str = "produce acks=all, one connection, among 1,000 idle partitions"
    measures: Sequence[Measure] = (
        Measure(name="before", label="p50 without them", unit="us"),
        P50,
        P99,
        Measure(name="times", label="so many times as long", unit="", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="times", at_most=1.5),)

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            cluster = context.cluster(kind)
            fresh_topic(cluster.port, TOPIC, list(cluster.brokers))
            produced(cluster, context, ALL, 1, warm_seconds(kind, context))
            before = produced(cluster, context, ALL, 1, context.effort.seconds)
            ids = list(cluster.brokers)
            ask_for_topic(cluster.port, IDLE_TOPIC, [ids] * IDLE_PARTITIONS)
            try:
                produced(cluster, context, ALL, 1, warm_seconds(kind, context))
                among = produced(cluster, context, ALL, 1, context.effort.seconds)
            finally:
                delete_topic(cluster.port, IDLE_TOPIC)
                delete_topic(cluster.port, TOPIC)
            return {"before": before.p50, "p50": among.p50, "p99": among.p99, "times": among.p50 / before.p50}

        kinds = [kind for kind in context.kinds if kind != ALONE]
        context.measure_in_turns(results, kinds, take, lambda _: context.effort.rounds)
        return results


def scenarios() -> list[Produce | AmongIdle]:
    return [
        Produce(
            name="acks-all",
            title="produce acks=all, one 100-byte record, 50 connections",
            acks=ALL,
            connections=50,
            measures=(CPU, RATE, P50, P99),
            goals=(
                Goal(measure="cpu", at_most=4, against=ALONE),
                Goal(measure="cpu", at_most=0.333, against=KAFKA),
                Goal(measure="rate", at_least=0.4, against=ALONE),
                Goal(measure="rate", at_least=3, against=KAFKA),
            ),
        ),
        Produce(
            name="acks-leader",
            title="produce acks=1, one 100-byte record, 50 connections",
            acks=LEADER,
            connections=50,
            measures=(CPU, RATE, P50, P99),
            goals=(Goal(measure="cpu", at_most=3, against=ALONE),),
        ),
        Produce(
            name="single",
            title="produce acks=all, one connection, one request at a time",
            acks=ALL,
            connections=1,
            measures=(P50, P99, CPU, RATE),
            goals=(Goal(measure="p50", at_most=350), Goal(measure="p50", at_most=1, against=KAFKA)),
        ),
        AmongIdle(),
    ]
