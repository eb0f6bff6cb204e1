"""Transactions of one record over three brokers: each state, record and marker is on all of them before the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.cluster.brokers import Cluster, ClusterContext
from bench.cluster.topics import fresh_topic
from bench.results import Figures, Goal, Measure, Results
from bench.servers import KAFKA
from bench.transactions import CPU_TRANSACTION, P50, P99, TOPIC, TRANSACTIONS, small_transactions
from bench.wire import delete_topic


@dataclass(frozen=True, kw_only=True)
class SmallTransactions:
    """Each of so many producers one after the other, all in one partition."""

    name: str
    title: str
    producers: int
    goals: Sequence[Goal]
    measures: Sequence[Measure] = (TRANSACTIONS, P50, P99, CPU_TRANSACTION)

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            cluster = context.cluster(kind)
            self._once(cluster, context.effort.warm_seconds)
            return self._once(cluster, context.effort.seconds)

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        return results

    def _once(self, cluster: Cluster, seconds: float) -> Figures:
        fresh_topic(cluster.port, TOPIC, list(cluster.brokers))
        before = cluster.cpu_seconds()
        ports = [broker.port for broker in cluster.brokers.values()]
        found = small_transactions(ports, self.producers, seconds)
        used = cluster.cpu_seconds() - before
        delete_topic(cluster.port, TOPIC)
        return {**found, "cpu": used * 1000 / found["count"]}


def scenarios() -> list[SmallTransactions]:
    return [
        SmallTransactions(
            name="transactions-single",
            title="transactions of one record, one at a time, librdkafka",
            producers=1,
            goals=(Goal(measure="transactions", at_least=5, against=KAFKA),),
        ),
        SmallTransactions(
            name="transactions-50",
            title="transactions of one record, 50 producers, librdkafka",
            producers=50,
            goals=(Goal(measure="transactions", at_least=3, against=KAFKA),),
        ),
    ]
