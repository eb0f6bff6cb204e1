"""Transactional producers that do nothing, with their connections: between transactions, and inside of one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench import machine
from bench.client_programs import REPOSITORY
from bench.lifecycle import brokers, restarts
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import started
from bench.wire import create_topic

TOPIC = "idle"
#: What their last answers leave to do.
SETTLE_SECONDS = 1.0
END_SECONDS_MAX = 60.0
#: Of a core, in percent: two ticks of the system's clock in ten seconds. Nothing smaller can be seen.
NOTHING = 0.2


@dataclass(frozen=True, kw_only=True)
class IdleProducers:
    """librdkafka's, all in one process; what the broker computes beside them is what it computes without them."""

    name: str = "transactions-idle"
    title: str = "50 idle transactional producers, librdkafka"
    producers: int = 50
    measures: Sequence[Measure] = (
        Measure(name="none", label="idle CPU without them", unit="% of a core", digits=2),
        Measure(name="between", label="more between transactions", unit="% of a core", digits=2),
        Measure(name="inside", label="more inside of open ones", unit="% of a core", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="between", at_most=NOTHING), Goal(measure="inside", at_most=NOTHING))

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        count = restarts(context)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as running:
                create_topic(running.port, TOPIC)

                def idle() -> float:
                    time.sleep(SETTLE_SECONDS)
                    return machine.idle_cpu_share(running.pid, context.effort.idle_seconds) * 100

                found = []
                for is_open in (False, True):
                    with self._producers(running.port, is_open=is_open):
                        found.append(idle())
                none = idle()  # at last, when all that was made for them is there
                between, inside = found
                return {"none": none, "between": max(0.0, between - none), "inside": max(0.0, inside - none)}

        context.measure_in_turns(results, brokers(context), take, lambda kind: int(count[kind]))
        return results

    @contextmanager
    def _producers(self, port: int, *, is_open: bool) -> Iterator[None]:
        words = ("idle", port, TOPIC, self.producers, int(is_open))
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.transactional_client", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=os.environ,
        )
        with process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                if process.stdout.readline() != "idle\n":
                    raise RuntimeError("the idle producers have not begun")
                yield
                process.stdin.close()
                process.wait(END_SECONDS_MAX)
            finally:
                process.kill()
