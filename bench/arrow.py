"""Records to Arrow and back: in memory, by the processor's time of one core; and off the wire, from a broker on the
other.

A record is a line of JSON of 100 bytes: what letters drawn at random cost to compress and to unfold is nobody's case.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from bench import machine
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import NULL, OTTLA, Running
from bench.wire import create_topic, delete_topic
from ottla.arrow.decoding import decode
from ottla.arrow.encoding import BATCH_BYTES, RECORD_BYTES_MAX, Encoder
from ottla.arrow.plain_encoding import WriteBounds
from ottla.arrow.schema import COLUMNS, DEFAULT_COLUMNS
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.records.batch import iterate
from ottla.records.builder import BatchBuilder, Headers
from ottla.records.compression import CODECS

NOW = 1_764_000_000_000
VALUE_BYTES = 100
#: As a fetch of a partition brings them.
STRETCH_BYTES = 1 << 20
SMALL, LARGE = 150, 10_000
TWO_HEADERS: Headers = (("trace", b"12345678"), ("kind", b"created!"))
#: Passes over the same bytes, of which the best counts: the first ones take the memory that later ones find.
PASSES = 8


def values(count: int) -> list[bytes]:
    chance = Random(1)
    found = []
    for number in range(count):
        order = {
            "order": number,
            "customer": chance.randrange(10**6),
            "cents": chance.randrange(10**5),
            "currency": "EUR",
            "state": "paid",
        }
        found.append(json.dumps(order).encode().ljust(VALUE_BYTES)[:VALUE_BYTES])
    return found


def stretches(count: int, a_batch: int, codec: str, headers: Headers) -> list[bytes]:
    """Batches of so many records, in stretches of a fetch's size."""
    lines = values(count)
    raws = []
    for start in range(0, count, a_batch):
        builder = BatchBuilder()
        for line in lines[start : start + a_batch]:
            builder.append(NOW + start, None, line, headers)
        raws.append(builder.build(compression=CODECS[codec], base_offset=start))
    whole = b"".join(raws)
    found, start, end = [], 0, 0
    for pos, header in iterate(whole, 0, len(whole)):
        if pos + header.size - start > STRETCH_BYTES and end > start:
            found.append(whole[start:end])
            start = end
        end = pos + header.size
    return [*found, whole[start:end]]


def best_rate(count: int, work: Callable[[], int]) -> float:
    """Millions of rows for each second of the processor."""
    best = 0.0
    for _ in range(PASSES):
        began = time.process_time()
        rows = work()
        taken = time.process_time() - began
        if rows != count:
            raise RuntimeError(f"{rows} rows, not {count}")
        best = max(best, rows / taken / 1e6)
    return best


def _rate(name: str, label: str) -> Measure:
    return Measure(name=name, label=label, unit="M records/s of CPU", digits=1)


async def fill(running: Running, topic: str, records: int) -> None:
    """Records of 100 bytes."""
    piece = records // 10
    table = pa.table({"value": pa.array(values(piece), pa.binary())})
    async with Producer(bootstrap_servers=f"127.0.0.1:{running.port}") as producer:
        for _ in range(records // piece):
            await producer.send_arrow(table, topic)


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Checksums compared, all columns but headers, unless they are named."""

    name: str = "arrow-decode"
    title: str = "100-byte records to Arrow"
    count: int = 300_000
    measures: Sequence[Measure] = (
        *(_rate(f"{codec} {SMALL}", f"{codec}, {SMALL} a batch") for codec in ("none", "lz4", "zstd")),
        *(_rate(f"{codec} {LARGE}", f"{codec}, {LARGE:,} a batch") for codec in ("none", "lz4", "zstd")),
        _rate("headers", f"none, {SMALL} a batch, two headers a record"),
    )
    goals: Sequence[Goal] = (
        Goal(measure=f"none {SMALL}", at_least=20),
        Goal(measure=f"lz4 {SMALL}", at_least=9),
        Goal(measure=f"zstd {SMALL}", at_least=6),
        Goal(measure=f"none {LARGE}", at_least=20),
        Goal(measure=f"lz4 {LARGE}", at_least=12),
        Goal(measure=f"zstd {LARGE}", at_least=10),
        Goal(measure="headers", at_least=14),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        context.tell("  making batches")
        shapes: dict[str, tuple[list[bytes], tuple[str, ...]]] = {
            f"{codec} {size}": (stretches(self.count, size, codec, ()), DEFAULT_COLUMNS)
            for codec in ("none", "lz4", "zstd")
            for size in (SMALL, LARGE)
        }
        shapes["headers"] = (stretches(self.count, SMALL, "none", TWO_HEADERS), COLUMNS)

        def take(_kind: str) -> Figures:
            return {name: best_rate(self.count, _reader(*shape)) for name, shape in shapes.items()}

        ours = [kind for kind in context.kinds if kind == OTTLA]
        if ours:
            context.measure_in_turns(results, ours, take, lambda _: context.effort.rounds)
        return results


def _reader(raws: list[bytes], columns: tuple[str, ...]) -> Callable[[], int]:
    def read() -> int:
        return sum(
            batch.num_rows for raw in raws for batch in decode(raw, topic="orders", partition=3, columns=columns)
        )

    return read


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """To four partitions, not compressed, checksums and all."""

    name: str = "arrow-encode"
    title: str = "Arrow to batches of 100-byte records"
    count: int = 300_000
    measures: Sequence[Measure] = (_rate("without", "without keys"), _rate("keys", "with keys (murmur2)"))
    goals: Sequence[Goal] = (Goal(measure="without", at_least=20), Goal(measure="keys", at_least=16))

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        column = pa.array(values(self.count), pa.binary())
        chance = Random(2)
        keys = pa.array([b"key-%08d" % chance.randrange(10**6) for _ in range(self.count)])
        tables = {"without": pa.table({"value": column}), "keys": pa.table({"value": column, "key": keys})}

        def take(_kind: str) -> Figures:
            return {name: best_rate(self.count, _writer(table)) for name, table in tables.items()}

        ours = [kind for kind in context.kinds if kind == OTTLA]
        if ours:
            context.measure_in_turns(results, ours, take, lambda _: context.effort.rounds)
        return results


def _writer(table: Any) -> Callable[[], int]:
    def write() -> int:
        encoder = Encoder(WriteBounds(4, NOW, BATCH_BYTES, RECORD_BYTES_MAX))
        return sum(batch.count for batch in encoder.batches(table))

    return write


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One consumer, the broker on the other core; and the same topic by `poll`, for comparison."""

    name: str = "arrow-wire"
    title: str = "a topic of 100-byte records, consumed"
    partitions: int = 4
    records: int = 4_000_000
    #: What making objects of takes about as long.
    polled: int = 400_000
    measures: Sequence[Measure] = (
        Measure(name="arrow", label="as Arrow", unit="M records/s", digits=2),
        Measure(name="arrow cpu", label="as Arrow", unit="M records/s of the client's CPU", digits=2),
        Measure(name="objects", label="as objects", unit="M records/s", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="arrow", at_least=8),)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        filled: set[str] = set()

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            if kind not in filled:
                create_topic(running.port, self.name, self.partitions)
                asyncio.run(fill(running, self.name, self.records))
                filled.add(kind)
            with apart(running):
                return asyncio.run(self._consume(running))

        kinds = [kind for kind in context.kinds if kind != NULL]
        try:
            context.measure_in_turns(results, kinds, take, lambda _: context.effort.rounds)
        finally:
            for kind in filled:
                delete_topic(context.shared(kind).port, self.name)
        return results

    async def _consume(self, running: Running) -> Figures:
        rate, cpu = await self._timed(running, self.records, _rows)
        objects, _ = await self._timed(running, self.polled, _polled)
        return {"arrow": rate, "arrow cpu": cpu, "objects": objects}

    async def _timed(self, running: Running, count: int, take: Callable[[Consumer], Any]) -> tuple[float, float]:
        """Millions a second, of the clock and of the processor, from the first that came."""
        async with Consumer(bootstrap_servers=f"127.0.0.1:{running.port}", auto_offset_reset="earliest") as consumer:
            consumer.assign(await consumer.partitions_for(self.name))
            await take(consumer)
            began, used, read = time.perf_counter(), time.process_time(), 0
            while read < count // 2:
                read += await take(consumer)
            return read / (time.perf_counter() - began) / 1e6, read / (time.process_time() - used) / 1e6


async def _rows(consumer: Consumer) -> int:
    return int((await consumer.poll_arrow()).num_rows)


async def _polled(consumer: Consumer) -> int:
    return len(await consumer.poll())


@contextmanager
def apart(running: Running) -> Iterator[None]:
    """The server on one core, and this process on the other, where there are two."""
    cores = sorted(machine.cores())
    machine.pin(running.pid, set(cores[:1]))
    machine.pin(os.getpid(), set(cores[1:]) or set(cores))
    try:
        yield
    finally:
        machine.pin(running.pid, set(cores))
        machine.pin(os.getpid(), set(cores))


def shared_scenarios() -> list[Wire]:
    return [Wire()]


def scenarios() -> list[Decoding | Encoding]:
    return [Decoding(), Encoding()]
