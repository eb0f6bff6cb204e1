"""Transactions of librdkafka: many small ones, large ones, and what readers of committed records pay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from bench import machine
from bench.client_programs import figures_of
from bench.frames import TOPIC as NULL_TOPIC
from bench.lifecycle import brokers
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import KAFKA, NULL, Running
from bench.transactional_client import is_aborted
from bench.wire import delete_topic, fresh_topic

TOPIC = "transactions"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
#: Of a whole table; a quick one takes fewer.
PAIRS_A_ROUND = 3

T = TypeVar("T")

TRANSACTIONS = Measure(name="transactions", label="rate", unit="transactions/s")
P50 = Measure(name="p50", label="a transaction's p50", unit="ms", digits=2)
P99 = Measure(name="p99", label="p99", unit="ms", digits=2)
CPU_TRANSACTION = Measure(name="cpu", label="server CPU", unit="ms a transaction", digits=2)


def client(work: str, ports: Sequence[int], topic: str, *words: object) -> list[float]:
    """What a process of `bench/transactional_client.py` prints."""
    return figures_of("bench.transactional_client", work, ",".join(map(str, ports)), topic, *words)


def in_pairs(pairs: int, one: T, other: T, rate: Callable[[T], float]) -> tuple[float, float]:
    """The medians of two kinds of work, each pair of which is done in the other order than the one before."""
    found: dict[T, list[float]] = {one: [], other: []}
    for number in range(pairs):
        for kind in (one, other) if number % 2 == 0 else (other, one):
            found[kind].append(rate(kind))
    return median(found[one]), median(found[other])


def small_transactions(ports: Sequence[int], producers: int, seconds: float, topic: str = TOPIC) -> dict[str, float]:
    """Rate and times of transactions of one record, of so many producers at the same time."""
    count, passed, p50, p99 = client("small", ports, topic, producers, seconds)
    return {"count": count, "transactions": count / passed, "p50": p50 / 1000, "p99": p99 / 1000}


def on_all_cores(context: Context, kind: str) -> Running:
    """The server, which shares them with its clients."""
    running = context.shared(kind)
    machine.pin(running.pid, machine.cores())
    return running


@dataclass(frozen=True, kw_only=True)
class SmallTransactions:
    """Of one record each, each of so many producers one after the other, all in one partition.

    What the null server reaches is what the client allows: it waits for a millisecond before it adds a partition.
    """

    name: str
    title: str
    producers: int
    goals: Sequence[Goal]
    measures: Sequence[Measure] = (TRANSACTIONS, P50, P99, CPU_TRANSACTION)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def warm(kind: str) -> None:
            self._once(on_all_cores(context, kind), context.effort.warm_seconds)

        def take(kind: str) -> Figures:
            return self._once(on_all_cores(context, kind), context.effort.seconds)

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds, warm=warm)
        return results

    def _once(self, running: Running, seconds: float) -> Figures:
        is_null = running.kind == NULL
        if not is_null:
            fresh_topic(running.port, TOPIC)
        before = machine.cpu_seconds(running.pid)
        found = small_transactions([running.port], self.producers, seconds, NULL_TOPIC if is_null else TOPIC)
        used = machine.cpu_seconds(running.pid) - before
        if not is_null:
            delete_topic(running.port, TOPIC)
        return {**found, "cpu": used * 1000 / found["count"]}


@dataclass(frozen=True, kw_only=True)
class LargeTransactions:
    """100,000 records each, beside the same records of the same client in none."""

    name: str = "transactions-large"
    title: str = "transactions of 100,000 records, librdkafka"
    records: int = 100_000
    measures: Sequence[Measure] = (
        Measure(name="transactional", label="rate", unit="k records/s"),
        Measure(name="idempotent", label="rate without transactions", unit="k records/s"),
        Measure(name="share", label="of the rate without", unit="", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="share", at_least=0.9),)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        records = max(2 * self.records, context.effort.client_records)

        def take(kind: str) -> Figures:
            running = on_all_cores(context, kind)
            is_null = kind == NULL

            def rate(a_transaction: int) -> float:
                if not is_null:
                    fresh_topic(running.port, TOPIC)
                topic = NULL_TOPIC if is_null else TOPIC
                (seconds,) = client("large", [running.port], topic, records, a_transaction)
                return records / seconds / 1000

            idempotent, transactional = in_pairs(min(PAIRS_A_ROUND, context.effort.rounds), 0, self.records, rate)
            if not is_null:
                delete_topic(running.port, TOPIC)
            return {"transactional": transactional, "idempotent": idempotent, "share": transactional / idempotent}

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        return results


@dataclass(frozen=True, kw_only=True)
class Consumption:
    """Of a topic of transactions of a thousand records, by librdkafka. Rates are of all records that the log has."""

    name: str = "transactions-consume"
    title: str = "committed records consumed, librdkafka"
    a_transaction: int = 1_000
    #: Of so many transactions one is aborted; 0: none.
    aborted_each: int = 0
    measures: Sequence[Measure] = (
        Measure(name="committed", label="read_committed", unit="k records/s"),
        Measure(name="uncommitted", label="read_uncommitted", unit="k records/s"),
        Measure(name="share", label="of the rate of read_uncommitted", unit="", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="share", at_least=0.95),)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        records = context.effort.client_records
        filled: set[str] = set()

        def fill(kind: str) -> None:
            running = on_all_cores(context, kind)
            filled.add(kind)
            fresh_topic(running.port, TOPIC)
            client("large", [running.port], TOPIC, records, self.a_transaction, self.aborted_each)

        def take(kind: str) -> Figures:
            running = on_all_cores(context, kind)

            def rate(isolation: str) -> float:
                seen = records - (self._aborted(records) if isolation == READ_COMMITTED else 0)
                (seconds,) = client("consume", [running.port], TOPIC, seen, isolation)
                return records / seconds / 1000

            pairs = min(PAIRS_A_ROUND, context.effort.rounds)
            committed, uncommitted = in_pairs(pairs, READ_COMMITTED, READ_UNCOMMITTED, rate)
            return {"committed": committed, "uncommitted": uncommitted, "share": committed / uncommitted}

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.rounds, warm=fill)
        for kind in filled:
            delete_topic(context.shared(kind).port, TOPIC)
        return results

    def _aborted(self, records: int) -> int:
        assert records % self.a_transaction == 0
        count = records // self.a_transaction
        return sum(is_aborted(number, self.aborted_each) for number in range(count)) * self.a_transaction


def shared_scenarios() -> list[SmallTransactions | LargeTransactions | Consumption]:
    """Those that use the servers of others."""
    return [
        SmallTransactions(
            name="transactions-single",
            title="transactions of one record, one at a time, librdkafka",
            producers=1,
            goals=(Goal(measure="transactions", at_least=10, against=KAFKA),),
        ),
        SmallTransactions(
            name="transactions-50",
            title="transactions of one record, 50 producers, librdkafka",
            producers=50,
            goals=(Goal(measure="transactions", at_least=3, against=KAFKA),),
        ),
        LargeTransactions(),
        Consumption(),
        Consumption(
            name="transactions-consume-aborted",
            title="committed records consumed where a third of the transactions was aborted, librdkafka",
            aborted_each=3,
        ),
    ]
