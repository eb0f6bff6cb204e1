"""What touches the world: clock, disk, network, entropy and workers, as small protocols.

Cores never reach past these, so the same broker runs on a real machine (`ports.real`) and inside a simulation
(`ports.memory`), where time is virtual and faults are chosen by a seed. Both sets pass one test suite.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.ports.clock import Clock
from ottla.ports.disk import Disk, File, Lock
from ottla.ports.entropy import Entropy
from ottla.ports.network import Channel, Listening, Network
from ottla.ports.workers import Workers

__all__ = ["Channel", "Clock", "Disk", "Entropy", "File", "Listening", "Lock", "Network", "Ports", "Workers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One world: everything that a broker is given besides its configuration."""

    clock: Clock
    disk: Disk
    network: Network
    entropy: Entropy
    workers: Workers
