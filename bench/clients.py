"""Our client beside other Python clients, each in a process of its own, with the same settings and one partition."""

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

OURS = "ottla"
#: Those that our client is to be twice as fast as; confluent-kafka, a binding of librdkafka, stands for comparison.
PURE = ("aiokafka", "kafka-python")
CLIENTS = (OURS, *PURE, "confluent-kafka")
PRODUCE, CONSUME = "produce", "consume"
TIMES_FASTER = 2.0


def _measures() -> Sequence[Measure]:
    rates = [Measure(name=client, label=client, unit="k records/s") for client in CLIENTS]
    processor = [
        Measure(name=f"{client} cpu", label=f"{client}, CPU", unit="s a million", digits=2) for client in CLIENTS
    ]
    times = [Measure(name=f"over {other}", label=f"ours over {other}", unit="times", digits=2) for other in PURE]
    return (*rates, *times, *processor)


@dataclass(frozen=True, kw_only=True)
class PythonClients:
    """What each client produces to, and consumes from, our broker; and Apache Kafka, where it is."""

    work: str
    measures: Sequence[Measure] = _measures()
    goals: Sequence[Goal] = tuple(Goal(measure=f"over {other}", at_least=TIMES_FASTER) for other in PURE)

    @property
    def name(self) -> str:
        return f"clients-{self.work}"

    @property
    def title(self) -> str:
        return f"Python clients {self.work} 100-byte records"

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        records = context.effort.client_records

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            # Where there are two cores, the broker has one and the client the other.
            cores = sorted(machine.cores())
            machine.pin(running.pid, set(cores[:1]))
            figures: dict[str, float] = {}
            try:
                for client in CLIENTS:
                    seconds, used = self._take(running, client, records, set(cores[1:]) or set(cores))
                    figures[client] = records / seconds / 1000
                    figures[f"{client} cpu"] = used / records * 1e6
            finally:
                delete_topic(running.port, TOPIC)
                machine.pin(running.pid, set(cores))
            figures |= {f"over {other}": figures[OURS] / figures[other] for other in PURE}
            return figures

        context.measure_in_turns(
            results, [kind for kind in context.kinds if kind != NULL], take, lambda _: context.effort.rounds
        )
        return results

    def _take(self, running: Running, client: str, records: int, cores: set[int]) -> tuple[float, float]:
        if self.work == PRODUCE:
            fresh_topic(running.port, TOPIC)
        elif client == CLIENTS[0]:
            fresh_topic(running.port, TOPIC)
            _run(running.port, "confluent-kafka", PRODUCE, records, cores)
        return _run(running.port, client, self.work, records, cores)


def _run(port: int, client: str, work: str, records: int, cores: set[int]) -> tuple[float, float]:
    seconds, used = figures_of("bench.python_clients", client, work, port, TOPIC, records, cores=cores)
    return seconds, used


def scenarios() -> list[PythonClients]:
    return [PythonClients(work=PRODUCE), PythonClients(work=CONSUME)]
