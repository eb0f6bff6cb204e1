"""One broker, several clients, and power that fails again and again: `PowerCycles(seed).run()` is one run of it.

python -m tests.testing.sim.power_cycles SEED [SEED]    prints a run's trace, or only the digests of a range
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from random import Random
from typing import Any, Final

from ottla.model import TopicPartition
from ottla.ports.memory import MemoryPorts
from ottla.testing.sim import SimulatedBroker, Simulation
from ottla.testing.sim.history import History, HistoryFault
from ottla.testing.sim.operator import Operator
from ottla.testing.sim.producer import IdempotentProducer, PlainProducer
from ottla.testing.sim.reader import follow, read_all
from ottla.testing.sim.wire import Client

#: Virtual seconds from the last fault until everything must be done.
LIVENESS_S: Final = 300.0
#: Segments of a few batches, rolled by their small index or by age; and those that everyone has.
CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"index.interval.bytes": "0", "segment.index.bytes": "64"},
    {"index.interval.bytes": "100", "segment.ms": "300"},
    {"flush.messages": "1", "retention.ms": "-1"},
)


class PowerCycles:
    def __init__(self, seed: int, *, flush: bool = True, power: bool = True) -> None:
        self.seed = seed
        self.flush = flush
        #: Whether it is the power that fails; else only processes end, and what they wrote stays.
        self.power = power
        #: Whether nothing acknowledged may be lost.
        self.durable = flush or not power
        #: No more faults.
        self.healed = False
        self.simulation = Simulation(seed)
        self.history = History(self.simulation.trace)
        self.random: Random = self.simulation.random
        directories = self.random.choice(("/data/a", "/data/a", "/data/a,/data/b"))
        self.broker: SimulatedBroker = self.simulation.broker(
            "broker",
            {
                "log.dirs": directories,
                "log.flush.interval.messages": "1" if flush else str(2**63 - 1),
                "log.flush.offset.checkpoint.interval.ms": str(self.random.choice((100, 1000, 60_000))),
                "replica.high.watermark.checkpoint.interval.ms": str(self.random.choice((100, 5000))),
                "log.segment.delete.delay.ms": str(self.random.choice((0, 500))),
            },
        )
        self.cycles_left = self.random.randint(1, 5)
        self.operator = Operator(self.client("operator"))
        self.partitions: list[TopicPartition] = []
        self.producers: list[IdempotentProducer] = []

    @property
    def trace(self) -> str:
        return self.simulation.trace.text()

    def client(self, name: str) -> Client:
        return Client(self.simulation.world.machine("clients").network, name, *self.broker.address)

    def run(self) -> None:
        """Raises what was wrong, with the seed in it."""
        with self.simulation as simulation:
            fabric = simulation.world.fabric
            fabric.chop = self.random.random() < 0.3
            if self.random.random() < 0.8:
                fabric.latency(0.05, self.random.choice((0.2, 3.0)))
            self.broker.on_start = self._begin_life
            self.broker.on_power_cut = self._restart_later
            try:
                simulation.run(self._scenario())
            except Exception as error:
                raise AssertionError(f"seed {self.seed}: {error!r}\n{simulation.trace.tail()}") from error

    # Faults

    def _begin_life(self, ports: MemoryPorts) -> None:
        random = self.random
        if random.random() < 0.7:
            ports.workers.latency_ms = (0.0, random.choice((0.5, 5.0, 30.0)))
        if self.cycles_left == 0:
            return
        self.cycles_left -= 1
        way = random.random() if self.power else 1.0
        if way < 0.45:
            # Few: in the middle of the start. Many: somewhere in the load.
            ports.disk.crash_at(random.choice((random.randint(1, 40), random.randint(30, 400))))
            # Should so many operations never come, time does it.
            self._later(random.uniform(3.0, 6.0), self._cut)
        elif way < 0.8:
            self._later(random.expovariate(1 / 0.5), self._cut)
        else:
            self._later(random.expovariate(1 / 0.5), self._end_process)

    def _later(self, seconds: float, action: Any) -> None:
        life = self.broker.lives

        def act() -> None:
            if self.broker.lives == life and self.broker.broker is not None and not self.healed:
                action()

        self.simulation.loop.call_later(seconds, act)

    def _cut(self) -> None:
        self.broker.lose_power()

    def _end_process(self) -> None:
        if self.random.random() < 0.5 or not self.broker.serving.is_set():
            self.broker.kill()
            self._restart_later()
        else:
            self._task(self._stop_and_start())

    async def _stop_and_start(self) -> None:
        life = self.broker.lives
        await self.broker.stop()
        if self.broker.lives == life and self.broker.broker is None:
            self._restart_later()

    def _restart_later(self) -> None:
        life = self.broker.lives

        def restart() -> None:
            if self.broker.lives == life and self.broker.broker is None:
                self._task(self._start())

        self.simulation.loop.call_later(self.random.uniform(0.0, 1.5), restart)

    async def _start(self) -> None:
        await self.broker.start()
        if self.broker.refusal is not None:
            raise HistoryFault(f"the broker does not start: {self.broker.refusal!r}")

    def _task(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self.simulation.loop.create_task(work)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            raise error  # the loop's handler ends the run with it

    # The scenario

    async def _scenario(self) -> None:
        self._task(self._start())
        await self._create_topics()
        followers = [
            asyncio.create_task(follow(self.client(f"follower-{tp}"), tp, self.history))
            for tp in self.random.sample(self.partitions, min(2, len(self.partitions)))
            if self.durable
        ]
        work = [asyncio.create_task(each) for each in (*self._load(), self._operate())]
        done, pending = await asyncio.wait([*work, *followers], timeout=0)
        deadline = asyncio.get_running_loop().time() + LIVENESS_S
        while not all(task.done() for task in work):
            done, pending = await asyncio.wait(
                [task for task in (*work, *followers) if not task.done()],
                timeout=deadline - asyncio.get_running_loop().time(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                task.result()
            if not done:
                raise HistoryFault(f"not done after {LIVENESS_S} s: {len(pending)} clients")
        self.cycles_left, self.healed = 0, True
        await self._last_restart()
        for task in followers:
            task.cancel()
        await self.verify()

    async def _create_topics(self) -> None:
        for number in range(self.random.randint(1, 3)):
            name, count = f"t{number}", self.random.randint(1, 3)
            await self.operator.create(name, count, self.random.choice(CONFIGS))
            self.partitions += [TopicPartition(name, partition) for partition in range(count)]

    def _load(self) -> list[Coroutine[Any, Any, None]]:
        clock = self.simulation.world.machine("clients").clock
        work: list[Coroutine[Any, Any, None]] = []
        for number in range(self.random.randint(1, 3)):
            chosen = self.random.sample(self.partitions, self.random.randint(1, len(self.partitions)))
            producer = IdempotentProducer(
                self.client(f"p{number}"),
                clock,
                self.history,
                Random(self.random.getrandbits(64)),
                sorted(chosen),
                self.random.randint(10, 60),
                acks=self.random.choice((1, -1)),
                version=self.random.choice((3, 7, 8, 9, 12)),
                padding=self.random.choice((0, 0, 900)),
                gives_up=not self.durable,
            )
            self.producers.append(producer)
            work.append(producer.run())
        if self.random.random() < 0.5:
            random = Random(self.random.getrandbits(64))
            tp = self.random.choice(self.partitions)
            work.append(PlainProducer(self.client("plain"), clock, self.history, random, tp, 10).run())
        return work

    async def _operate(self) -> None:
        """Topics that come, change and go beside the load."""
        random = Random(self.random.getrandbits(64))
        for number in range(random.randint(0, 6)):
            name = f"x{random.randint(0, 2)}"
            known = self.operator.topics.get(name)
            if known is None:
                await self.operator.create(name, random.randint(1, 3), random.choice(CONFIGS))
            elif random.random() < 0.4:
                await self.operator.delete(name)
            elif random.random() < 0.5:
                await self.operator.alter(name, "retention.ms", str(1_000_000 + number))
            else:
                await self.operator.grow(name, known.partitions + 1)
            await asyncio.sleep(random.expovariate(1 / 0.2))

    async def _last_restart(self) -> None:
        await self.broker.serving.wait()
        self.broker.ports.disk.crash_at(0)  # what was planned and has not come
        way = self.random.choice(("none", "stop", "kill", "power" if self.power else "kill"))
        if way == "none":
            return
        if way == "stop":
            await self.broker.stop()
        elif way == "kill":
            self.broker.kill()
        else:
            self.broker.on_power_cut = None
            self.broker.lose_power()
        await self._start()

    async def verify(self) -> None:
        reader = self.client("reader")
        await self.operator.check(reader)
        for tp in self.partitions:
            self.history.check(tp, await read_all(reader, tp), durable=self.durable)


def main(arguments: list[str]) -> None:
    seeds = [int(each) for each in arguments]
    for seed in range(seeds[0], seeds[-1] + 1):
        cycles = PowerCycles(seed)
        try:
            cycles.run()
        finally:
            if len(seeds) == 1:
                print(cycles.trace)
        print(seed, cycles.simulation.trace.digest())


if __name__ == "__main__":
    main(sys.argv[1:])
