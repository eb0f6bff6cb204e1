"""What a client needs of the world: time, connections and randomness. A broker's whole set of ports will do."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.ports.network import Network


class ClientPorts(Protocol):
    @property
    def clock(self) -> Clock: ...

    @property
    def network(self) -> Network: ...

    @property
    def entropy(self) -> Entropy: ...


class ClientWorld(NamedTuple):
    clock: Clock
    network: Network
    entropy: Entropy


def real_world() -> ClientPorts:
    """This machine, without the disks and threads that a client does not touch."""
    from ottla.ports.real.clock import RealClock
    from ottla.ports.real.entropy import RealEntropy
    from ottla.ports.real.network import RealNetwork

    return ClientWorld(RealClock(), RealNetwork(), RealEntropy())
