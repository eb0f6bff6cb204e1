"""librdkafka with a linger: what real producers do, with every record on three brokers before it is acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.cluster.brokers import ALONE, Cluster, ClusterContext
from bench.cluster.topics import fresh_topic
from bench.frames import TOPIC
from bench.librdkafka import sent
from bench.results import Figures, Goal, Measure, Results
from bench.servers import KAFKA
from bench.wire import delete_topic


@dataclass(frozen=True, kw_only=True)
class Librdkafka:
    name: str = "librdkafka"
    title: str = "librdkafka, 100-byte records, linger 5 ms, acks=all"
    measures: Sequence[Measure] = (
        Measure(name="records", label="rate", unit="k records/s"),
        Measure(name="p50", label="a request's p50", unit="us"),
        Measure(name="p99", label="p99", unit="us"),
        Measure(name="cpu", label="CPU of all brokers", unit="s a million records", digits=3),
    )
    goals: Sequence[Goal] = (
        Goal(measure="records", at_least=0.8, against=ALONE),
        Goal(measure="records", at_least=1, against=KAFKA),
    )

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            cluster = context.cluster(kind)
            self._produce(cluster, context.effort.librdkafka_records)
            return self._produce(cluster, context.effort.librdkafka_records)

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        return results

    @staticmethod
    def _produce(cluster: Cluster, records: int) -> Figures:
        fresh_topic(cluster.port, TOPIC, list(cluster.brokers))
        before = cluster.cpu_seconds()
        seconds, p50, p99 = sent(cluster.port, TOPIC, records)
        used = cluster.cpu_seconds() - before
        delete_topic(cluster.port, TOPIC)
        return {"records": records / seconds / 1000, "p50": p50, "p99": p99, "cpu": used / records * 1e6}
