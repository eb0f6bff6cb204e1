"""librdkafka, the client behind most languages' libraries, with small records and a linger: what real producers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench import machine
from bench.client_programs import figures_of
from bench.frames import TOPIC
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import NULL, Running
from bench.wire import delete_topic, fresh_topic


@dataclass(frozen=True, kw_only=True)
class Librdkafka:
    name: str = "librdkafka"
    title: str = "librdkafka, 100-byte records, linger 5 ms"
    measures: Sequence[Measure] = (
        Measure(name="records", label="rate", unit="k records/s"),
        Measure(name="p50", label="a request's p50", unit="us"),
        Measure(name="p99", label="p99", unit="us"),
        Measure(name="cpu", label="server CPU", unit="s a million records", digits=3),
    )
    goals: Sequence[Goal] = (Goal(measure="records", at_least=0.95, against=NULL),)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            # The client has two busy threads, so it shares the cores with the server and nothing is pinned.
            machine.pin(running.pid, machine.cores())
            return self._produce(running, context.effort.librdkafka_records)

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds, warm=take)
        return results

    @staticmethod
    def _produce(running: Running, records: int) -> Figures:
        if running.kind != NULL:
            fresh_topic(running.port, TOPIC)
        before = machine.cpu_seconds(running.pid)
        seconds, p50, p99 = sent(running.port, TOPIC, records)
        used = machine.cpu_seconds(running.pid) - before
        if running.kind != NULL:
            delete_topic(running.port, TOPIC)
        return {"records": records / seconds / 1000, "p50": p50, "p99": p99, "cpu": used / records * 1e6}


def sent(port: int, topic: str, records: int) -> tuple[float, float, float]:
    """Has a client process produce so many: seconds, and microseconds of a request's p50 and p99."""
    seconds, p50, p99 = figures_of("bench.librdkafka_client", port, topic, records)
    return seconds, p50, p99
