"""`ottla log dump` over one segment, as a process of its own: batches of a hundred records, and batches of one.

checked    --quiet: every checksum, every record opened
batches    --batches-only: a line a batch
records    a line a record, which is what Kafka's tool prints with --deep-iteration
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.java import java_command
from tools.kafka_jars import classpath

from bench.frames import VALUE_SIZE
from bench.lifecycle import brokers
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import OTTLA
from ottla.records.compression import LZ4, NONE
from ottla.records.record import Record, encode_batch

_SHAPES = {"hundred": (100, NONE), "one": (1, NONE), "lz4": (1, LZ4)}
_WORDS = {"checked": ("--quiet",), "batches": ("--batches-only",), "records": ()}


@dataclass(frozen=True, kw_only=True)
class Dumping:
    name: str = "dump"
    title: str = "a segment of 100-byte records read by `log dump`"
    size: int = 100_000_000
    measures: Sequence[Measure] = (
        Measure(name="hundred checked", label="checked, 100 records a batch", unit="MB/s", digits=0),
        Measure(name="one checked", label="checked, a record a batch", unit="MB/s", digits=0),
        Measure(name="lz4 checked", label="checked, a record a batch, lz4", unit="MB/s", digits=0),
        Measure(name="one batches", label="a line a batch, a record a batch", unit="MB/s", digits=0),
        Measure(name="hundred records", label="a line a record, 100 records a batch", unit="MB/s", digits=0),
    )
    goals: Sequence[Goal] = (
        Goal(measure="hundred checked", at_least=100),
        Goal(measure="one checked", at_least=100),
        Goal(measure="lz4 checked", at_least=100),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        folder = context.places.scratch / self.name
        folder.mkdir()
        segments = {shape: write_segment(folder / shape, self.size, *_SHAPES[shape]) for shape in _SHAPES}

        def take(kind: str) -> Figures:
            found: dict[str, float] = {}
            for measure in self.measures:
                shape, way = measure.name.split()
                if kind == OTTLA:
                    command = [sys.executable, "-m", "ottla", "log", "dump", *_WORDS[way], str(segments[shape])]
                elif way == "records":
                    assert context.places.kafka_jars is not None
                    command = java_command(
                        classpath(context.places.kafka_jars),
                        "org.apache.kafka.tools.DumpLogSegments",
                        *("--deep-iteration", "--print-data-log", "--files", str(segments[shape])),
                    )
                else:
                    continue  # Kafka's tool does not check alone
                found[measure.name] = self.size / 1e6 / seconds(command)
            return found

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.restarts)
        return results


def seconds(command: Sequence[str]) -> float:
    """Of the whole process: what somebody waits for."""
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def write_segment(folder: Path, size: int, records_each: int, compression: int) -> Path:
    """A log of at least so many bytes; its index is of no use here."""
    folder.mkdir()
    path = folder / f"{0:020}.log"
    chance = Random(1)
    # Text, as most values are: each byte that is none is shown as four.
    values = [chance.randbytes(VALUE_SIZE // 2).hex().encode() for _ in range(256)]
    written = offset = 0
    with path.open("wb") as file:
        while written < size:
            records = [
                Record(offset=at, timestamp=1_764_000_000_000, key=None, value=values[at % 256], headers=())
                for at in range(offset, offset + records_each)
            ]
            written += file.write(encode_batch(records, base_offset=offset, compression=compression))
            offset += records_each
    return path
