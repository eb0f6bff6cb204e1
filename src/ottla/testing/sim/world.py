"""A simulated world: its machines, the processes on them, and everything that they do, from one seed.

A broker is assembled by `ottla.app` and runs as it is (`machines.py` has what all machines can do and suffer).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any, Final, Self, TypeVar

from ottla import logs
from ottla.app import assemble
from ottla.broker.broker import Broker, StartFault
from ottla.config import Config, ConfigError
from ottla.coordination.errors import CoordinationError
from ottla.handlers.calls.loading import load_all
from ottla.ports.memory import SimulatedCrash, World
from ottla.ports.memory.faults import DiskFaults
from ottla.ports.memory.loop import cancel_all
from ottla.ports.memory.processes import PROCESS, Process
from ottla.storage.directories.errors import DirectoryError
from ottla.testing.sim.machines import BrokerFault, SimulatedMachine
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


class Simulation:
    """One world from one seed. It is a context manager: brokers' log lines go into its trace while it is open."""

    def __init__(self, seed: int) -> None:
        load_all()
        self.seed = seed
        #: For choices of the scenario; those of the world come from generators of their own.
        self.random = Random(f"scenario {seed}")
        self.world = World(seed)
        self.loop = self.world.loop
        self.trace = Trace(self.loop.timeline)
        self.machines: list[SimulatedMachine] = []
        #: Of each machine: whether its power is cut.
        self.powers: list[DiskFaults] = []
        #: Called after each turn of the loop, with the processes of which something ran. What they raise ends the run.
        self.watchers: list[Callable[[Mapping[Process, None]], None]] = []
        self._fault: BaseException | None = None
        self.loop.set_exception_handler(self._unhandled)
        self.loop.after_turn = self._look

    def __enter__(self) -> Self:
        clock = self.world.machine("observer").clock
        self._thread = threading.get_ident()
        self._logs_before = logs.configure(sink=self._log_line, clock=lambda: clock.wall_ms() / 1000)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.after_turn = None
        self.loop.set_exception_handler(lambda *_: None)
        for machine in self.machines:
            machine.wake()
        cancel_all(self.loop)
        self.loop.close()
        logs.restore(self._logs_before)

    def broker(self, name: str, properties: Mapping[str, str] | None = None) -> SimulatedBroker:
        """A machine with a broker on it, which is not started."""
        return SimulatedBroker(self, name, {**PROPERTIES, **(properties or {})})

    @property
    def brokers(self) -> list[SimulatedBroker]:
        return [machine for machine in self.machines if isinstance(machine, SimulatedBroker)]

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Runs until the scenario has ended; power cuts on the way end the lives that they hit."""
        task = self.loop.create_task(scenario)
        while True:
            try:
                return self.loop.run_until_complete(task)
            except SimulatedCrash as crash:
                # None is down where a call-back of the dead process passes its crash on once more.
                down = [machine for machine in self.machines if machine.ports.disk.is_down]
                if down:
                    self.trace.say("power", str(crash))
                for machine in down:
                    machine.lose_power()

    def _look(self) -> None:
        """After each turn: a power cut in a task that nobody awaits ends its machine too."""
        if self._fault is not None:
            raise BrokerFault(f"seed {self.seed}: {self._fault!r}") from self._fault
        for power in self.powers:
            if power.down:
                raise SimulatedCrash("a machine is off")
        for watcher in self.watchers:
            watcher(self.loop.ran)

    def _log_line(self, line: str) -> None:
        if threading.get_ident() != self._thread:
            return  # of a broker that is none of this world's, and runs beside it
        process = PROCESS.get()
        self.trace.log_line(line, None if process is None else process.name)

    def _unhandled(self, _: asyncio.AbstractEventLoop, details: dict[str, Any]) -> None:
        error = details.get("exception")
        process = _process_of(details)
        if process is not None and process.ended:
            return  # what is left of a dead process meets dead ports
        self.trace.say("unhandled", f"{details.get('message')}: {error!r}")
        if error is not None and self._fault is None:
            self._fault = error


class SimulatedBroker(SimulatedMachine):
    def __init__(self, simulation: Simulation, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(simulation, name)
        #: For the next start.
        self.properties = dict(properties)
        #: None while no process runs.
        self.broker: Broker | None = None
        #: Why the broker ended its life by itself; None where it did not.
        self.gave_up: str | None = None
        #: Called with each life's broker, before it is started.
        self.on_assembled: Callable[[Broker], None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self.name, PORT

    def start(self) -> asyncio.Task[None]:
        self.gave_up = None
        return super().start()

    async def open(self, process: Process) -> None:
        broker = self.broker = assemble(
            Config.parse(self.properties), self.ports, self.name, on_lost=lambda reason: self._give_up(process, reason)
        )
        if self.on_assembled is not None:
            self.on_assembled(broker)
        await broker.start()

    def is_refusal(self, error: Exception) -> bool:
        return isinstance(error, REFUSALS)

    async def close(self) -> None:
        assert self.broker is not None
        await self.broker.stop()

    def has_ended(self) -> None:
        self.broker = None

    def _give_up(self, process: Process, reason: str) -> None:
        if not (process.ended or self.ports.disk.is_down):
            self.say(f"gives up: {reason}")
            self.gave_up = reason
            # The owner of the broker stops it, and is no part of it.
            self.simulation.loop.create_task(self.stop(), context=self.simulation.world.fabric.context.copy())


def _process_of(details: Mapping[str, Any]) -> Process | None:
    """The process of an error that the loop has met."""
    handle = details.get("handle")
    if handle is not None:
        found: Process | None = handle._context.get(PROCESS)  # noqa: SLF001 - asyncio keeps it there
        return found
    return PROCESS.get()
