"""The log cleaner: a large log of many keys, against Kafka's over the same bytes; and what it costs those who write."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench import machine
from bench.frames import VALUE_SIZE, batch, produce
from bench.lifecycle import brokers
from bench.load import Outcome, Work, run
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import KAFKA, OTTLA, Places, Running, started
from bench.wire import Wire, create_topic, delete_topic, set_topic
from ottla.model import ErrorCode
from ottla.protocol.generated.produce import ProduceResponse
from ottla.protocol.header import decode_response_header
from ottla.records.record import Record, encode_batch
from ottla.storage.formats import offset_checkpoint

TOPIC, WRITTEN = "compacted", "written"
CLEANING_SECONDS_MAX = 600.0
#: So that both look at once whether something is to be cleaned.
PROPERTIES = {"log.cleaner.backoff.ms": "100"}
SEGMENT_BYTES = 100 << 20
#: Nothing is dirtier than that, and everything is dirtier than the other.
NEVER, NOW = "1.0", "0.01"
RATIO = "min.cleanable.dirty.ratio"


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Filled while nothing is cleaned; then the dirty ratio is set, and time runs until the checkpoint says done."""

    name: str = "compaction"
    title: str = "cleaning 1 GB of 100-byte records, 1 M keys"
    size: int = 1_000_000_000
    keys: int = 1_000_000
    records_each: int = 8_000
    connections: int = 50
    measures: Sequence[Measure] = (
        Measure(name="seconds", label="time", unit="s", digits=1),
        Measure(name="memory", label="the cleaner's memory (peak RSS)", unit="MB", digits=0),
        Measure(name="before", label="produce p99 at half load, before", unit="us"),
        Measure(name="meanwhile", label="and while a log is cleaned", unit="us"),
        Measure(name="times", label="so many times as long", unit="", digits=2),
    )
    goals: Sequence[Goal] = (
        Goal(measure="seconds", at_most=1.2, against=KAFKA),
        # 128 MB of log.cleaner.dedupe.buffer.size, buffers, and an interpreter.
        Goal(measure="memory", at_most=180),
        Goal(measure="times", at_most=2),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        frames = context.places.scratch / "compaction-frames"
        context.tell("  making a log")
        self._write_frames(frames)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places, properties=PROPERTIES) as running:
                return self._measure(running, frames, context)

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.restarts)
        frames.unlink()
        return results

    def _measure(self, running: Running, frames: Path, context: Context) -> Figures:
        folder = context.places.scratch / f"{self.name}-{running.kind}"
        seconds = self._clean(running, frames, folder)
        found = {"seconds": seconds}
        if running.kind == OTTLA:
            # Where it is a process of its own.
            found["memory"] = max(map(machine.peak_memory, machine.children(running.pid))) / 1e6
        delete_topic(running.port, TOPIC)
        create_topic(running.port, WRITTEN)
        self._fill(running.port, frames)
        os.sync()  # else the kernel writes all of it out while it is measured, with or without a cleaner
        effort = context.effort
        self._load(running, context.places, effort.warm_seconds)
        rate = int(self._load(running, context.places, effort.seconds).rate / 2)
        found["before"] = self._load(running, context.places, effort.seconds, rate).p99
        set_topic(running.port, TOPIC, **{RATIO: NOW})
        found["meanwhile"] = self._load(running, context.places, effort.seconds, rate).p99
        if cleaned_up_to(folder) > 0:
            context.tell(f"  {running.kind}: the cleaner was done before the load was")
        return {**found, "times": found["meanwhile"] / found["before"]}

    def _clean(self, running: Running, frames: Path, folder: Path) -> float:
        self._fill(running.port, frames)
        (log,) = folder.rglob(f"{TOPIC}-0")
        active = max(int(path.stem) for path in log.glob("*.log"))
        set_topic(running.port, TOPIC, **{RATIO: NOW})
        began = time.monotonic()
        while cleaned_up_to(folder) < active:
            if time.monotonic() > began + CLEANING_SECONDS_MAX:
                raise TimeoutError(f"cleaned up to {cleaned_up_to(folder)} of {active}")
            time.sleep(0.05)
        return time.monotonic() - began

    def _load(self, running: Running, places: Places, seconds: float, rate: int = 0) -> Outcome:
        frame = produce(batch(1), topic=WRITTEN)
        return run(Work(frame=frame, connections=self.connections, seconds=seconds, rate=rate), running, places)

    # -- the log

    def _write_frames(self, path: Path) -> None:
        """Requests of a batch each; every one of the keys about as often as the others."""
        chosen = Random(1)
        now = int(time.time() * 1000)
        value = chosen.randbytes(VALUE_SIZE)
        written = 0
        with path.open("wb") as file:
            while written < self.size:
                keys = chosen.choices(range(self.keys), k=self.records_each)
                records = [
                    Record(offset=at, timestamp=now, key=b"key-%08d" % key, value=value, headers=())
                    for at, key in enumerate(keys)
                ]
                data = encode_batch(records)
                file.write(produce(data, topic=TOPIC).request)
                written += len(data)

    @staticmethod
    def _fill(port: int, frames: Path) -> None:
        create_topic(port, TOPIC, cleanup_policy="compact", segment_bytes=str(SEGMENT_BYTES))
        set_topic(port, TOPIC, **{RATIO: NEVER})
        with Wire(port) as wire:
            for frame in requests_in(frames):
                answer = wire.exchange(frame)
                _, _, start = decode_response_header(answer, 0, 9)
                said = ProduceResponse.decode(answer, 9, start)[0].responses[0].partition_responses[0]
                if said.error_code != ErrorCode.NONE:
                    raise RuntimeError(f"Produce: error {said.error_code}")


def requests_in(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while head := file.read(4):
            yield head + file.read(int.from_bytes(head, "big"))


def cleaned_up_to(folder: Path) -> int:
    """What the only checkpoint of a cleaner in ``folder`` says; 0 where there is none."""
    for path in folder.rglob(offset_checkpoint.CLEANER_OFFSETS):
        for partition, offset in offset_checkpoint.decode(path.read_bytes()).items():
            if partition.topic == TOPIC:
                return offset
    return 0


def scenarios() -> list[Compaction]:
    return [Compaction()]
