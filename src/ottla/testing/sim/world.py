"""Simulated machines with brokers on them: started, killed, cut off from power, and started again.

A broker is assembled by `ottla.app` and runs as it is. Each of its lives is a process: what it starts (tasks, timers)
carries a mark in its context, and ends with it. After a power cut its disk keeps what was synced and any part of the
rest; its clients hear nothing, as from a machine that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, Final, Self, TypeVar

from ottla import logs
from ottla.app import assemble
from ottla.broker.broker import Broker, StartFault
from ottla.config import Config, ConfigError
from ottla.coordination.errors import CoordinationError
from ottla.ports.memory import MemoryPorts, SimulatedCrash, World
from ottla.ports.memory.loop import cancel_all
from ottla.storage.directories.errors import DirectoryError
from ottla.testing.sim.trace import Trace

T = TypeVar("T")

PORT: Final = 9092
#: What brokers are configured with unless a test says otherwise.
PROPERTIES: Final[Mapping[str, str]] = {
    "listeners": f"PLAINTEXT://:{PORT}",
    "log.dirs": "/data/a",
    "log.flush.interval.messages": "1",
}


#: What may keep a broker from starting: the command line says each of them in one line.
REFUSALS: Final = (StartFault, ConfigError, DirectoryError, CoordinationError, OSError)


class BrokerFault(Exception):
    """A broker did what no broker may do: it did not start, or a call-back of it raised."""


class Life:
    """One process, from its start to its end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended = False
        self.tasks: list[asyncio.Task[Any]] = []


_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class Simulation:
    """One world from one seed. It is a context manager: brokers' log lines go into its trace while it is open."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        #: For choices of the scenario; those of the world come from generators of their own.
        self.random = Random(f"scenario {seed}")
        self.world = World(seed)
        self.loop = self.world.loop
        self.trace = Trace(self.loop.timeline)
        self.brokers: list[SimulatedBroker] = []
        self._fault: BaseException | None = None
        self.loop.set_task_factory(_task_of_a_life)
        self.loop.set_exception_handler(self._unhandled)
        self.loop.after_turn = self._look

    def __enter__(self) -> Self:
        clock = self.world.machine("observer").clock
        self._logs_before = logs.configure(sink=self.trace.log_line, clock=lambda: clock.wall_ms() / 1000)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.after_turn = None
        self.loop.set_exception_handler(lambda *_: None)
        cancel_all(self.loop)
        self.loop.close()
        logs.restore(self._logs_before)

    def broker(self, name: str, properties: Mapping[str, str] | None = None) -> SimulatedBroker:
        """A machine with a broker on it, which is not started."""
        broker = SimulatedBroker(self, name, {**PROPERTIES, **(properties or {})})
        self.brokers.append(broker)
        return broker

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Runs until the scenario has ended; power cuts on the way end the lives that they hit."""
        task = self.loop.create_task(scenario)
        while True:
            try:
                return self.loop.run_until_complete(task)
            except SimulatedCrash as crash:
                # None is down where a call-back of the dead process passes its crash on once more.
                down = [broker for broker in self.brokers if broker.ports.disk.is_down]
                if down:
                    self.trace.say("power", str(crash))
                for broker in down:
                    broker.lose_power()

    def _look(self) -> None:
        """After each turn: a power cut in a task that nobody awaits ends its machine too."""
        if self._fault is not None:
            raise BrokerFault(f"seed {self.seed}: {self._fault!r}") from self._fault
        for broker in self.brokers:
            if broker.ports.disk.is_down:
                raise SimulatedCrash(f"{broker.name} is off")

    def _unhandled(self, _: asyncio.AbstractEventLoop, details: dict[str, Any]) -> None:
        error = details.get("exception")
        life = _life_of(details)
        if life is not None and life.ended:
            return  # what is left of a dead process meets dead ports
        self.trace.say("unhandled", f"{details.get('message')}: {error!r}")
        if error is not None and self._fault is None:
            self._fault = error


class SimulatedBroker:
    def __init__(self, simulation: Simulation, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        #: For the next start.
        self.properties = dict(properties)
        self._simulation = simulation
        self.ports: MemoryPorts = simulation.world.machine(name)
        #: None while no process runs.
        self.broker: Broker | None = None
        self._life = Life(name)
        self._life.ended = True
        #: Set while it serves.
        self.serving = asyncio.Event()
        #: Set while no process runs.
        self.ended = asyncio.Event()
        self.ended.set()
        #: Why the last start failed; None where it did not.
        self.refusal: Exception | None = None
        #: Why the broker ended its life by itself; None where it did not.
        self.gave_up: str | None = None
        #: Called when the power was cut, to decide what comes next.
        self.on_power_cut: Callable[[], None] | None = None
        #: Adjusts each new life's ports: delays of workers, the next power cut.
        self.on_start: Callable[[MemoryPorts], None] | None = None
        self.lives = 0

    @property
    def address(self) -> tuple[str, int]:
        return self.name, PORT

    def start(self) -> asyncio.Task[None]:
        """Starts a process; the task ends when it serves, or has failed to (see `refusal`)."""
        assert self._life.ended, "one process at a time"
        self._life = Life(self.name)
        self.ended.clear()
        self.refusal = self.gave_up = None
        self.lives += 1
        self._say(f"life {self.lives} begins")
        if self.on_start is not None:
            self.on_start(self.ports)
        context = copy_context()
        context.run(_LIFE.set, self._life)
        return self._simulation.loop.create_task(self._start(self._life), context=context)

    async def _start(self, life: Life) -> None:
        broker = self.broker = assemble(
            Config.parse(self.properties), self.ports, self.name, on_lost=lambda reason: self._give_up(life, reason)
        )
        try:
            await broker.start()
        except Exception as error:
            if not life.ended:
                self._say(f"did not start: {type(error).__name__}: {error}")
                self.refusal = error
                self._end()
                self.ports = self._simulation.world.kill(self.name)
                if not isinstance(error, REFUSALS):
                    raise BrokerFault(f"seed {self._simulation.seed}: a start failed with {error!r}") from error
            return
        if not life.ended:
            self._say("serves")
            self.serving.set()

    async def started(self) -> None:
        """Starts, and raises BrokerFault where that fails."""
        await self.start()
        if self.refusal is not None:
            raise BrokerFault(f"seed {self._simulation.seed}: {self.refusal}") from self.refusal

    async def stop(self) -> None:
        """A clean stop, as SIGTERM asks for."""
        assert self.broker is not None
        life, broker = self._life, self.broker
        self.serving.clear()
        context = copy_context()
        context.run(_LIFE.set, life)
        await self._simulation.loop.create_task(broker.stop(), context=context)
        if not life.ended:
            self._say("has stopped")
            self._end()
            self.ports = self._simulation.world.kill(self.name)

    def carry_out(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Has the process do something that nobody asks for over the network: it ends with the process."""
        context = copy_context()
        context.run(_LIFE.set, self._life)
        return self._simulation.loop.create_task(work, context=context)

    def _give_up(self, life: Life, reason: str) -> None:
        if not (life.ended or self.ports.disk.is_down):
            self._say(f"gives up: {reason}")
            self.gave_up = reason
            self._simulation.loop.create_task(self.stop())

    def kill(self) -> None:
        """Ends the process as SIGKILL does: what it has written stays."""
        self._say("is killed")
        self._end()
        self.ports = self._simulation.world.kill(self.name)

    def lose_power(self) -> None:
        """Ends everything on the machine; what was not synced may be lost."""
        self._say("loses its power")
        self._end()
        self.ports = self._simulation.world.crash(self.name)
        if self.on_power_cut is not None:
            self.on_power_cut()

    def _end(self) -> None:
        life = self._life
        life.ended = True
        self._say(f"life {self.lives} ends after {self.ports.disk.operations} operations of the disk")
        self.serving.clear()
        self.broker = None
        self.ended.set()
        self._simulation.loop.cancel_timers(lambda context: context.get(_LIFE) is life)
        for task in life.tasks:
            if task is not asyncio.current_task(self._simulation.loop):
                task.cancel()

    def _say(self, what: str) -> None:
        self._simulation.trace.say(self.name, what)


def _task_of_a_life(loop: asyncio.AbstractEventLoop, work: Any, /, context: Context | None = None) -> asyncio.Task[Any]:
    """asyncio's task, noted with the process that it belongs to."""
    life = _LIFE.get() if context is None else context.get(_LIFE)
    task = asyncio.Task(work, loop=loop, context=context)
    if life is not None:
        life.tasks.append(task)
    return task


def _life_of(details: Mapping[str, Any]) -> Life | None:
    """The process of an error that the loop has met."""
    handle = details.get("handle")
    if handle is not None:
        found: Life | None = handle._context.get(_LIFE)  # noqa: SLF001 - asyncio keeps it there
        return found
    return _LIFE.get()
