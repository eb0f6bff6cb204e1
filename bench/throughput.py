"""Produce and fetch under the raw load generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.frames import TOPIC, batch, batch_of_size, fetch, produce
from bench.load import Outcome, Work, run
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import KAFKA, NULL, Places, Running
from bench.wire import create_topic, delete_topic, end_offsets, fresh_topic

MIB = 1 << 20
#: Of batches where the size of a batch is not what is measured: what producers send by default.
BATCH = 16 << 10
#: The null server's partitions never end.
NULL_END = 1 << 40

RATE = Measure(name="rate", label="rate", unit="k requests/s", digits=1)
GIGABYTES = Measure(name="gigabytes", label="rate", unit="GB/s", digits=2)
CPU_REQUEST = Measure(name="cpu", label="server CPU", unit="us a request (s a million)", digits=1)
CPU_GIGABYTE = Measure(name="cpu_gigabyte", label="server CPU", unit="s a GB", digits=3)
P50 = Measure(name="p50", label="p50", unit="us")
P99 = Measure(name="p99", label="p99", unit="us")

#: What one round may write to the disk: little enough that the kernel does not begin to write it out meanwhile.
WRITTEN_MAX = 2 * 10**9


def figures(outcome: Outcome) -> Figures:
    found = {
        "rate": outcome.rate / 1000,
        "cpu": outcome.cpu_microseconds_per_request,
        "p50": outcome.p50,
        "p99": outcome.p99,
    }
    if outcome.payload:
        found |= {"gigabytes": outcome.gigabytes_per_second, "cpu_gigabyte": outcome.cpu_seconds_per_gigabyte}
    return found


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """One request frame over and over, from so many connections, to each server in turn."""

    name: str
    title: str
    connections: int
    measures: Sequence[Measure]
    goals: Sequence[Goal]

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def once(kind: str, seconds: float) -> Outcome:
            return self.once(context.shared(kind, self.null_fetch_bytes()), seconds, context.places)

        context.measure_in_turns(
            results,
            context.kinds,
            lambda kind: figures(once(kind, context.effort.seconds)),
            lambda _: context.effort.rounds,
            warm=lambda kind: once(kind, context.effort.warm_seconds),
        )
        return results

    def once(self, running: Running, seconds: float, places: Places) -> Outcome:
        """One run against one server, with whatever it needs before and leaves behind."""
        raise NotImplementedError

    def null_fetch_bytes(self) -> int:
        """The size of what the null server answers to a fetch."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Produce(Throughput):
    """Batches of ``records`` to one partition."""

    records: int

    def once(self, running: Running, seconds: float, places: Places) -> Outcome:
        """To a topic that is empty, and gone afterwards: neither its size nor its deletion burdens the next."""
        frame = produce(batch(self.records))
        limit = WRITTEN_MAX // len(frame.request) if self.records > 1 else 0
        work = Work(frame=frame, connections=self.connections, seconds=seconds, limit=limit)
        if running.kind == NULL:
            return run(work, running, places)
        fresh_topic(running.port, TOPIC)
        try:
            return run(work, running, places)
        finally:
            delete_topic(running.port, TOPIC)


@dataclass(frozen=True, kw_only=True)
class Fetch(Throughput):
    """So many 16 KB batches at once, from a partition that lies in the page cache."""

    batches: int

    #: As long as the topic of the null server's answers, so that error codes stand at the same place.
    TOPIC = "fetch"
    FILLED = 256 * MIB

    def once(self, running: Running, seconds: float, places: Places) -> Outcome:
        data, records = batch_of_size(BATCH)
        end = NULL_END if running.kind == NULL else self._filled(running, data, places)
        step = records * self.batches
        work = Work(
            frame=fetch(len(data) * self.batches, topic=self.TOPIC),
            connections=self.connections,
            seconds=seconds,
            offset_step=step,
            offset_end=end - step,
        )
        return run(work, running, places)

    def null_fetch_bytes(self) -> int:
        return len(batch_of_size(BATCH)[0]) * self.batches

    def _filled(self, running: Running, data: bytes, places: Places) -> int:
        """Writes the partition unless it is there already; returns its end."""
        ends = end_offsets(running.port, self.TOPIC, 1)
        if ends is None:
            create_topic(running.port, self.TOPIC)
            frame = produce(data, topic=self.TOPIC)
            filling = Work(frame=frame, connections=1, depth=16, warm=0, seconds=60, limit=self.FILLED // len(data))
            run(filling, running, places)
            ends = end_offsets(running.port, self.TOPIC, 1)
        assert ends, "the partition stayed empty"
        return ends[0]


def scenarios() -> list[Throughput]:
    one_megabyte = batch_of_size(MIB)[1]
    return [
        Produce(
            name="produce-small",
            title="produce, one 100-byte record, 50 connections",
            records=1,
            connections=50,
            measures=(RATE, CPU_REQUEST, P50, P99),
            goals=(
                Goal(measure="rate", at_least=0.83, against=NULL),
                Goal(measure="rate", at_least=1.75, against=KAFKA),
                Goal(measure="cpu", at_most=1.7, above=NULL),
            ),
        ),
        Produce(
            name="produce-single",
            title="produce, one connection, one request at a time",
            records=1,
            connections=1,
            measures=(P50, P99, RATE, CPU_REQUEST),
            goals=(Goal(measure="p50", at_most=1.12, against=NULL), Goal(measure="p50", at_most=1.0, against=KAFKA)),
        ),
        Produce(
            name="produce-1mb",
            title="produce, 1 MB batches, 4 connections",
            records=one_megabyte,
            connections=4,
            measures=(GIGABYTES, CPU_GIGABYTE, P50, P99),
            goals=(
                Goal(measure="gigabytes", at_least=0.7, against=KAFKA),
                Goal(measure="cpu_gigabyte", at_most=1.0, against=KAFKA),
            ),
        ),
        Fetch(
            name="fetch-1mb",
            title="fetch 1 MB from page cache, 4 connections",
            connections=4,
            batches=64,
            measures=(GIGABYTES, CPU_GIGABYTE, P50, P99),
            goals=(
                Goal(measure="gigabytes", at_least=1.0, against=KAFKA),
                Goal(measure="cpu_gigabyte", at_most=0.15),
            ),
        ),
        Fetch(
            name="fetch-16kb",
            title="fetch 16 KB from page cache, 4 connections",
            connections=4,
            batches=1,
            measures=(RATE, CPU_REQUEST, P50, P99),
            goals=(
                Goal(measure="rate", at_least=0.75, against=NULL),
                Goal(measure="rate", at_least=2.0, against=KAFKA),
            ),
        ),
    ]
