"""Produce and fetch under the raw load generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.frames import TOPIC, batch, batch_of_size, fetch, produce
from bench.load import Outcome, Work, run
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import KAFKA, NULL, Running
from bench.wire import create_topic, delete_topic, end_offsets, fresh_topic

KIB, MIB = 1 << 10, 1 << 20

RATE = Measure(name="rate", label="rate", unit="k requests/s", digits=1)
GIGABYTES = Measure(name="gigabytes", label="rate", unit="GB/s", digits=2)
CPU_REQUEST = Measure(name="cpu", label="server CPU", unit="us a request (s a million)", digits=1)
CPU_GIGABYTE = Measure(name="cpu_gigabyte", label="server CPU", unit="s a GB", digits=3)
P50 = Measure(name="p50", label="p50", unit="us")
P99 = Measure(name="p99", label="p99", unit="us")

#: What one round may write to the disk: little enough that the kernel does not begin to write it out meanwhile.
WRITTEN_MAX = 2 * 10**9


def figures(outcome: Outcome) -> Figures:
    return {
        "rate": outcome.rate / 1000,
        "gigabytes": outcome.gigabytes_per_second,
        "cpu": outcome.cpu_microseconds_per_request,
        "cpu_gigabyte": outcome.cpu_seconds_per_gigabyte,
        "p50": outcome.p50,
        "p99": outcome.p99,
    }


@dataclass(frozen=True, kw_only=True)
class Produce:
    """The same Produce request over and over, to one partition."""

    name: str
    title: str
    records: int
    connections: int
    measures: Sequence[Measure]
    goals: Sequence[Goal]

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        frame = produce(batch(self.records))
        work = Work(frame=frame, connections=self.connections, seconds=context.effort.seconds)
        if len(frame.request) > 10 * KIB:
            work = replace(work, limit=WRITTEN_MAX // len(frame.request))
        warmed: set[str] = set()

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            if kind not in warmed:
                warmed.add(kind)
                self._measure(
                    context, running, replace(work, seconds=context.effort.warm_seconds, limit=work.limit * 2)
                )
            return figures(self._measure(context, running, work))

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        return results

    def _measure(self, context: Context, running: Running, work: Work) -> Outcome:
        """To a topic that is empty, and gone afterwards: neither size nor its deletion burdens the next."""
        if running.kind == NULL:
            return run(work, running, context.places)
        fresh_topic(running.port, TOPIC)
        try:
            return run(work, running, context.places)
        finally:
            delete_topic(running.port, TOPIC)


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """Fetches of one size from a partition of 16 KB batches that lies in the page cache."""

    name: str
    title: str
    batches: int
    measures: Sequence[Measure]
    goals: Sequence[Goal]

    #: As long as the topic of the null server's answers, so that error codes stand at the same place.
    TOPIC = "fetch"
    FILLED = 256 * MIB

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        data, records = batch_of_size(16 * KIB)
        work = Work(
            frame=fetch(len(data) * self.batches, topic=self.TOPIC),
            connections=4,
            seconds=context.effort.seconds,
            offset_step=records * self.batches,
        )
        ends: dict[str, int] = {}

        def take(kind: str) -> Figures:
            running = context.shared(kind, null_fetch_bytes=len(data) * self.batches)
            if kind not in ends:
                ends[kind] = self._fill(context, running, data)
                run(self._bounded(work, ends[kind], context.effort.warm_seconds), running, context.places)
            return figures(run(self._bounded(work, ends[kind], work.seconds), running, context.places))

        context.measure_in_turns(results, context.kinds, take, lambda _: context.effort.rounds)
        return results

    @staticmethod
    def _bounded(work: Work, end: int, seconds: float) -> Work:
        return replace(work, offset_end=end - work.offset_step, seconds=seconds)

    def _fill(self, context: Context, running: Running, data: bytes) -> int:
        """Writes the partition unless it is there already; returns its end."""
        if running.kind == NULL:
            return 1 << 40
        frame = produce(data, topic=self.TOPIC)
        found = self._end(running)
        if found is None:
            create_topic(running.port, self.TOPIC)
            filling = Work(frame=frame, connections=1, depth=16, warm=0, seconds=60, limit=self.FILLED // len(data))
            run(filling, running, context.places)
            found = self._end(running)
        assert found, "the partition stayed empty"
        return found

    def _end(self, running: Running) -> int | None:
        ends = end_offsets(running.port, self.TOPIC, 1)
        return ends[0] if ends else None


def scenarios() -> list[Produce | Fetch]:
    one_megabyte = batch_of_size(MIB)[1]
    return [
        Produce(
            name="produce-small",
            title="produce, one 100-byte record, 50 connections",
            records=1,
            connections=50,
            measures=(RATE, CPU_REQUEST, P50, P99),
            goals=(
                Goal(measure="rate", at_least=0.5, against=NULL),
                Goal(measure="rate", at_least=1.75, against=KAFKA),
                Goal(measure="cpu", at_most=10),
            ),
        ),
        Produce(
            name="produce-single",
            title="produce, one connection, one request at a time",
            records=1,
            connections=1,
            measures=(P50, P99, RATE, CPU_REQUEST),
            goals=(Goal(measure="p50", at_most=1.0, against=KAFKA),),
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
            batches=64,
            measures=(GIGABYTES, CPU_GIGABYTE, P50, P99),
            goals=(Goal(measure="cpu_gigabyte", at_most=1.0, against=KAFKA),),
        ),
        Fetch(
            name="fetch-16kb",
            title="fetch 16 KB from page cache, 4 connections",
            batches=1,
            measures=(RATE, CPU_REQUEST, P50, P99),
            goals=(Goal(measure="rate", at_least=2.0, against=KAFKA),),
        ),
    ]
