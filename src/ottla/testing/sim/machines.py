"""What every simulated machine can do and suffer: its process starts, stops, is killed, stands still, loses power.

Each life is a process (`ports/memory/processes.py`): what it starts carries its mark, and ends with it. After a power
cut the disk keeps what was synced and any part of the rest; the machine's peers hear nothing, as from one that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.ports.memory import MemoryPorts
from ottla.ports.memory.processes import Process

if TYPE_CHECKING:
    from ottla.testing.sim.world import Simulation

T = TypeVar("T")


class BrokerFault(Exception):
    """A process did what none may do: it did not start, or a call-back of it raised."""


class SimulatedMachine:
    """Subclasses say what the process is: `open`, `close`."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self.name = name
        self.simulation = simulation
        self.ports: MemoryPorts = simulation.world.machine(name)
        self.process = Process(name)
        self.process.ended = True
        #: Set while it serves.
        self.serving = asyncio.Event()
        #: Set while no process runs.
        self.ended = asyncio.Event()
        self.ended.set()
        #: Why the last start failed; None where it did not.
        self.refusal: Exception | None = None
        #: Called when the power was cut, to decide what comes next.
        self.on_power_cut: Callable[[], None] | None = None
        #: Adjusts each new life's ports: delays of workers, the next power cut.
        self.on_start: Callable[[MemoryPorts], None] | None = None
        self.lives = 0
        simulation.machines.append(self)
        simulation.powers.append(self.ports.disk.faults)

    # What the process is

    async def open(self, process: Process) -> None:
        """Runs in the process; it serves when this returns."""
        raise NotImplementedError

    async def close(self) -> None:
        """Runs in the process: a clean stop, as SIGTERM asks for."""
        raise NotImplementedError

    def is_refusal(self, error: Exception) -> bool:
        """Whether a start may fail with this."""
        return isinstance(error, OSError)

    def has_ended(self) -> None:
        """The process is no more, however it ended."""

    # Its life

    @property
    def runs(self) -> bool:
        """A process is there, also one that starts, stops or stands still."""
        return not self.process.ended

    @property
    def is_paused(self) -> bool:
        return self.process.stopped

    def start(self) -> asyncio.Task[None]:
        """Starts a process; the task ends when it serves, or has failed to (see `refusal`)."""
        assert self.process.ended, "one process at a time"
        self.process = Process(self.name)
        self.ended.clear()
        self.refusal = None
        self.lives += 1
        self.say(f"life {self.lives} begins")
        if self.on_start is not None:
            self.on_start(self.ports)
        process = self.process
        return self.simulation.loop.create_task(self._start(process), context=process.context())

    async def _start(self, process: Process) -> None:
        try:
            await self.open(process)
        except Exception as error:
            if not process.ended:
                self.say(f"did not start: {type(error).__name__}: {error}")
                self.refusal = error
                self._end()
                self.ports = self.simulation.world.kill(self.name)
                if not self.is_refusal(error):
                    raise BrokerFault(f"seed {self.simulation.seed}: a start failed with {error!r}") from error
            return
        if not process.ended:
            self.say("serves")
            self.serving.set()

    async def started(self) -> None:
        """Starts, and raises BrokerFault where that fails."""
        await self.start()
        if self.refusal is not None:
            raise BrokerFault(f"seed {self.simulation.seed}: {self.refusal}") from self.refusal

    async def stop(self) -> None:
        """A clean stop, as SIGTERM asks for."""
        process = self.process
        self.serving.clear()
        await self.simulation.loop.create_task(self.close(), context=process.context())
        if not process.ended:
            self.say("has stopped")
            self._end()
            self.ports = self.simulation.world.kill(self.name)

    def carry_out(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Has the process do something that nobody asks for over the network: it ends with the process."""
        return self.simulation.loop.create_task(work, context=self.process.context())

    def kill(self) -> None:
        """Ends the process as SIGKILL does: what it has written stays."""
        self.say("is killed")
        self._end()
        self.ports = self.simulation.world.kill(self.name)

    def pause(self) -> None:
        """Stops the process as SIGSTOP does: nothing of it runs, its sockets fill up, its clock runs on."""
        if self.runs and not self.is_paused:
            self.say("stands still")
            self.simulation.loop.suspend(self.process)

    def wake(self) -> None:
        """Lets it go on: everything that came due meanwhile is due at once."""
        if self.is_paused:
            self.say("goes on")
            self.simulation.loop.go_on(self.process)

    def lose_power(self) -> None:
        """Ends everything on the machine; what was not synced may be lost."""
        self.say("loses its power")
        if self.runs:
            self._end()
        self.ports = self.simulation.world.crash(self.name)
        if self.on_power_cut is not None:
            self.on_power_cut()

    def _end(self) -> None:
        self.say(f"life {self.lives} ends after {self.ports.disk.operations} operations of the disk")
        self.serving.clear()
        self.simulation.loop.end(self.process)
        self.has_ended()
        self.ended.set()

    def say(self, what: str) -> None:
        self.simulation.trace.say(self.name, what)
