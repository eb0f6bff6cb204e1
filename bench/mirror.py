"""`ottla mirror`'s copy of one partition, beside a plain copy by the same client, which sends what it has fetched.

Two brokers of ours, each a cluster: they share a core, and the copying process has the other. Bytes are those of the
batches as they lie in the log, compressed where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench import machine
from bench.arrow import NOW, values
from bench.client_programs import figures_of
from bench.copying import copy_of
from bench.frames import batch_of_size, produce
from bench.load import Work
from bench.load import run as run_load
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import OTTLA, Running, load_core, started
from bench.throughput import BATCH, MIB
from bench.wire import create_topic, delete_topic, end_offsets
from ottla.records.builder import BatchBuilder
from ottla.records.compression import CODECS

COPIED_BYTES = 512 * MIB
RATE_MIN = 400.0
SHARE_MIN = 0.8
WAYS = ("mirror", "plain")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Batches of a topic."""

    name: str
    label: str
    size: int
    codec: str = "none"

    def batch(self) -> tuple[bytes, int]:
        """One of them, and how many records it has."""
        if self.codec == "none":
            return batch_of_size(self.size)
        builder, lines = BatchBuilder(), values(self.size // 100)
        for line in lines:
            builder.append(NOW, None, line, ())
        return builder.build(compression=CODECS[self.codec]), len(lines)


SHAPES = (
    Shape(name="none", label="1 MB batches", size=MIB),
    Shape(name="lz4", label="1 MB batches, lz4", size=MIB, codec="lz4"),
    Shape(name="small", label="16 KB batches", size=BATCH),
)


def _measures(shape: Shape) -> Sequence[Measure]:
    name, label = shape.name, shape.label
    return (
        Measure(name=f"{name} mirror", label=f"{label}, mirror", unit="MB/s"),
        Measure(name=f"{name} plain", label=f"{label}, plain copy", unit="MB/s"),
        Measure(name=f"{name} mirror cpu", label=f"{label}, mirror's CPU", unit="ms a MB", digits=2),
        Measure(name=f"{name} plain cpu", label=f"{label}, plain copy's CPU", unit="ms a MB", digits=2),
        Measure(
            name=f"{name} reached",
            label=f"{label}: of {RATE_MIN:.0f} MB/s or of {SHARE_MIN:.0%} of a plain copy, what is nearer",
            unit="times",
            digits=2,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Mirroring:
    name: str = "mirror"
    title: str = "one partition of 512 MB into another cluster"
    measures: Sequence[Measure] = tuple(measure for shape in SHAPES for measure in _measures(shape))
    goals: Sequence[Goal] = tuple(Goal(measure=f"{shape.name} reached", at_least=1.0) for shape in SHAPES)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        if OTTLA not in context.kinds:
            return results
        source = context.shared(OTTLA)
        with started(OTTLA, "mirror-target", context.places) as target:
            cores = machine.cores()
            try:
                ends = {shape: self._filled(context, source, shape) for shape in SHAPES}
                for running in (source, target):
                    machine.pin(running.pid, cores - load_core() or cores)
                take = partial(self._take, source, target, ends)
                context.measure_in_turns(results, [OTTLA], lambda _: take(), lambda _: context.effort.rounds)
            finally:
                machine.pin(source.pid, cores)
                for shape in SHAPES:
                    delete_topic(source.port, self._topic(shape))
        return results

    def _topic(self, shape: Shape) -> str:
        return f"mirror-{shape.name}"

    def _filled(self, context: Context, source: Running, shape: Shape) -> int:
        """Writes the topic; returns its end."""
        topic = self._topic(shape)
        data, _ = shape.batch()
        delete_topic(source.port, topic)
        create_topic(source.port, topic)
        work = Work(
            frame=produce(data, topic=topic),
            connections=1,
            depth=4,
            warm=0,
            seconds=60,
            limit=COPIED_BYTES // len(data),
        )
        run_load(work, source, context.places)
        ends = end_offsets(source.port, topic, 1)
        assert ends, "the topic stayed empty"
        return ends[0]

    def _take(self, source: Running, target: Running, ends: dict[Shape, int]) -> Figures:
        found: dict[str, float] = {}
        for shape, end in ends.items():
            data, records = shape.batch()
            megabytes = end / records * len(data) / 1e6
            for way in WAYS:
                topic = self._topic(shape)
                words = [way, source.port, target.port, topic, end]
                try:
                    seconds, used = figures_of("bench.copying", *words, cores=load_core())
                finally:
                    delete_topic(target.port, copy_of(topic))
                found[f"{shape.name} {way}"] = megabytes / seconds
                found[f"{shape.name} {way} cpu"] = used * 1000 / megabytes
            mirror, plain = found[f"{shape.name} mirror"], found[f"{shape.name} plain"]
            found[f"{shape.name} reached"] = max(mirror / RATE_MIN, mirror / plain / SHARE_MIN)
        return found
