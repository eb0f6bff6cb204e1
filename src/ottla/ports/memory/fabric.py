"""The network between simulated machines: who reaches whom, how long it takes, and how it is cut."""

from __future__ import annotations

from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Final

from ottla.ports.memory.loop import VirtualLoop
from ottla.ports.memory.pipe import Pipe, Side

if TYPE_CHECKING:
    from ottla.ports.memory.network import MemoryNetwork


#: How long TCP tries to bring what was sent to a peer that confirms nothing: Linux with tcp_retries2 = 15.
GIVES_UP_S: Final = 924.6


class Fabric:
    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.loop = loop
        self.random = Random(seed)
        #: What the network itself does belongs to no process.
        self.context = Context()
        self.gives_up_s = GIVES_UP_S
        #: With it a receiver gets a random part of what is there, as with small packets.
        self.chop = False
        #: By name and by address.
        self.hosts: dict[str, MemoryNetwork] = {}
        self._machines = 0
        #: (from, to): nothing passes.
        self._cuts: set[tuple[str, str]] = set()
        #: Least and most milliseconds: in general, and between two hosts.
        self._latency_ms = (0.0, 0.0)
        self._latencies_ms: dict[tuple[str, str], tuple[float, float]] = {}
        #: Bytes a second, from a host to another; what is not named has no limit.
        self._rates: dict[tuple[str, str], float] = {}
        #: Pipes that wait for a cut to heal, in the order in which they began to.
        self._held: dict[Pipe, None] = {}
        #: Open ends and the hosts they lie on: what `reset` and `kill` look for.
        self._sides: dict[Side, tuple[str, str]] = {}

    def host(self, name: str) -> MemoryNetwork:
        """The network as a process on this machine sees it; a new machine where the name is new."""
        from ottla.ports.memory.network import MemoryNetwork

        known = self.hosts.get(name)
        if known is not None and not known.dead:
            return known
        if known is None:
            self._machines += 1
            address = f"10.0.{self._machines // 256}.{self._machines % 256}"
        else:
            address = known.address
        self.hosts[name] = self.hosts[address] = made = MemoryNetwork(self, name, address)
        return made

    # Faults

    def cut(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Nothing passes from `a` to `b` and, unless `one_way`, back. Connections wait; new ones time out."""
        self._cuts.add((a, b))
        if not one_way:
            self._cuts.add((b, a))

    def isolate(self, name: str) -> None:
        """Cuts a machine off from all others."""
        for other in {network.name for network in self.hosts.values()} - {name}:
            self.cut(name, other)

    def heal(self, a: str | None = None, b: str | None = None) -> None:
        """Mends both directions between two machines, or everything."""
        if a is None or b is None:
            self._cuts.clear()
        else:
            self._cuts -= {(a, b), (b, a)}
        held, self._held = self._held, {}
        for pipe in held:
            self.loop.call_soon(pipe.flow, context=self.context)

    def reset(self, a: str, b: str) -> None:
        """Breaks every connection between two machines, as a firewall that forgets does."""
        for side, ends in list(self._sides.items()):
            if ends in {(a, b), (b, a)}:
                side.broken()

    def latency(self, least_ms: float, most_ms: float, a: str | None = None, b: str | None = None) -> None:
        """What each piece takes, in general or between two machines."""
        if a is None or b is None:
            self._latency_ms = (least_ms, most_ms)
        else:
            self._latencies_ms[a, b] = self._latencies_ms[b, a] = (least_ms, most_ms)

    def rate(self, a: str, b: str, bytes_per_s: float | None) -> None:
        """How much passes between two machines in a second; None: as much as is sent."""
        for link in ((a, b), (b, a)):
            self._rates.pop(link, None)
            if bytes_per_s is not None:
                self._rates[link] = bytes_per_s

    # For the connections

    def passes(self, source: str, target: str) -> bool:
        return (source, target) not in self._cuts

    def delay(self, source: str, target: str) -> float:
        """Seconds."""
        least, most = self._latencies_ms.get((source, target), self._latency_ms)
        return self.random.uniform(least, most) / 1_000 if most > 0 else 0.0

    def passage(self, source: str, target: str, size: int) -> float:
        """Seconds between the first byte and the last."""
        rate = self._rates.get((source, target)) if self._rates else None
        return 0.0 if rate is None else size / rate

    def chopped(self, size: int) -> int:
        return self.random.randint(1, size) if self.chop and size > 1 and self.random.random() < 0.5 else size

    def hold(self, pipe: Pipe) -> None:
        self._held[pipe] = None

    def connected(self, source: MemoryNetwork, port: int, target: MemoryNetwork, target_port: int) -> tuple[Side, Side]:
        """The two ends of a new connection."""
        local = source is target
        near = Side(("127.0.0.1" if local else source.address, port))
        far = Side(("127.0.0.1" if local else target.address, target_port))
        near.outbound = far.inbound = Pipe(Link(self, source.name, target.name), near, far)
        far.accepted = True
        far.outbound = near.inbound = Pipe(Link(self, target.name, source.name), far, near)
        self._sides[near] = (source.name, target.name)
        self._sides[far] = (target.name, source.name)
        return near, far

    def forget(self, side: Side) -> None:
        self._sides.pop(side, None)

    def sides_on(self, name: str) -> list[Side]:
        return [side for side, ends in self._sides.items() if ends[0] == name]


class Link:
    """One direction between two machines."""

    __slots__ = ("_source", "_target", "fabric")

    def __init__(self, fabric: Fabric, source: str, target: str) -> None:
        self.fabric = fabric
        self._source = source
        self._target = target

    def is_cut(self) -> bool:
        return not self.fabric.passes(self._source, self._target)

    def delay(self) -> float:
        return self.fabric.delay(self._source, self._target)

    def passage(self, size: int) -> float:
        return self.fabric.passage(self._source, self._target, size)
