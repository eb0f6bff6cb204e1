"""A simulated world: virtual time, a network that can be cut, disks that forget on a crash, and one seed for it all.

`memory_ports(seed)` is one machine. `World(seed)` holds several: they share time and network, and each has a disk, a
clock, workers and randomness of its own, which stay when its broker is started again.
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
        self._seeds = Random(seed)
        #: Run everything on it. With `shuffle`, what is ready at the same moment runs in an order that the seed chose.
        self.loop = VirtualLoop(seed=self._seed() if shuffle else None)
        self.fabric = Fabric(self.loop, self._seed())
        self._machines: dict[str, MemoryPorts] = {}

    def machine(self, name: str) -> MemoryPorts:
        """The ports of a machine; a new one where the name is new. Its name is its host name in the network."""
        if name not in self._machines:
            clock = VirtualClock(self.loop.timeline)
            self._machines[name] = MemoryPorts(
                clock=clock,
                disk=MemoryDisk(clock),
                network=self.fabric.host(name),
                entropy=SeededEntropy(self._seed()),
                workers=MemoryWorkers(self.loop, self._seed()),
                loop=self.loop,
            )
        return self._machines[name]

    def _seed(self) -> int:
        return self._seeds.getrandbits(64)


def memory_ports(seed: int, *, shuffle: bool = False, name: str = "localhost") -> MemoryPorts:
    """One machine in a world of its own; run what uses it on its `loop`."""
    return World(seed, shuffle=shuffle).machine(name)
