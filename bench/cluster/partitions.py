"""Many partitions with three replicas each: how long it takes until they are there, and what they cost at rest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import machine
from bench.cluster.brokers import ALONE, ClusterContext, restarts, started
from bench.cluster.topics import ask_for_topic, wait_for_isr
from bench.results import Figures, Goal, Measure, Results

TOPIC = "many"
PARTITIONS = 1000
CREATED_SECONDS_MAX = 120.0
#: Until leaders are known, caches filled and delayed work is done.
SETTLE_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True)
class ManyPartitions:
    """From the request to the moment at which every broker says that all have leaders and whole ISRs."""

    name: str = "partitions"
    title: str = "1,000 partitions, RF 3"
    measures: Sequence[Measure] = (
        Measure(name="created", label="created, every broker knows", unit="s", digits=2),
        Measure(name="cpu", label="CPU of all brokers for that", unit="s", digits=2),
        Measure(name="idle", label="at rest, the busiest broker", unit="% of a core", digits=2),
        Measure(name="memory", label="memory of the largest broker (RSS)", unit="MB", digits=1),
    )
    goals: Sequence[Goal] = (Goal(measure="created", at_most=3), Goal(measure="idle", at_most=3))

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as cluster:
                ids = list(cluster.brokers)
                turned = [ids[at:] + ids[:at] for at in range(len(ids))]
                before, began = cluster.cpu_seconds(), time.monotonic()
                ask_for_topic(cluster.port, TOPIC, [turned[number % len(ids)] for number in range(PARTITIONS)])
                for broker in cluster.brokers.values():
                    wait_for_isr(broker.port, TOPIC, PARTITIONS, cluster.copies, began + CREATED_SECONDS_MAX)
                created, used = time.monotonic() - began, cluster.cpu_seconds() - before
                time.sleep(SETTLE_SECONDS)
                ends = [(pid, machine.cpu_seconds(pid), time.monotonic()) for pid in cluster.pids]
                time.sleep(context.effort.idle_seconds)
                idle = max((machine.cpu_seconds(pid) - cpu) / (time.monotonic() - at) for pid, cpu, at in ends)
                memory = max(machine.memory(pid).resident for pid in cluster.pids)
                return {"created": created, "cpu": used, "idle": idle * 100, "memory": memory / 1e6}

        context.stop_clusters()
        kinds = [kind for kind in context.kinds if kind != ALONE]
        context.measure_in_turns(results, kinds, take, lambda kind: restarts(context)[kind])
        return results


def scenarios() -> list[ManyPartitions]:
    return [ManyPartitions()]
