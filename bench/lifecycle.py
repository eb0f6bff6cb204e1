"""Starting, stopping and doing nothing: with an empty broker, with many partitions, with many connections."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tools.ottla_server import ottla_up
from tools.server_process import ServerProcess, raise_open_files_limit

from bench import machine
from bench.frames import batch_of_size, produce
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import KAFKA, OTTLA, Running, make, started
from bench.wire import HOST, Wire, WireError, create_topic, end_offsets, wait_for_offsets

MIB = 1 << 20
TOPIC = "many"
PARTITIONS = 1500
BATCH_BYTES = 16 << 10
#: Partitions of one request when they are filled: about a megabyte.
FILLED_AT_ONCE = 60
BATCHES_EACH = 64
RESTART_SECONDS_MAX = 300.0
#: Until caches are filled and delayed work is done.
SETTLE_SECONDS = 2.0

RESIDENT = Measure(name="resident", label="memory (RSS)", unit="MB", digits=1)
PROPORTIONAL = Measure(name="proportional", label="memory (PSS)", unit="MB", digits=1)
CLEAN = Measure(name="clean", label="clean restart", unit="s", digits=2)
KILLED = Measure(name="killed", label="restart after SIGKILL", unit="s", digits=2)
STOP = Measure(name="stop", label="stop", unit="s", digits=2)
IDLE = Measure(name="idle", label="idle CPU", unit="% of a core", digits=2)


#: Of what a broker remembers, whatever that is.
MORE = Measure(name="more", label="memory more (RSS)", unit="MB", digits=1)
LOADED = Measure(name="loaded", label="memory more after a restart (RSS)", unit="MB", digits=1)


def brokers(context: Context) -> list[str]:
    return [kind for kind in context.kinds if kind in {OTTLA, KAFKA}]


def restarts(context: Context) -> Figures:
    return {OTTLA: context.effort.restarts, KAFKA: context.effort.kafka_restarts}


def memory_figures(pid: int) -> dict[str, float]:
    found = machine.memory(pid)
    return {"resident": found.resident / 1e6, "proportional": found.shared_out / 1e6}


def remembered(running: Running, fill: Callable[[], object], is_back: Callable[[Wire], bool]) -> dict[str, float]:
    """What a broker needs for what `fill` gives it, and how long restarts take until all of that is there again."""
    server = running.server
    time.sleep(1)
    before = machine.memory(server.pid).resident
    fill()
    more = machine.memory(server.pid).resident - before
    server.kill()
    killed = _until_back(running, is_back)
    server.stop()
    clean = _until_back(running, is_back)
    loaded = machine.memory(server.pid).resident - before
    return {"more": more / 1e6, "loaded": loaded / 1e6, "killed": killed, "clean": clean}


def _until_back(running: Running, is_back: Callable[[Wire], bool]) -> float:
    began = running.server.launch()
    deadline = began + RESTART_SECONDS_MAX
    running.server.wait_until_answering(deadline)
    with Wire(running.port) as wire:
        while not is_back(wire):
            if time.monotonic() > deadline:
                raise WireError("what it has to remember is not there again")
            time.sleep(0.01)
    return time.monotonic() - began


@dataclass(frozen=True, kw_only=True)
class Start:
    """From the start of the process over an empty folder to its first answer to Metadata."""

    name: str = "start"
    title: str = "start of an empty broker"
    measures: Sequence[Measure] = (
        Measure(name="first", label="to the first Metadata answer", unit="ms"),
        RESIDENT,
        PROPORTIONAL,
    )
    goals: Sequence[Goal] = (Goal(measure="first", at_most=250), Goal(measure="resident", at_most=40))

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        count = restarts(context)

        def take(kind: str) -> Figures:
            server = make(kind, f"start-{kind}", context.places)  # formats Kafka's folder, which is no part of the time
            if kind == OTTLA:  # a person's first command rather than a prepared file
                server = ottla_up(context.places.scratch / "start-up" / f"{time.monotonic_ns()}")
            try:
                seconds = server.start()
                time.sleep(0.5)
                return {"first": seconds * 1000, **memory_figures(server.pid)}
            finally:
                server.kill()

        context.measure_in_turns(results, brokers(context), take, lambda kind: int(count[kind]) + 2)
        return results


@dataclass(frozen=True, kw_only=True)
class ManyPartitions:
    """1,500 partitions, empty or with a megabyte each. Up means that every one of them says where it ends."""

    name: str
    title: str
    filled: bool
    measures: Sequence[Measure]
    goals: Sequence[Goal]

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        count = restarts(context)

        def take(kind: str) -> Figures:
            # Anew each time: only what was never flushed burdens the restart after SIGKILL.
            with started(kind, f"{self.name}-{kind}", context.places) as running:
                end = self._prepare(context, running)
                return self._restart(context, running.server, end)

        context.measure_in_turns(results, brokers(context), take, lambda kind: int(count[kind]))
        return results

    def _prepare(self, context: Context, running: Running) -> int:
        context.tell(f"  {running.kind}: making {PARTITIONS} partitions")
        create_topic(running.port, TOPIC, PARTITIONS)
        if not self.filled:
            return 0
        data, records = batch_of_size(BATCH_BYTES)
        with Wire(running.port) as wire:
            for first in range(0, PARTITIONS, FILLED_AT_ONCE):
                some = range(first, min(first + FILLED_AT_ONCE, PARTITIONS))
                frame = produce(data, topic=TOPIC, partitions=some).request
                for _ in range(BATCHES_EACH):
                    wire.exchange(frame)
        ends = end_offsets(running.port, TOPIC, PARTITIONS)
        assert ends is not None, "no ends after all was written"
        assert set(ends) == {records * BATCHES_EACH}, sorted(set(ends))
        return ends[0]

    def _restart(self, context: Context, server: ServerProcess, end: int) -> Figures:
        server.kill()
        found = {"killed": self._up(server, end)}
        found["stop"] = server.stop(RESTART_SECONDS_MAX)
        found["clean"] = self._up(server, end)
        time.sleep(SETTLE_SECONDS)
        found |= memory_figures(server.pid)
        found["idle"] = machine.idle_cpu_share(server.pid, context.effort.idle_seconds) * 100
        return found

    @staticmethod
    def _up(server: ServerProcess, end: int) -> float:
        began = server.launch()
        server.wait_until_answering(began + RESTART_SECONDS_MAX)
        wait_for_offsets(server.port, TOPIC, PARTITIONS, began + RESTART_SECONDS_MAX, end)
        return time.monotonic() - began


@dataclass(frozen=True, kw_only=True)
class IdleConnections:
    """Ten thousand clients that said hello and nothing more."""

    name: str = "connections"
    title: str = "10,000 idle connections"
    count: int = 10_000
    measures: Sequence[Measure] = (
        Measure(name="more", label="memory more (RSS)", unit="MB", digits=1),
        IDLE,
    )
    goals: Sequence[Goal] = (Goal(measure="more", at_most=10),)

    #: ApiVersions v0 from a client without a name.
    HELLO = struct.pack(">ihhih", 10, 18, 0, 1, -1)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        limit = raise_open_files_limit()
        if limit < self.count + 500:
            results.failures[OTTLA] = f"the system allows {limit} open files a process (ulimit -Hn)"
            return results

        def take(kind: str) -> Figures:
            with started(kind, f"connections-{kind}", context.places) as running, ExitStack() as stack:
                time.sleep(0.5)
                before = machine.memory(running.pid).resident
                for _ in range(self.count):
                    connection = stack.enter_context(socket.create_connection((HOST, running.port), timeout=30))
                    connection.sendall(self.HELLO)
                    if len(connection.recv(4096)) < 10:
                        raise RuntimeError("a connection was not served")
                time.sleep(SETTLE_SECONDS)
                more = (machine.memory(running.pid).resident - before) / 1e6
                idle = machine.idle_cpu_share(running.pid, context.effort.idle_seconds / 2) * 100
                return {"more": more, "idle": idle}

        context.measure_in_turns(results, brokers(context), take, lambda _: 1)
        return results


def scenarios() -> list[Start | ManyPartitions | IdleConnections]:
    return [
        Start(),
        ManyPartitions(
            name="partitions-empty",
            title=f"{PARTITIONS:,} empty partitions",
            filled=False,
            measures=(CLEAN, KILLED, STOP, RESIDENT, PROPORTIONAL, IDLE),
            goals=(
                Goal(measure="clean", at_most=1),
                Goal(measure="killed", at_most=2),
                Goal(measure="stop", at_most=1),
                Goal(measure="resident", at_most=120),
                Goal(measure="idle", at_most=1),
            ),
        ),
        ManyPartitions(
            name="partitions-1mb",
            title=f"{PARTITIONS:,} partitions of 1 MB",
            filled=True,
            measures=(CLEAN, KILLED, STOP, RESIDENT, PROPORTIONAL, IDLE),
            goals=(Goal(measure="clean", at_most=1), Goal(measure="killed", at_most=5)),
        ),
        IdleConnections(),
    ]
