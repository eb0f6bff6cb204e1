"""A simulated world: virtual time, a network that can be cut, disks that forget on a crash, and one seed for it all.

`memory_ports(seed)` is one machine. `World(seed)` holds several: they share time and network, and each has a clock, a
disk, workers and randomness of its own. A machine's process can be killed and its power cut; its disk and its clock
then pass to its next life.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ottla.ports import Ports
from ottla.ports.memory.clock import VirtualClock
from ottla.ports.memory.disk import MemoryDisk
from ottla.ports.memory.entropy import SeededEntropy
from ottla.ports.memory.fabric import Fabric
from ottla.ports.memory.faults import SimulatedCrash
from ottla.ports.memory.loop import DeadlockError, StandstillError, VirtualLoop
from ottla.ports.memory.network import MemoryNetwork
from ottla.ports.memory.workers import MemoryWorkers

__all__ = [
    "DeadlockError",
    "MemoryPorts",
    "SimulatedCrash",
    "StandstillError",
    "VirtualLoop",
    "World",
    "memory_ports",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPorts(Ports):
    """A machine's ports with their controls: `disk.crash`, `clock.jump`, `network.fabric.cut`, ..."""

    clock: VirtualClock
    disk: MemoryDisk
    network: MemoryNetwork
    entropy: SeededEntropy
    workers: MemoryWorkers
    loop: VirtualLoop


class World:
    def __init__(self, seed: int, *, shuffle: bool = True) -> None:
        self._random = Random(seed)
        #: Run everything on it. With `shuffle`, what is ready at the same moment runs in an order that the seed chose.
        self.loop = VirtualLoop(seed=self._seed() if shuffle else None)
        self.fabric = Fabric(self.loop, self._seed())
        self._machines: dict[str, MemoryPorts] = {}

    def machine(self, name: str) -> MemoryPorts:
        """The ports of a machine; a new one where the name is new. Its name is its host name in the network."""
        if name not in self._machines:
            clock = VirtualClock(self.loop.timeline)
            self._machines[name] = self._ports(name, clock, MemoryDisk(clock))
        return self._machines[name]

    def kill(self, name: str) -> MemoryPorts:
        """Ends the machine's process as SIGKILL does, and gives the ports for the next.

        What it had written stays; its sockets close. The old ports are dead: what is left of it fails with OSError.
        """
        old = self._machines[name]
        old.network.kill()
        return self._next_life(name, old.disk.successor())

    def crash(self, name: str) -> MemoryPorts:
        """Cuts the machine's power and gives the ports for its next life: unsynced writes may be lost."""
        old = self._machines[name]
        old.network.kill(silently=True)
        return self._next_life(name, old.disk.successor(Random(self._seed())))

    def _next_life(self, name: str, disk: MemoryDisk) -> MemoryPorts:
        old = self._machines[name]
        old.workers.close()
        self._machines[name] = self._ports(name, old.clock, disk)
        return self._machines[name]

    def _ports(self, name: str, clock: VirtualClock, disk: MemoryDisk) -> MemoryPorts:
        return MemoryPorts(
            clock=clock,
            disk=disk,
            network=self.fabric.host(name),
            entropy=SeededEntropy(self._seed()),
            workers=MemoryWorkers(self.loop, self._seed()),
            loop=self.loop,
        )

    def _seed(self) -> int:
        return self._random.getrandbits(64)


def memory_ports(seed: int, *, shuffle: bool = False, name: str = "localhost") -> MemoryPorts:
    """One machine in a world of its own; run what uses it on its `loop`."""
    return World(seed, shuffle=shuffle).machine(name)
